"""Which columns of a table are in column_stats: what ``index.json`` says, and how it follows the table's schema."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa

from pipeline.errors import CorruptDataError
from pipeline.hudi.files.column_stats import ValueType, orders_alike, value_type
from pipeline.hudi.metadata.records.layout import (
    INDEX_DEFINITIONS_PATH,
    dump_index_definitions,
    indexed_fields,
    left_fields,
)
from pipeline.storage.base import Storage, StorageNotFoundError

#: Hudi's default number of indexed columns besides the meta columns.
MAX_INDEXED_COLUMNS = 32
#: The meta columns that Hudi always indexes, in its order.
INDEXED_META_FIELDS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
_META_PREFIX = "_hoodie_"
_BINARY = ((ValueType.BYTES, None), (ValueType.FIXED, None))
#: Value type and additional info of every indexed column.
ColumnTypes = Mapping[str, tuple[ValueType, str | None]]


def indexed_columns(schema: pa.Schema, wanted: Sequence[str] | None = None) -> tuple[str, ...]:
    """The columns whose statistics are kept: the three meta columns, then those wanted or the first 32 of the table.

    Args:
        schema: the table's schema, with or without meta columns.
        wanted: names from the settings; None for Hudi's default, but without binary columns: Hudi Spark 1.2.0 fails
            on every filter over an indexed one (measured, ClassCastException). Names the table lacks, and columns of
            types that cannot be indexed, are left out.
    """
    types = {f.name: value_type(f.type) for f in schema if not f.name.startswith(_META_PREFIX)}
    able = [name for name, known in types.items() if known is not None]
    if wanted is not None:
        own = [name for name in dict.fromkeys(wanted) if name in able]
    else:
        own = [name for name in able if types[name] not in _BINARY][:MAX_INDEXED_COLUMNS]
    return (*INDEXED_META_FIELDS, *own)


@lru_cache(maxsize=64)
def column_types(schema: pa.Schema, columns: tuple[str, ...]) -> ColumnTypes:
    """The types of the indexed columns; the meta columns are text. Columns the schema lacks are left out."""
    types = {field.name: value_type(field.type) for field in schema}
    found = {c: types.get(c, (ValueType.STRING, None) if c.startswith(_META_PREFIX) else None) for c in columns}
    return {column: known for column, known in found.items() if known is not None}


class IndexedColumns:
    """The indexed columns of one table.

    Fewer columns only skip less, and a new column reads as null in older files, which is what Hudi takes a missing
    statistic for; so ``index.json`` may run ahead of the commit that changes it.

    Args:
        storage: rooted at the data table.
        schema: the table's columns.
        wanted: names from the settings; None for the first columns of the table.

    Raises CorruptDataError if ``index.json`` does not define column_stats.
    """

    def __init__(self, storage: Storage, schema: pa.Schema, wanted: Sequence[str] | None) -> None:
        self._storage, self._schema, self._wanted = storage, schema, wanted
        definitions = self._definitions()
        listed = indexed_fields(definitions)
        if listed is None:
            raise CorruptDataError(
                "column_stats is listed but not defined", do_next="run binlake repair", path=INDEX_DEFINITIONS_PATH
            )
        self._listed = listed
        #: Columns that were indexed once and are not now.
        self.left = left_fields(definitions)
        expected = set(indexed_columns(schema, wanted))
        # What another writer lists besides has no statistics in our files, and would read as all null there.
        self.names = tuple(column for column in listed if column in expected)

    @property
    def types(self) -> ColumnTypes:
        """Value type and additional info of each."""
        return column_types(self._schema, self.names)

    def under(self, schema: pa.Schema) -> tuple[str, ...]:
        """The columns that will be indexed once a commit brings this schema: those whose statistics its tasks compute.

        A column whose statistics no longer bound its values (a number that becomes text), or that is dropped, leaves
        the index; of new columns those come in that the settings name, or the first up to Hudi's number. A column that
        was there before and not indexed stays out: its older files would read as all null.
        """
        before = self._schema
        if schema == before:
            return self.names
        kept = [name for name in self.names if name.startswith(_META_PREFIX) or _stays(before, schema, name)]
        wanted = indexed_columns(schema, self._wanted)
        columns = (*kept, *(name for name in wanted if name not in kept and name not in before.names))
        return columns if self._wanted is not None else columns[: len(wanted)]

    def follow(self, schema: pa.Schema, without: Collection[str]) -> None:
        """Take in the schema of the commit that is being made, and leave columns out for good. Raises StorageError."""
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
