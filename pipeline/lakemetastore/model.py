"""Databases, tables and partitions as the Hive Metastore has them. Times are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Column(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A column: its name in lower case, its type in Hive's syntax, and a comment."""

    name: str
    type: str
    comment: str | None = None


class SortColumn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column that files are sorted by. ``direction``: 1 ascending, 0 descending."""

    name: str
    direction: int = 1


class SerDe(msgspec.Struct, frozen=True, omit_defaults=True):
    """What reads and writes rows."""

    name: str | None = None
    library: str | None = None
    parameters: Mapping[str, str] = {}


class Storage(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the rows of a table or partition are stored, without the place."""

    columns: tuple[Column, ...] = ()
    input_format: str | None = None
    output_format: str | None = None
    compressed: bool = False
    buckets: int = -1
    serde: SerDe = SerDe()
    bucket_columns: tuple[str, ...] = ()
    sort_columns: tuple[SortColumn, ...] = ()
    parameters: Mapping[str, str] = {}
    stored_as_sub_directories: bool = False


class Database(msgspec.Struct, frozen=True, omit_defaults=True):
    """A database."""

    name: str
    description: str | None = None
    location: str | None = None
    parameters: Mapping[str, str] = {}
    owner: str | None = None
    owner_type: int | None = None
    created: int = 0


class Table(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table. ``kind``: ``MANAGED_TABLE``, ``EXTERNAL_TABLE``, ``VIRTUAL_VIEW``..."""

    database: str
    name: str
    storage: Storage
    location: str | None = None
    partition_keys: tuple[Column, ...] = ()
    parameters: Mapping[str, str] = {}
    owner: str | None = None
    owner_type: int | None = None
    created: int = 0
    last_access: int = 0
    retention: int = 0
    kind: str = "MANAGED_TABLE"
    view_original_text: str | None = None
    view_expanded_text: str | None = None
    rewrite_enabled: bool = False


class Partition(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A partition of a table: a value for each partition key, as text."""

    values: tuple[str, ...]
    storage: Storage
    location: str | None = None
    parameters: Mapping[str, str] = {}
    created: int = 0
    last_access: int = 0
