"""The places at which rows of the source have events: of what the source said of a row, and when.

A place is the ordering value of an event. ``binlake.rows.merging.engines.versions`` says from what places are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import Op
from binlake.rows.merging.columns import Flags
from binlake.rows.merging.states import GroupStates
from binlake.rows.merging.truncate import TRUNCATED
from binlake.rows.upsert.collapse import Int64s, codes_of, newest
from binlake.rows.upsert.merge import records
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.rows.upsert.version_columns import START_AT, VALID_FROM, key_of_version, keys_of_versions
from hudilake.format.definition.merging import WRITER_ORDER

#: What counts at a place that several of them name, the lowest first.
KNOWN_END, STORED, WITHIN, EVENT = 0, 1, 2, 3
#: No place.
NONE: Final = -1
#: Rows of record keys, and the names of their columns with places at which rows ended, and with the times of these.
Ends = tuple[pa.Table, str, str]


@dataclass(frozen=True, slots=True)
class RowMoments:
    """The n places of events of some keys, by key and place; one event a place.

    ``keys``: of the source's rows. ``codes``: of the keys. ``places``: their places. ``times``: of the source.
    ``rank``: what names the place. ``lives``: whether the row exists from there on. ``row``: the row among the events,
    the stored versions, or the stored events within versions, that begins there.
    """

    keys: pa.Array
    codes: Int64s
    places: Int64s
    times: pa.Array
    rank: Int64s
    lives: Flags
    row: Int64s

    @classmethod
    def of(
        cls, events: pa.Table, lives: Flags, stored: pa.Table, ends: Sequence[Ends], within: pa.Table | None = None
    ) -> RowMoments:
        """All places that are known.

        Args:
            events: with KEY, START_AT and VALID_FROM.
            lives: whether the row exists after each of the events.
            stored: the versions, with the same columns.
            ends: further places at which a row ended.
            within: stored events that are in the middle of versions, with the same columns.
        """
        inner = stored.slice(0, 0) if within is None else within
        parts = [*ends, *((rows, START_AT, VALID_FROM) for rows in (stored, inner, events))]
        keys = pa.chunked_array([c for rows, _, _ in parts for c in rows.column(KEY).chunks], pa.string())
        sources = keys_of_versions(keys).combine_chunks()
        codes, _ = codes_of(sources)
        places = np.concatenate([np.asarray(rows.column(name).to_numpy(), dtype=np.int64) for rows, name, _ in parts])
        chunks = [c for rows, _, name in parts for c in rows.column(name).chunks]
        times = pa.chunked_array(chunks, stored.schema.field(VALID_FROM).type)
        sizes = [len(rows) for rows, _, _ in parts]
        rank = np.repeat(np.array([KNOWN_END] * len(ends) + [STORED, WITHIN, EVENT]), sizes)
        alive = np.concatenate([np.zeros(sum(sizes[:-3]), np.bool_), np.ones(sum(sizes[-3:-1]), np.bool_), lives])
        row = np.concatenate([np.arange(size) for size in sizes])
        ranked = np.lexsort([rank, places, codes])
        final = (np.diff(codes[ranked], append=-1) != 0) | (np.diff(places[ranked], append=-1) != 0)
        last = ranked[final]
        chosen = pa.array(last)
        key, time = sources.take(chosen), times.take(chosen)
        return cls(key, codes[last], places[last], time, rank[last], alive[last], row[last])

    def upserts(self, stored_ends: Int64s) -> Int64s:
        """The numbers of the places whose versions are new, or end elsewhere than ``stored_ends`` say of the stored
        versions (int64, ``NONE`` for no end)."""
        known = np.full(len(self.places), NONE, dtype=np.int64)
        mine = self.rank == STORED
        known[mine] = stored_ends[self.row[mine]]
        return np.flatnonzero(self.lives & ((self.rank == EVENT) | (mine & (self._next() != known))))

    def follow(self, flags: Flags) -> Flags:
        """Whether the place before each of the same key is one of these."""
        return np.append(False, (self.codes[1:] == self.codes[:-1]) & flags[:-1])

    def at(self, flags: Flags) -> Flags:
        """Whether each place is that of one of these events."""
        flagged = np.asarray(self.rank == EVENT)
        flagged[flagged] = flags[self.row[flagged]]
        return flagged

    def versions(self, numbers: Int64s) -> pa.Array:
        """The record keys of the versions that begin at these places."""
        return key_of_version(self.keys.take(pa.array(numbers)), pa.array(self.places[numbers]))

    def named_by(self, rows: pa.Table) -> Flags:
        """Which of the places are those of some versions, by the record keys of these."""
        keys = self.versions(np.arange(len(self.places)))
        known = pc.is_in(keys, value_set=rows.column(KEY).combine_chunks())
        return np.asarray(known.to_numpy(zero_copy_only=False))

    def tombstones(self, named: Flags, dead: pa.Table, kept: Flags | None = None) -> pa.Table:
        """Tombstones of the deletes that no version's end tells any more.

        Args:
            named: which of the events are at places that the table's commits name.
            dead: the tombstones that there are.
            kept: at which places an event is kept; a delete there has a tombstone instead of it.
        """
        lost = ~self.lives & ~self.follow(self.lives) & ~self.at(named)
        if kept is not None:
            lost |= ~self.lives & kept
        numbers = np.flatnonzero(lost)
        times = self.times.take(pa.array(numbers))
        rows = pa.table({KEY: self.versions(numbers), START_AT: pa.array(self.places[numbers]), VALID_FROM: times})
        return rows.filter(pc.invert(pc.is_in(rows.column(KEY), value_set=dead.column(KEY).combine_chunks())))

    def next_of(self, numbers: Int64s) -> tuple[pa.Array, pa.ChunkedArray]:
        """The places after these of the same key, and their times; null for none."""
        following = self._next()[numbers]
        none = following == NONE
        return pa.array(following, mask=none), self.times.take(pa.array(numbers + 1, mask=none))

    def _next(self) -> Int64s:
        """The place after each of the same key, ``NONE`` for none."""
        following = np.full(len(self.places), NONE, dtype=np.int64)
        same = np.flatnonzero(self.codes[1:] == self.codes[:-1])
        following[same] = self.places[same + 1]
        return following


@dataclass(frozen=True, slots=True)
class GroupEvents:
    """The events of a batch for a file group, one a place, and what is stored of their keys.

    Args:
        events: the newest of each place.
        superseded: how many records count no longer.
        lives: whether the row exists after each of the events.
        wanted: the keys of the source's rows.
        stored: the stored rows of these keys, without the ordering column.
    """

    events: pa.Table
    superseded: int
    lives: Flags
    wanted: pa.Array
    stored: pa.Table

    @staticmethod
    def of(rows: pa.Table, states: GroupStates, file_id: str, schema: pa.Schema) -> GroupEvents:
        """``schema``: the table's columns without meta fields. Errors as ``GroupStates.live``."""
        events = rows.take(pa.array(newest(rows, *codes_of(rows.column(KEY).combine_chunks()))))
        lives = np.asarray(events.column("__op").to_numpy() == Op.UPSERT)
        wanted = pc.unique(keys_of_versions(events.column(KEY).combine_chunks()))
        columns = tuple(name for name in schema.names if name != ORDER_FIELD)
        stored = of_keys(states.live(file_id, columns), wanted)
        return GroupEvents(events, records(rows) - records(events), lives, wanted, stored)


def of_keys(rows: pa.Table, wanted: pa.Array) -> pa.Table:
    """The versions of some rows of the source."""
    return rows.filter(pc.is_in(keys_of_versions(rows.column(KEY)), value_set=wanted)).combine_chunks()


def versions_of(rows: pa.Table) -> pa.Array:
    """The keys that tell n versions apart: of the source's row, and the place where each begins."""
    keys = keys_of_versions(rows.column(KEY).combine_chunks())
    return key_of_version(keys, rows.column(START_AT).combine_chunks())


def truncated_events(events: pa.Table) -> Flags:
    """Which events are the ends that a TRUNCATE makes."""
    return np.asarray(events.column("__partition").to_numpy() == TRUNCATED)


def deletes_of(keys: pa.Array) -> pa.Table | None:
    """The deletes of n stored rows, by their record keys; None for none."""
    if not len(keys):
        return None
    orders = pa.array(np.full(len(keys), WRITER_ORDER, dtype=np.int64))
    return pa.table({KEY: keys.take(pc.sort_indices(keys)), ORDER_FIELD: orders})
