"""A wide table compared with its cells: every row as stored, and as the rules make it of the cells that are stored now.

The rows of commits that are not derived yet differ rightly, so they are left out. A row whose cells have expired since
its derivation is right until the next sweep.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import CELL_SCHEMA
from binlake.hbase.derive.pairs import DerivedPair
from binlake.hbase.derive.row_cells import RowCells
from binlake.hbase.derive.run import PORTION_ROWS, every_row
from binlake.hbase.derive.touched import touched_since
from binlake.hbase.rules.rules import Moment, visible
from binlake.hbase.rules.wide import wide_rows, wide_schema
from binlake.position.record_reader import RecordReader
from hudilake.clock import now_ms
from hudilake.read.slice import read_file_slice
from hudilake.table.table import HudiTable

_SHOWN = 10
Mask: TypeAlias = npt.NDArray[np.bool_]
Places: TypeAlias = npt.NDArray[np.int64]


@dataclass
class WideCheck:
    """What a comparison found.

    Args:
        rows: wide rows that the rules make.
        waiting: rows of commits that are not derived yet; they are not compared.
        unswept: rows that differ only because cells have expired since.
        missing, surplus, differing: how many rows the wide table lacks, has too many, has with other values.
        keys: some of these rows.
        why: why nothing can be compared; empty if it can.
    """

    rows: int = 0
    waiting: int = 0
    unswept: int = 0
    missing: int = 0
    surplus: int = 0
    differing: int = 0
    keys: list[str] = field(default_factory=list)
    why: str = ""

    @property
    def wrong(self) -> int:
        """The number of wrong rows."""
        return self.missing + self.surplus + self.differing


def check_wide(pair: DerivedPair, cells: HudiTable, wide: HudiTable, pool: Executor) -> WideCheck:
    """Compare every row of a wide table, except those that wait to be derived.

    Args:
        pair: the two tables.
        cells: the table of cells, open.
        wide: the wide table, open.
        pool: reads files.

    The wide table is in memory, once. Raises CorruptDataError, StorageError.
    """
    note = RecordReader.newest_of(wide).derived
    if note is None or note.until is None or note.fingerprint != pair.fingerprint:
        return WideCheck(why="it is not derived by the present declaration yet")
    waiting = touched_since(cells, note.until, pool)
    if waiting is not None and waiting.rows is None:
        return WideCheck(why=f"every row waits to be derived: {waiting.why}")
    left_out = waiting.rows if waiting is not None and waiting.rows is not None else pa.array([], pa.string())
    comparison = _Comparison(pair, cells, _stored(pair, wide), note.swept_ms)
    comparison.found.waiting = len(left_out)
    comparison.leave_out(left_out)
    for rows in every_row(cells, PORTION_ROWS):
        comparison.compare(rows.filter(pc.invert(pc.is_in(rows, left_out))))
    return comparison.ended()


def _stored(pair: DerivedPair, wide: HudiTable) -> pa.Table:
    schema = wide_schema(pair.declared)
    free = pa.schema([field_.with_nullable(True) for field_ in schema])
    parts = [read_file_slice(wide, piece, columns=schema.names).cast(free) for piece in wide.file_slices()]
    return pa.concat_tables([free.empty_table(), *parts]).combine_chunks()


@dataclass
class _Comparison:
    """A comparison under way. ``stored``: the wide table; ``swept_ms``: the moment of the last sweep."""

    pair: DerivedPair
    cells: HudiTable
    stored: pa.Table
    swept_ms: int
    found: WideCheck = field(default_factory=WideCheck)

    def __post_init__(self) -> None:
        self._keys = self.stored.column(self.pair.declared.key.name).combine_chunks()
        self._met = np.zeros(len(self.stored), dtype=np.bool_)

    def leave_out(self, rows: pa.Array) -> None:
        """Compare none of these rows."""
        self._place(wide_rows(CELL_SCHEMA.empty_table(), rows, self.pair.declared).gone)

    def compare(self, rows: pa.Array) -> None:
        """Compare rows of the store with the stored ones."""
        cells = RowCells(self.cells).of(rows)
        right = self._right(cells, rows, now_ms())
        self.found.rows += len(right)
        keys = right.column(self.pair.declared.key.name).combine_chunks()
        places = self._place(keys)
        differs = ~self._same(right, places)
        missing = places < 0
        if differs.any():  # a row whose cells have expired since the last sweep is as it was then
            before = self._right(cells, rows, self.swept_ms)
            was = pc.index_in(keys, value_set=before.column(self.pair.declared.key.name).combine_chunks())
            known = was.is_valid().to_numpy(zero_copy_only=False) & ~missing
            same = np.zeros(len(places), dtype=np.bool_)
            same[known] = self._same(before.take(was.filter(pa.array(known))), places[known])
            self.found.unswept += int((differs & same).sum())
            differs &= ~same
        self._tell(keys, missing, differs & ~missing)

    def _tell(self, keys: pa.Array, missing: Mask, differing: Mask) -> None:
        self.found.missing += int(missing.sum())
        self.found.differing += int(differing.sum())
        wrong = keys.filter(pa.array(missing | differing)).slice(0, _SHOWN)
        self.found.keys += [str(key) for key in wrong.to_pylist()]

    def ended(self) -> WideCheck:
        """Every row of the store was compared: what else is stored has no visible cell."""
        surplus = self._keys.filter(pa.array(~self._met))
        self.found.surplus = len(surplus)
        self.found.keys = [*self.found.keys, *map(str, surplus.slice(0, _SHOWN).to_pylist())][:_SHOWN]
        return self.found

    def _right(self, cells: pa.Table, rows: pa.Array, at_ms: int) -> pa.Table:
        shown = cells.filter(visible(cells, self.pair.kept, Moment(at_ms)))
        return wide_rows(shown, rows, self.pair.declared).upserts

    def _place(self, keys: pa.Array) -> Places:
        """Where keys are stored, -1 for nowhere."""
        places: Places = pc.fill_null(pc.index_in(keys, value_set=self._keys), -1).to_numpy().astype(np.int64)
        self._met[places[places >= 0]] = True
        return places

    def _same(self, rows: pa.Table, at: Places) -> Mask:
        """Whether rows are as stored there; False for -1."""
        there = self.stored.take(pa.array(np.maximum(at, 0))) if len(self.stored) else None
        if there is None:
            return np.zeros(len(at), dtype=np.bool_)
        same: Mask = at >= 0
        for name in rows.column_names:
            same = same & _equal(rows.column(name), there.column(name))
        return same


def _equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Mask:
    """Whether values are equal, null and not-a-number to themselves too."""
    if pa.types.is_nested(one.type):
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return np.array([repr(a) == repr(b) for a, b in pairs], dtype=np.bool_)
    same = pc.fill_null(pc.equal(one, other), False)
    same = pc.or_(same, pc.and_(pc.is_null(one, nan_is_null=True), pc.is_null(other, nan_is_null=True)))
    equal_mask: Mask = same.to_numpy()
    return equal_mask
