"""All cells of some rows of a table of cells, as its file slices have them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import ROW
from binlake.hbase.derive.cell_runs import STORED_SCHEMA, AskedRows, newest_cells
from binlake.hbase.derive.cell_store import CellStore
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.bucketing import bucket_or_none, buckets_of
from hudilake.format.definition.java_hash import Int32s
from hudilake.format.files.view import FileSlice
from hudilake.read.slice import SliceReader
from hudilake.table.table import HudiTable

#: File groups that are looked at side by side.
_THREADS: Final = 2


@dataclass(frozen=True)
class RowCells:
    """The cells of a table as of its last refresh.

    Args:
        table: a table of cells, open.
        store: what this process keeps of tables of cells; None to read file slices whole.
    """

    table: HudiTable
    store: CellStore | None = None

    def of(self, rows: pa.Array) -> pa.Table:
        """All cells of some rows, in no promised order.

        Args:
            rows: string array of n distinct rows, in text form (``binlake.decode.cells``). Rows without a cell are
            none's.

        Returns the columns of ``STORED_SCHEMA``. Raises CorruptDataError, UnsupportedError, StorageError.
        """
        asked = list(self._asked(rows))
        if len(asked) < 2:
            parts = [self._of_slice(*one) for one in asked]
        else:
            with ThreadPoolExecutor(_THREADS) as pool:
                parts = list(pool.map(lambda one: self._of_slice(*one), asked))
        return pa.concat_tables([STORED_SCHEMA.empty_table(), *parts])

    def _asked(self, rows: pa.Array) -> Iterator[tuple[FileSlice, AskedRows]]:
        """The file slices that may have cells of the rows, with these rows."""
        config = self.table.config
        by_row = config.bucket_count > 0 and config.hash_fields == (ROW,)
        homes: dict[str, Int32s] = {}
        for piece in self.table.file_slices():
            path = piece.partition_path
            bucket = bucket_or_none(config.bucketing, path, piece.file_id) if by_row else None
            if bucket is None:
                yield piece, AskedRows.of(rows)
                continue
            if path not in homes:  # a row's text has no comma, so it is its own value in Hudi's eyes (``key_values``)
                homes[path] = buckets_of(config.bucketing, rows, (ROW,), path)
            mine = rows.filter(pa.array(homes[path] == bucket))
            if len(mine):
                yield piece, AskedRows.of(mine)

    @cached_property
    def _reader(self) -> SliceReader:
        return SliceReader(self.table.storage, STORED_SCHEMA, ORDER_FIELD, self.table.timeline)

    def _of_slice(self, piece: FileSlice, asked: AskedRows) -> pa.Table:
        runs = self.store.runs(self._reader, piece) if self.store is not None else None
        if runs is None:
            return cells_of_slice(self._reader, piece, asked.rows)
        return newest_cells(asked, [run.find(asked) for run in runs])


def cells_of_slice(reader: SliceReader, piece: FileSlice, rows: pa.Array) -> pa.Table:
    """The cells of some rows in a file slice, which is read whole. ``reader``: of the columns that are returned."""
    cells = reader.read(piece)
    return cells.filter(pc.is_in(cells.column(ROW), value_set=rows))
