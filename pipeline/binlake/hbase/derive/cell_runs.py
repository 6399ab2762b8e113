"""Runs of stored cells: some cells of a file group, found by their row.

A run keeps the cells as they came, where the cells of a row are mostly beside each other, and a directory of these
stretches in the order of a hash of the row. A found stretch is compared with the wanted row, so equal hashes give no
wrong answer. Families, qualifiers and kinds are dictionaries, and a row's key is kept once a stretch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import CELL_SCHEMA, FAMILY, KIND, QUALIFIER, ROW, TIMESTAMP
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.java_hash import Int32s, java_string_hash
from hudilake.format.files.log_merge import LEAST

Longs = npt.NDArray[np.int64]

#: The columns of stored cells: those of a cell, and its sequence id.
STORED_SCHEMA: Final = CELL_SCHEMA.append(pa.field(ORDER_FIELD, pa.int64()))
_NAMES: Final = (FAMILY, QUALIFIER, KIND)
_NAME = pa.dictionary(pa.int32(), pa.string())
#: The columns of the cells of a run: all but the row.
RUN_SCHEMA: Final = pa.schema(
    [field.with_type(_NAME) if field.name in _NAMES else field for field in STORED_SCHEMA if field.name != ROW]
)
_HASH, _START, _END = "hash", "start", "end"
#: The columns of a directory.
DIRECTORY_SCHEMA: Final = pa.schema([(_HASH, pa.int32()), (_START, pa.int64()), (_END, pa.int64()), (ROW, pa.string())])


@dataclass(frozen=True)
class AskedRows:
    """n distinct rows that are looked for: their texts, string array of n, and their hashes, ascending: so a search in
    a directory goes through it in one direction."""

    rows: pa.Array
    hashes: Int32s

    @classmethod
    def of(cls, rows: pa.Array) -> AskedRows:
        """The rows of a string array."""
        hashes = java_string_hash(rows)
        order = np.argsort(hashes, kind="stable")
        return cls(rows.take(pa.array(order)), hashes[order])

    def take(self, places: Longs) -> AskedRows:
        """Those at some places, ascending."""
        return AskedRows(self.rows.take(pa.array(places)), self.hashes[places])


@dataclass(frozen=True)
class CellRun:
    """n cells in the order in which they were written.

    Args:
        cells: in the columns of ``RUN_SCHEMA``.
        directory: in the columns of ``DIRECTORY_SCHEMA``: for each stretch of cells of one row the hash of the row, the
            first cell, the one after the last, and the row; by hash.
    """

    cells: pa.RecordBatch
    directory: pa.RecordBatch

    @classmethod
    def of(cls, cells: pa.Table) -> CellRun:
        """A run of cells in the columns of ``STORED_SCHEMA``: of less than 2 GB, and later ones replace earlier ones of
        the same key."""
        (batch,) = cells.combine_chunks().to_batches() or [_EMPTY]
        rows = batch.column(ROW)
        starts = _stretches(rows)
        ends = np.append(starts[1:], batch.num_rows).astype(np.int64)
        first = rows.take(pa.array(starts))
        hashes = java_string_hash(first)
        order = np.argsort(hashes, kind="stable")
        directory = [hashes[order], starts[order], ends[order], first.take(pa.array(order))]
        kept = [_coded(batch.column(field.name), field) for field in RUN_SCHEMA]
        return cls(
            pa.RecordBatch.from_arrays(kept, schema=RUN_SCHEMA),
            pa.RecordBatch.from_arrays([pa.array(column) for column in directory], schema=DIRECTORY_SCHEMA),
        )

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return int(self.cells.nbytes + self.directory.nbytes)

    def find(self, asked: AskedRows) -> FoundCells:
        """The cells of some rows."""
        hashes, starts, ends = (self.directory.column(name).to_numpy() for name in (_HASH, _START, _END))
        low = np.searchsorted(hashes, asked.hashes, side="left")
        count = np.searchsorted(hashes, asked.hashes, side="right") - low
        owner, stretch = _spread(low, count)
        same = pc.equal(self.directory.column(ROW).take(pa.array(stretch)), asked.rows.take(pa.array(owner)))
        kept = np.asarray(same.to_numpy(zero_copy_only=False), dtype=np.bool_)
        owner, stretch = owner[kept], stretch[kept]
        range_indices, cell = _spread(starts[stretch], ends[stretch] - starts[stretch])
        return FoundCells(owner[range_indices], self.cells.take(pa.array(cell)))

    def all_cells(self) -> pa.Table:
        """The cells in the columns of ``STORED_SCHEMA``, in their order."""
        starts, ends = (self.directory.column(name).to_numpy() for name in (_START, _END))
        order = np.argsort(starts, kind="stable")
        rows = self.directory.column(ROW).take(pa.array(np.repeat(order, (ends - starts)[order])))
        return stored_cells(rows, self.cells)


@dataclass(frozen=True)
class FoundCells:
    """The cells that a run has of the asked rows: for each the number of its row, int64, and the cell."""

    owner: Longs
    cells: pa.RecordBatch


def newest_cells(asked: AskedRows, found: Sequence[FoundCells]) -> pa.Table:
    """Of each key the newest cell: the one with the greatest sequence id, of equal ones the last.

    Args:
        asked: the rows that were looked for.
        found: what each run has of them, the oldest run first.

    Returns the columns of ``STORED_SCHEMA``.
    """
    parts = [part for part in found if len(part.owner)]
    if not parts:
        return STORED_SCHEMA.empty_table()
    owner = np.concatenate([part.owner for part in parts])
    cells = pa.Table.from_batches([part.cells for part in parts]).unify_dictionaries()
    kept = np.sort(_newest(owner, cells))
    if len(kept) < len(owner):
        owner, cells = owner[kept], cells.take(pa.array(kept))
    return stored_cells(asked.rows.take(pa.array(owner)), cells)


def stored_cells(rows: pa.Array, cells: pa.Table | pa.RecordBatch) -> pa.Table:
    """Cells of a run with their rows, in the columns of ``STORED_SCHEMA``."""
    table = pa.Table.from_batches([cells]) if isinstance(cells, pa.RecordBatch) else cells
    columns = [rows if f.name == ROW else table.column(f.name).cast(f.type) for f in STORED_SCHEMA]
    return pa.Table.from_arrays(columns, schema=STORED_SCHEMA)


def _newest(owner: Longs, cells: pa.Table) -> Longs:
    """The index of the newest cell of each key, in no promised order."""
    place = owner
    for name in _NAMES:
        column = cells.column(name)
        width = max(len(column.chunk(0).dictionary), 1)
        codes = np.concatenate([chunk.indices.to_numpy() for chunk in column.chunks])
        place = place * width + codes
    stamp = cells.column(TIMESTAMP).to_numpy()
    sequence = pc.fill_null(cells.column(ORDER_FIELD), LEAST).to_numpy()
    order = np.lexsort((sequence, stamp, place))
    last = np.ones(len(order), dtype=np.bool_)
    sorted_place, sorted_stamp = place[order], stamp[order]
    last[:-1] = (sorted_place[1:] != sorted_place[:-1]) | (sorted_stamp[1:] != sorted_stamp[:-1])
    return np.asarray(order[last], dtype=np.int64)


def _stretches(rows: pa.Array) -> Longs:
    """Where a stretch of equal rows begins."""
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    other = pc.not_equal(rows.slice(1), rows.slice(0, len(rows) - 1)).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.flatnonzero(other) + 1]).astype(np.int64)


def _spread(first: Longs, count: Longs) -> tuple[Longs, Longs]:
    """The numbers from each ``first`` on, ``count`` of them; with each the index of its range."""
    owner = np.repeat(np.arange(len(count), dtype=np.int64), count)
    before = np.cumsum(count) - count
    return owner, np.arange(len(owner), dtype=np.int64) + np.repeat(first - before, count)


def _coded(column: pa.Array, field: pa.Field) -> pa.Array:
    return column.dictionary_encode() if pa.types.is_dictionary(field.type) else column


_EMPTY = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in STORED_SCHEMA], schema=STORED_SCHEMA)
