"""All record keys of a table whose rows live, with their file groups: what indexes with a memory begin from.

It stands alone: the index in memory and the external one both use it, and neither imports the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.view import FileSlice
from hudilake.read.slice import reader_of
from hudilake.storage.metered import Meter, MeteredStorage
from hudilake.table.table import HudiTable

_SCHEMA = pa.schema([pa.field(RECORD_KEY_FIELD, pa.string())])


def living_keys(table: HudiTable, file_slice: FileSlice, meter: Meter) -> pa.Array:
    """The keys of a file slice's rows, log files merged; string without nulls, in no promised order.

    Raises CorruptDataError, UnsupportedError, StorageError.
    """
    storage = MeteredStorage(table.storage, meter)
    reader = replace(reader_of(table, _SCHEMA, table.timeline, None), storage=storage)
    return reader.read(file_slice).column(RECORD_KEY_FIELD).combine_chunks()


def all_living_keys(table: HudiTable, meter: Meter) -> Iterator[tuple[FileSlice, pa.Array]]:
    """The same for every file slice of the table."""
    for file_slice in table.file_slices():
        yield file_slice, living_keys(table, file_slice, meter)
