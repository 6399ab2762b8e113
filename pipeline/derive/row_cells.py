"""All cells of some rows of a table of cells, as its file slices have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.decode.cells import CELL_SCHEMA, ROW
from pipeline.hudi.files.view import FileSlice
from pipeline.hudi.read.slice import SliceReader
from pipeline.hudi.table.table import HudiTable
from pipeline.upsert.target import ORDER_FIELD

#: The columns of stored cells: those of a cell, and its sequence id.
STORED_SCHEMA: Final = CELL_SCHEMA.append(pa.field(ORDER_FIELD, pa.int64()))


@dataclass(frozen=True)
class RowCells:
    """The cells of a table as of its last refresh.

    Args:
        table: a table of cells, open.
    """

    table: HudiTable

    def of(self, rows: pa.Array) -> pa.Table:
        """All cells of some rows, in no promised order.

        Args:
            rows: string array of n distinct rows, in text form (``decode.cells``). Rows without a cell are none's.

        Returns the columns of ``STORED_SCHEMA``. Raises CorruptDataError, UnsupportedError, StorageError.
        """
        return pa.concat_tables([STORED_SCHEMA.empty_table(), *self._parts(rows)])

    def _parts(self, rows: pa.Array) -> Iterator[pa.Table]:
        table = self.table
        reader = SliceReader(table.storage, STORED_SCHEMA, ORDER_FIELD, table.timeline)
        for piece in table.file_slices():
            yield cells_of_slice(reader, piece, rows)


def cells_of_slice(reader: SliceReader, piece: FileSlice, rows: pa.Array) -> pa.Table:
    """The cells of some rows in a file slice, which is read whole. ``reader``: of the columns that are returned."""
    cells = reader.read(piece)
    return cells.filter(pc.is_in(cells.column(ROW), value_set=rows))
