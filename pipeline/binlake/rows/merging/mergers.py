"""The ``Merger`` of a table, by what its properties say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from binlake.rows.merging.columns import Flags
from binlake.rows.merging.deleted_keys import DeletedKeys
from binlake.rows.merging.engines.aggregate import Aggregate
from binlake.rows.merging.engines.bitemporal import Bitemporal
from binlake.rows.merging.engines.change_rows import ChangeRows
from binlake.rows.merging.engines.first_row import FirstRow
from binlake.rows.merging.engines.heights import NOTHING_COUNTED, FactHeights
from binlake.rows.merging.engines.partial_update import PartialUpdate
from binlake.rows.merging.engines.versions import Versions
from binlake.rows.merging.group_orders import ColumnGroupEvents, Orders, asked, group_events, orders_after
from binlake.rows.merging.states import GroupStates, Merger, MergeResult, RowStates
from binlake.rows.merging.stitch import ColumnLayout, Partial, partial_rows, stitched
from binlake.rows.upsert.merge import Place, merge
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.merging import Engine, Merging
from hudilake.format.files.file_group_write import FileGroupWrite
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import Storage


@dataclass(frozen=True, slots=True)
class PlainMerger:
    """The newest event of a key is its row; readers merge by the events' orders."""

    def merge(self, place: Place, file_id: str, rows: pa.Table) -> MergeResult:
        """Returns the write of the newest event of each key; reads no stored row."""
        return MergeResult(*merge(place, file_id, rows))


@dataclass(frozen=True, slots=True)
class CopyMerger:
    """As ``PlainMerger``, without the rows that are older than the delete of their key: base files have no deletes that
    would keep them out.

    Args:
        storage: the table's root.
        timeline: of the table as of the commit's begin.
    """

    storage: Storage
    timeline: Timeline

    def merge(self, place: Place, file_id: str, rows: pa.Table) -> MergeResult:
        """As ``Merger.merge``. Raises CorruptDataError, StorageError."""
        write, superseded = merge(place, file_id, rows)
        if write.upserts is None:
            return MergeResult(write, superseded)
        orders = write.upserts.column(ORDER_FIELD).to_numpy()
        late = DeletedKeys.of(self.storage, self.timeline, file_id).superseded(write.upserts.column(KEY), orders)
        if not late.any():
            return MergeResult(write, superseded)
        kept = write.upserts.filter(pa.array(~late))
        return MergeResult(replace(write, upserts=kept if len(kept) else None), superseded + int(late.sum()))


@dataclass(frozen=True, slots=True)
class StitchMerger:
    """Column groups with orders of their own (``stitch``).

    Args:
        layout: of the table, under the schema of the commit.
        states: of the table as of the commit's begin.
        partial: where rows that go on living are partial. ``always`` keeps writers of other groups out of the way.
    """

    layout: ColumnLayout
    states: RowStates
    partial: Partial = "by_width"

    def merge(self, place: Place, file_id: str, rows: pa.Table) -> MergeResult:
        """Returns the write of stitched rows; the events name their ``GROUP`` too. Errors as ``Merger.merge``."""
        merging = self.layout.merging
        events = group_events(rows, merging)
        known = self.states.of(place, file_id, events.keys, asked(merging))
        orders = orders_after(events, known, merging)
        partial = partial_rows(orders, self.layout, self.partial)
        stored = self._stored(place, file_id, events, orders, partial)
        after = stitched(events, orders, partial, stored, self.layout)
        upserts, deletes = (part if len(part) else None for part in (after.upserts, after.deletes))
        write = FileGroupWrite(place[0], file_id, upserts, deletes, after.partials, after.only_inserts)
        return MergeResult(write, after.superseded, after.tombstones if len(after.tombstones) else None)

    def _stored(
        self, place: Place, file_id: str, events: ColumnGroupEvents, orders: Orders, partial: Flags
    ) -> pa.Table:
        """The values that whole rows keep, for all keys of the events."""
        columns = self.layout.wanted(orders, partial)
        needed = np.flatnonzero(orders.kept.any(axis=0) & ~partial)
        if not columns:
            return pa.table({})
        states = self.states.of(place, file_id, events.keys.take(pa.array(needed)), columns)
        index = np.full(len(events.keys), -1, dtype=np.int64)
        index[needed] = np.arange(len(needed))
        return states.rows.take(pa.array(index, mask=index < 0))


@dataclass(frozen=True, slots=True)
class MergedState:
    """What a merger needs of its table.

    Args:
        merging: what the properties say, not ``newest``.
        schema: the columns of the commit without meta fields.
        states: of the table as of the commit's begin.
        instant: of the commit.
        groups: of whole file groups, for an engine that asks for them.
        shared: the key and partition columns.
        partial: as for ``StitchMerger``.
        heights: how far the table has counted facts.
    """

    merging: Merging
    schema: pa.Schema
    states: RowStates
    shared: tuple[str, ...]
    instant: str
    partial: Partial = "by_width"
    heights: FactHeights = NOTHING_COUNTED
    groups: GroupStates | None = None


def _groups(of: MergedState) -> GroupStates:
    assert of.groups is not None  # ``TableRows.merger`` gives them
    return of.groups


_MERGERS: Final[Mapping[Engine, Callable[[MergedState], Merger]]] = {
    "stitched": lambda of: StitchMerger(ColumnLayout(of.merging, of.schema, of.shared), of.states, of.partial),
    "partial_update": lambda of: PartialUpdate(of.schema, of.states),
    "first_row": lambda of: FirstRow(of.schema, of.states),
    "aggregate": lambda of: Aggregate(of.merging, of.schema, of.states, of.heights),
    "scd2": lambda of: Versions(of.merging, of.schema, _groups(of)),
    "bitemporal": lambda of: Bitemporal(of.merging, of.schema, _groups(of), of.instant),
    "changes": lambda of: ChangeRows(of.schema, _groups(of)),
}


def merger_of(state: MergedState) -> Merger:
    """The merger of a table merged by its writer."""
    return _MERGERS[state.merging.engine](state)
