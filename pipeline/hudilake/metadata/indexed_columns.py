"""The columns of a table in column_stats: the content of ``index.json``, and its changes with the table's schema."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa

from hudilake.errors import CorruptDataError
from hudilake.format.files.column_stats import ValueType, orders_alike, value_type
from hudilake.metadata.records.layout import (
    INDEX_DEFINITIONS_PATH,
    dump_index_definitions,
    indexed_fields,
    left_fields,
)
from hudilake.storage.base import Storage, StorageNotFoundError

#: Hudi's default number of indexed columns besides the meta columns.
MAX_INDEXED_COLUMNS = 32
#: The meta columns that Hudi always indexes, in its order.
INDEXED_META_FIELDS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
_META_PREFIX = "_hoodie_"
_BINARY = ((ValueType.BYTES, None), (ValueType.FIXED, None))
#: Value type and additional info of every indexed column.
ColumnTypes = Mapping[str, tuple[ValueType, str | None]]


def indexed_columns(schema: pa.Schema, requested: Sequence[str] | None = None) -> tuple[str, ...]:
    """The columns whose statistics are kept: the three meta columns, then the requested or the first 32 of the table.

    Args:
        schema: the table's schema, with or without meta columns.
        requested: names from the settings; None for Hudi's default, but without binary columns: Hudi Spark 1.2.0 fails
            on every filter over an indexed one (measured, ClassCastException). Names the table lacks, and columns of
            types that cannot be indexed, are left out.
    """
    types = {f.name: value_type(f.type) for f in schema if not f.name.startswith(_META_PREFIX)}
    able = [name for name, indexed_type in types.items() if indexed_type is not None]
    if requested is not None:
        own = [name for name in dict.fromkeys(requested) if name in able]
    else:
        own = [name for name in able if types[name] not in _BINARY][:MAX_INDEXED_COLUMNS]
    return (*INDEXED_META_FIELDS, *own)


@lru_cache(maxsize=64)
def column_types(schema: pa.Schema, columns: tuple[str, ...]) -> ColumnTypes:
    """The types of the indexed columns; the meta columns are text. Columns the schema lacks are left out."""
    types = {field.name: value_type(field.type) for field in schema}
    indexed_types = {c: types.get(c, (ValueType.STRING, None) if c.startswith(_META_PREFIX) else None) for c in columns}
    return {column: indexed_type for column, indexed_type in indexed_types.items() if indexed_type is not None}


class IndexedColumns:
    """The indexed columns of one table.

    With fewer columns readers only skip less, and a new column is null in older files, as Hudi treats a missing
    statistic. So ``index.json`` may be written before the commit that changes it.

    Args:
        storage: rooted at the data table.
        schema: the table's columns.
        requested: names from the settings; None for the first columns of the table.

    Raises CorruptDataError if ``index.json`` does not define column_stats.
    """

    def __init__(self, storage: Storage, schema: pa.Schema, requested: Sequence[str] | None) -> None:
        self._storage, self._schema, self._wanted = storage, schema, requested
        definitions = self._definitions()
        listed = indexed_fields(definitions)
        if listed is None:
            raise CorruptDataError(
                "hoodie.properties lists column_stats, but the index definitions lack it",
                do_next="run binlake repair",
                path=INDEX_DEFINITIONS_PATH,
            )
        self._listed = listed
        #: Columns that were indexed before and are not indexed now.
        self.left = left_fields(definitions)
        expected = set(indexed_columns(schema, requested))
        # Further columns of another writer have no statistics in our files: readers would treat them as all null.
        self.names = tuple(column for column in listed if column in expected)

    @property
    def types(self) -> ColumnTypes:
        """Value type and additional info of each."""
        return column_types(self._schema, self.names)

    def under(self, schema: pa.Schema) -> tuple[str, ...]:
        """The columns that are indexed after a commit of this schema; its tasks compute their statistics.

        A column leaves the index if it is dropped, or if its statistics no longer bound its values (a number that
        becomes text). New columns enter it if the settings name them, or up to Hudi's number. An older column that is
        not
        indexed stays out: readers would treat it as all null in older files.
        """
        before = self._schema
        if schema == before:
            return self.names
        kept = [name for name in self.names if name.startswith(_META_PREFIX) or _stays(before, schema, name)]
        requested = indexed_columns(schema, self._wanted)
        columns = (*kept, *(name for name in requested if name not in kept and name not in before.names))
        return columns if self._wanted is not None else columns[: len(requested)]

    def follow(self, schema: pa.Schema, without: Collection[str]) -> None:
        """Apply the schema of the commit in progress, and remove columns for good. Raises StorageError."""
        names = tuple(name for name in self.under(schema) if name not in without)
        self._schema = schema
        self.left = (self.left | {*self._listed, *self.names}) - set(names)
        if names != self._listed:
            self._storage.write(INDEX_DEFINITIONS_PATH, dump_index_definitions(self._definitions(), names, self.left))
        self.names = self._listed = names

    def _definitions(self) -> bytes | None:
        return read_definitions(self._storage)


def read_definitions(storage: Storage) -> bytes | None:
    """The bytes of ``index.json`` of the table at the storage's root; None if there is none. Raises StorageError."""
    try:
        return storage.read(INDEX_DEFINITIONS_PATH)
    except StorageNotFoundError:
        return None


def _stays(before: pa.Schema, after: pa.Schema, name: str) -> bool:
    if name not in before.names or name not in after.names:
        return False
    return orders_alike(before.field(name).type, after.field(name).type)
