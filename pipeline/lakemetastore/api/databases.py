"""Databases and tables of the catalog on the wire.

It stands alone: only the catalog's routes use these messages; the client does not.
"""

from __future__ import annotations

from lakemetastore.api.base import ApiMessage


class NamesWire(ApiMessage):
    """Names, sorted. ``after``: where the next page begins; None on the last page."""

    names: tuple[str, ...]
    after: str | None = None


class ColumnWire(ApiMessage):
    """A column in Hive's types."""

    name: str
    type: str
    comment: str | None = None


class DefinitionWire(ApiMessage):
    """A table of the catalog."""

    database: str
    name: str
    kind: str
    location: str | None
    columns: tuple[ColumnWire, ...]
    partition_keys: tuple[ColumnWire, ...]
    parameters: dict[str, str]
    version: str
