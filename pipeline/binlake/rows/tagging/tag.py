"""Finds the file group of every event of a batch: the stage ``tag`` of a commit."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from binlake.rows.merging.tombstones import TombstoneFiles
from binlake.rows.tagging.deletes import without_late
from binlake.rows.tagging.events import KeyEvents, newest_events
from binlake.rows.tagging.filling import FileGroupFill, InsertDistribution, row_bytes, small_files
from binlake.rows.tagging.locating import Doubts, StoredOrders, whereabouts
from binlake.rows.tagging.placing import EventPlaces, Whereabouts, placed
from binlake.rows.upsert.collapse import Int64s
from hudilake.commit.compaction_plan import pending_compactions, read_plan
from hudilake.commit.planned import groups_of
from hudilake.format.files.view import FileSlice
from hudilake.index.base import KeyIndex, LookupCost
from hudilake.policies import FileSizePolicy
from hudilake.table.table import HudiTable

_NO_ROWS: Int64s = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class FileGroupEvents:
    """The events of one file group, as indexes of the batch's.

    Args:
        partition_path: of the file group.
        file_id: of the file group, which may be new.
        rows: events that are written, int64; new rows among them if ``takes_new``.
        gone: events that take their row out of the file group, int64: it moves to another partition.
        takes_new: whether rows are new in the file group, so that they must be in its base file.
    """

    partition_path: str
    file_id: str
    rows: Int64s
    gone: Int64s
    takes_new: bool


@dataclass(frozen=True, slots=True)
class TaggedEvents:
    """Where the events of a batch go.

    Args:
        events: of distinct rows.
        placed: what they do.
        groups: the file groups that they change.
        applied: how many records are not superseded.
        cost: of the lookup.
    """

    events: KeyEvents
    placed: EventPlaces
    groups: Sequence[FileGroupEvents]
    applied: int
    cost: LookupCost


@dataclass(frozen=True, slots=True)
class Tagger:
    """Tags the events of one table.

    Args:
        table: on the state that the commit is based on.
        index: of the table.
        sizes: of base files.
        pool: file groups are read side by side.
        deleted: the files of the table's deletes that were read before.
    """

    table: HudiTable
    index: KeyIndex
    sizes: FileSizePolicy
    pool: Executor
    deleted: TombstoneFiles

    def tag(self, events: KeyEvents, instant: str) -> TaggedEvents:
        """Where n events go, n > 0. Raises CorruptDataError, UnsupportedError, StorageError.

        Args:
            events: several of one row among them.
            instant: of the commit.
        """
        scope = self.table.config.kind.scope
        newest = without_late(self.table, newest_events(events, scope), self.deleted)
        located = self.index.locate(newest.keys, newest.paths.dictionary.take(newest.paths.indices))
        slices = self.table.file_slices()
        where = whereabouts(newest, located, self._doubts(), self._stored(slices))
        what = placed(newest, where, scope)
        done = np.unique(np.concatenate((what.changes, what.inserts, what.deletes)))
        groups = self._groups(newest, where, what, slices, instant)
        return TaggedEvents(newest, what, groups, newest.take(done).records, located.cost)

    def _to_fill(self, slices: Sequence[FileSlice]) -> list[FileSlice]:
        """Those of file groups that no pending clustering will replace."""
        planned = groups_of(self.table.state.planned())
        return [piece for piece in slices if (piece.partition_path, piece.file_id) not in planned]

    def _doubts(self) -> Doubts:
        kind = self.table.config.kind
        compacting: set[str] = set()
        if not kind.keeps_keys:
            for pending in pending_compactions(self.table.timeline):
                compacting |= {one.file_id for one in read_plan(self.table.storage, pending).operations}
        return Doubts(kind.scope, kind.keeps_keys and not kind.copies, compacting)

    def _stored(self, slices: Sequence[FileSlice]) -> StoredOrders:
        table = self.table
        return StoredOrders(table.storage, table.timeline, {piece.file_id: piece for piece in slices}, self.pool)

    def _groups(
        self, events: KeyEvents, where: Whereabouts, what: EventPlaces, slices: Sequence[FileSlice], instant: str
    ) -> list[FileGroupEvents]:
        changes = _by_group(where, what.changes)
        gone = _by_group(where, what.moves)
        chunks: dict[tuple[str, str], FileGroupFill] = {}
        if len(what.inserts):
            inserts = events.take(what.inserts)
            touched = {file_id for _, file_id in (*changes, *gone)}
            small = small_files(self._to_fill(slices), self.sizes, touched, rewrites=self.table.config.kind.copies)
            size = row_bytes(self.table.timeline, inserts)
            filling = InsertDistribution(self.table.config.name, instant, self.sizes, size)
            chunks = {(c.partition_path, c.file_id): c for c in filling.chunks(inserts, small)}
        groups = []
        for place in sorted({*changes, *gone, *chunks}):
            chunk = chunks.get(place)
            new = what.inserts[chunk.rows] if chunk is not None else _NO_ROWS
            rows = np.concatenate((changes.get(place, _NO_ROWS), new))
            groups.append(FileGroupEvents(*place, rows, gone.get(place, _NO_ROWS), chunk is not None))
        return groups


def _by_group(where: Whereabouts, chosen: Int64s) -> dict[tuple[str, str], Int64s]:
    """Some events by (partition path, file id) of their rows."""
    if not len(chosen):
        return {}
    ids = where.file_ids.take(pa.array(chosen)).dictionary_encode()
    codes = np.asarray(ids.indices.to_numpy(), dtype=np.int64)
    order = np.argsort(codes, kind="stable")
    parts = np.split(chosen[order], np.flatnonzero(np.diff(codes[order])) + 1)
    return {(where.partition_paths[int(p[0])].as_py(), where.file_ids[int(p[0])].as_py()): p for p in parts}
