"""What a compaction of a table of cells may drop, as HBase's major compaction does it.

A change may come late, at most by the table's lateness. So what was written up to ``now - lateness``, the *horizon*, is
all here, and the store may have run a major compaction of it. That is done here: values that are masked, surplus or
expired as of the horizon go, and markers that mask nothing any more. The age of a cell is that of its writing, not of
its timestamp, which clients may choose. What is visible does not change, now and as of any timestamp from the horizon
on.

As after a major compaction of HBase, two kinds of later changes are seen differently: the delete of a version does not
expose a version that has gone, and a value with a timestamp from before the horizon is not masked by a marker that has
gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import WRITTEN
from binlake.hbase.rules.ordered import (
    DELETE,
    DELETE_FAMILY_VERSION,
    DELETE_RANGE,
    PUT,
    Bools,
    FamilyRules,
    Longs,
    OrderedCells,
    family_rules,
    ordered,
)
from binlake.hbase.rules.rules import masked_of, shown_of
from binlake.hbase.settings.rules import CellsRule

#: Markers that may expose an older version.
_EXPOSING: Final = (DELETE, DELETE_FAMILY_VERSION, DELETE_RANGE)


@dataclass(frozen=True, slots=True)
class _CellAges:
    """n cells in order, and their ages.

    Args:
        cut: the cells.
        families: their rules as of the horizon.
        written: were written up to the horizon, in a family that is declared; bool of n.
        early: have a timestamp up to the horizon; bool of n.
    """

    cut: OrderedCells
    families: FamilyRules
    written: Bools
    early: Bools

    @property
    def put(self) -> Bools:
        """Values; bool of n."""
        values: Bools = self.cut.kind == PUT
        return values

    @property
    def by_sequence(self) -> Bools:
        """Cells of families whose markers go by sequence; bool of n."""
        return self.families.by_sequence[self.cut.family].astype(np.bool_)

    @property
    def old(self) -> Bools:
        """The cells that a read as of the horizon, or any later time, has to count; bool of n."""
        timeless = ~self.put & ~self.families.keep_deleted[self.cut.family]
        old_mask: Bools = self.written & (self.early | timeless)
        return old_mask


def needed(cells: pa.Table, rule: CellsRule, horizon_ms: int) -> pa.BooleanArray:
    """Which cells a compaction keeps, boolean of n.

    Args:
        cells: n cells as ``rules.visible`` takes them, and ``WRITTEN``. A cell that does not say when it was written is
            kept, and so is every cell of a family that is not declared: its versions may be wanted.
        rule: of the table of cells.
        horizon_ms: wall time in milliseconds since 1970; all changes that the store made up to then have come.

    Raises:
        CorruptDataError: a cell's kind is not known.
    """
    families = family_rules(cells, rule, horizon_ms)
    cut = ordered(cells, families)
    written = pc.less_equal(cells[WRITTEN].combine_chunks().cast(pa.int64()), horizon_ms * 1000).fill_null(False)
    early: Bools = cut.timestamp < (horizon_ms + 1) * rule.ticks_per_ms
    aged = _CellAges(
        cut, families, written.to_numpy(zero_copy_only=False)[cut.at] & families.declared[cut.family], early
    )
    gone = _values_gone(aged)
    gone |= _markers_gone(aged, gone)
    gone &= ~_waiting(aged)
    kept = np.ones(len(cells), dtype=np.bool_)
    kept[cut.at] = ~gone
    return pa.array(kept)


def _values_gone(aged: _CellAges) -> Bools:
    """Old values that no read has, whether the deletes of versions since the horizon count or not; bool of n."""
    old = aged.old
    exposed = old | np.isin(aged.cut.kind, _EXPOSING)
    return old & aged.put & _hidden(aged, old) & _hidden(aged, exposed)


def _hidden(aged: _CellAges, among: Bools) -> Bools:
    """What no read of some of the cells has, and the store's major compaction drops; bool of n, all others False."""
    cut, families = aged.cut.chosen(among), aged.families
    masked = masked_of(cut, families)
    hidden = ~shown_of(cut, families, masked)
    newer = _newer_values(cut)
    expired = (cut.timestamp < families.oldest[cut.family]) & (newer >= families.min_versions[cut.family])
    surplus = newer >= families.versions[cut.family]
    hidden &= ~(masked.astype(np.bool_) & families.keep_deleted[cut.family]) | expired | surplus
    hidden_mask = np.zeros(len(among), dtype=np.bool_)
    hidden_mask[among] = hidden
    return hidden_mask


def _newer_values(cut: OrderedCells) -> Longs:
    """How many newer values, masked ones too, each cell's column has; int64 of n."""
    put = (cut.kind == PUT).astype(np.int64)
    before = np.cumsum(put) - put
    first = np.ones(len(put), dtype=np.bool_)
    first[1:] = cut.column[1:] != cut.column[:-1]
    start = np.maximum.accumulate(np.where(first, np.arange(len(put)), 0))
    newer: Longs = before - before[start]
    return newer


def _markers_gone(aged: _CellAges, gone: Bools) -> Bools:
    """Markers from before the horizon that mask no value which is left; bool of n."""
    from binlake.hbase.rules.markers import mark_used  # needs compiled loops, seconds to import

    cut = aged.cut
    order = np.where(aged.by_sequence, cut.order, 0)
    used = np.zeros(len(gone), dtype=np.uint8)
    kept = (~gone).astype(np.uint8)
    mark_used(cut.group, cut.column, cut.timestamp, cut.kind, cut.start, order, kept, used)
    gone_mask: Bools = aged.written & ~aged.put & (aged.early | aged.by_sequence) & (used == 0)
    return gone_mask


def _waiting(aged: _CellAges) -> Bools:
    """Rows' families by sequence where a change came late: one from after the horizon is before an old one; bool of n.

    How old deletes and late values count together is then not known from what is left.
    """
    cut, least, most = aged.cut, np.iinfo(np.int64).min, np.iinfo(np.int64).max
    _, group = np.unique(cut.group, return_inverse=True)
    groups = int(group.max()) + 1 if len(group) else 0
    newest_old, oldest_new = np.full(groups, least), np.full(groups, most)
    np.maximum.at(newest_old, group, np.where(aged.written, cut.order, least))
    np.minimum.at(oldest_new, group, np.where(aged.written, most, cut.order))
    waits: Bools = aged.by_sequence & (oldest_new <= newest_old)[group]
    return waits
