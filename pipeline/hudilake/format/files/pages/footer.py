"""The footer of a Parquet file in its stored form: what pyarrow does not tell of column chunks.

pyarrow says whether a column chunk has a page index, not where it is (26.0.1); its own readers do not use it. The
field numbers are those of parquet-format's ``parquet.thrift``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from hudilake.format.files.pages.compact import LIST, STRUCT, Struct, read_struct
from hudilake.format.files.varint import read_varint

if TYPE_CHECKING:
    from hudilake.format.files.pages.skim import Longs

MAGIC = b"PAR1"
#: The bytes after the footer: its length and the magic.
TAIL = 8


class FileFields:
    """Fields of FileMetaData."""

    VERSION, SCHEMA, ROWS, ROW_GROUPS, CREATED_BY = 1, 2, 3, 4, 6


class SchemaFields:
    """Fields of SchemaElement."""

    CHILDREN = 5


class RowGroupFields:
    """Fields of RowGroup."""

    COLUMNS, BYTES, ROWS = 1, 2, 3


class ChunkFields:
    """Fields of ColumnChunk."""

    FILE_OFFSET, META, OFFSET_INDEX, OFFSET_INDEX_SIZE, COLUMN_INDEX, COLUMN_INDEX_SIZE = 2, 3, 4, 5, 6, 7


class ColumnFields:
    """Fields of ColumnMetaData."""

    TYPE, ENCODINGS, PATH, CODEC, VALUES, PLAIN_BYTES, STORED_BYTES = 1, 2, 3, 4, 5, 6, 7
    DATA_OFFSET, DICTIONARY_OFFSET = 9, 11


@dataclass(frozen=True)
class Chunk:
    """A column chunk: its ColumnChunk, where it begins (with the dictionary page), and the range of its data pages."""

    stored: Struct
    dictionary: int
    begin: int
    end: int


class Footer:
    """A footer.

    Args:
        data: the bytes of its FileMetaData.

    Its properties and methods raise ValueError and IndexError for damaged bytes.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._array = np.frombuffer(data, dtype=np.uint8)

    @cached_property
    def schema(self) -> list[Struct]:
        """The SchemaElements, the root first."""
        offset = self._value(0, FileFields.SCHEMA)
        return [read_struct(self._data, start)[0] for start in self._items(offset)]

    @cached_property
    def head(self) -> Struct:
        """Version and writer, as another FileMetaData of the same writer has them."""
        from hudilake.format.files.pages.skim import end_of  # needs compiled loops, seconds to import

        head_fields = {}
        for field, kind, start in self._fields(0):
            if field in (FileFields.VERSION, FileFields.CREATED_BY):
                end = int(end_of(self._array, start, kind))
                # One field of a struct of its own, so that any value can be read.
                alone, _ = read_struct(bytes([field << 4 | kind]) + self._data[start:end] + b"\0", 0)
                head_fields.update(alone)
        return head_fields

    @cached_property
    def _chunks(self) -> list[Longs]:
        groups = self._items(self._value(0, FileFields.ROW_GROUPS))
        return [self._items(self._value(start, RowGroupFields.COLUMNS)) for start in groups]

    def chunk(self, group: int, leaf: int) -> Struct:
        """The ColumnChunk of a row group's column, by the column's number among the leaves of the schema."""
        return read_struct(self._data, int(self._chunks[group][leaf]))[0]

    def _fields(self, at: int) -> list[tuple[int, int, int]]:
        from hudilake.format.files.pages.skim import fields_of  # needs compiled loops

        out = np.empty((64, 3), dtype=np.int64)
        count = fields_of(self._array, at, out)
        if count < 0:
            raise ValueError("its footer is damaged")
        return [(field, kind, start) for field, kind, start in out[:count].tolist()]

    def _value(self, at: int, wanted: int) -> int:
        for field, kind, start in self._fields(at):
            if field == wanted and kind == LIST:
                return start
        raise ValueError(f"its footer lacks field {wanted}")

    def _items(self, at: int) -> Longs:
        from hudilake.format.files.pages.skim import items_of  # needs compiled loops

        head = self._data[at]
        count, at = (head >> 4, at + 1) if head >> 4 < 15 else read_varint(self._data, at + 1)
        if head & 15 != STRUCT or count > len(self._data):
            raise ValueError("its footer has another list than expected")
        out = np.empty(count, dtype=np.int64)
        if items_of(self._array, at, out) < 0:
            raise ValueError("its footer is damaged")
        return out


def number(value: Struct, field: int) -> int | None:
    """A number of a struct; None where it has none. Raises ValueError for another value."""
    integer = value.get(field, (0, None))[1]
    if integer is not None and not isinstance(integer, int):
        raise ValueError(f"field {field} of its metadata is no number")
    return integer


def start_of(chunk: pq.ColumnChunkMetaData) -> int:
    """Where a column chunk begins: with its dictionary page, if it has one."""
    first: int = chunk.data_page_offset
    dictionary = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    return dictionary if dictionary is not None and 0 < dictionary < first else first
