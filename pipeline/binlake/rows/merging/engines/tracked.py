"""Versions that changes of some columns make: several events of a row in sequence are a *run* if they say the same of
the tracked columns, and a run is one version. It begins where its first event is, and has the values of its last one.

A late event may cut a run anywhere, and then each half has the values of its own last event. So the events of a run of
several are kept beside the table's files, with all their values, among the tombstones: a row there with IS_CURRENT is
such an event, one without it a delete. The one that was written last at a place counts. The version of a run of one
event is that event, and needs no copy, unless an event in its place was kept before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.columns import Flags, column_of
from binlake.rows.merging.engines.row_moments import (
    EVENT,
    NONE,
    STORED,
    GroupEvents,
    RowMoments,
    of_keys,
    truncated_events,
    versions_of,
)
from binlake.rows.merging.states import GroupStates
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.rows.upsert.version_columns import (
    DERIVED_FIELDS,
    END_AT,
    IS_CURRENT,
    KNOWN_FIELDS,
    START_AT,
    VALID_FROM,
    VALID_TO,
)
from hudilake.format.definition.merging import WRITER_ORDER, Merging
from hudilake.format.digest.rows import Digests, row_digests

#: What the writer works out of a row's other events.
_DERIVED: Final = frozenset(field.name for field in (*DERIVED_FIELDS, *KNOWN_FIELDS))


@dataclass(frozen=True, slots=True)
class Runs:
    """The m runs among the n places of some keys, in their order.

    ``heads``, ``tails``: the numbers of the places of their first and last events, int64 of m. ``of``: the number of
    the run of each place, int64 of n; -1 for none.
    """

    heads: Int64s
    tails: Int64s
    of: Int64s

    @staticmethod
    def among(places: RowMoments, digests: Digests) -> Runs:
        """``digests``: of the tracked columns at each place."""
        low, high = digests.low, digests.high
        alike = np.append(False, (low[1:] == low[:-1]) & (high[1:] == high[:-1]))
        goes_on = places.lives & places.follow(places.lives) & alike
        begins = places.lives & ~goes_on
        ends = places.lives & ~np.append(goes_on[1:], False)
        number = np.cumsum(begins) - 1
        return Runs(np.flatnonzero(begins), np.flatnonzero(ends), np.where(places.lives, number, -1))

    def with_any(self, flags: Flags) -> Flags:
        """Which of the runs have one of these places."""
        flagged: Flags = np.zeros(len(self.heads), dtype=np.bool_)
        flagged[self.of[flags & (self.of >= 0)]] = True
        return flagged

    def of_several(self) -> Flags:
        """Which places belong to a run of several, bool of n."""
        several = self.tails > self.heads
        return (self.of >= 0) & several[self.of] if len(several) else np.zeros(len(self.of), dtype=np.bool_)


def tracked_versions(
    batch: GroupEvents, states: GroupStates, file_id: str, schema: pa.Schema, merging: Merging
) -> tuple[pa.Table, Flags, pa.Table]:
    """The rows, overruled versions, and rows beside the files that events make (``versions.NewVersions``). Errors as
    ``GroupStates.dead``."""
    events, stored = batch.events, batch.stored
    columns = tuple(field.name for field in schema if field.name != ORDER_FIELD)
    beside = of_keys(states.dead(file_id, columns), batch.wanted)
    is_event = beside.column(IS_CURRENT).is_valid()
    within, dead = beside.filter(is_event).combine_chunks(), beside.filter(pc.invert(is_event)).combine_chunks()
    ended = stored.filter(stored.column(END_AT).is_valid())
    ends = ((ended, END_AT, VALID_TO), (dead, START_AT, VALID_FROM))
    places = RowMoments.of(events, batch.lives, stored, ends, within)
    values = _Values.at(places, (stored, within, events), schema)
    runs = Runs.among(places, values.digests(merging.is_tracked))
    known, is_same = _stored_ends(places, runs, stored)
    following, _ = places.next_of(runs.tails)
    changed = runs.with_any(places.rank == EVENT) | ~is_same | (known != following.fill_null(NONE).to_numpy())
    rows = _rows(places, runs, values, schema, np.flatnonzero(changed))
    heads = places.versions(runs.heads)
    overruled = ~np.asarray(pc.is_in(versions_of(stored), value_set=heads).to_numpy(zero_copy_only=False))
    kept = places.named_by(within)
    tombstones = places.tombstones(truncated_events(events), dead, kept)
    copied = _copies(places, runs, values, within, kept)
    return rows, overruled, pa.concat_tables([tombstones, copied], promote_options="default")


@dataclass(frozen=True, slots=True)
class _Values:
    """The values at n places. ``table``: of all rows that the places may have. ``chosen``: the number of each place's
    row, int64 of n; any where the row does not live."""

    table: pa.Table
    chosen: Int64s

    @staticmethod
    def at(places: RowMoments, parts: tuple[pa.Table, ...], schema: pa.Schema) -> _Values:
        """``parts``: stored versions, events within versions, events of the batch."""
        fields = [field for field in schema if field.name != ORDER_FIELD and field.name not in _DERIVED]
        columns = {
            field.name: pa.chunked_array([c for rows in parts for c in column_of(rows, field).chunks], field.type)
            for field in fields
        }
        first = np.cumsum([0, *map(len, parts[:-1])])
        offset = np.concatenate([[0], first])[places.rank]
        return _Values(pa.table(columns), np.where(places.lives, places.row + offset, 0))

    def take(self, numbers: Int64s) -> pa.Table:
        """The values at some places, which live."""
        return self.table.take(pa.array(self.chosen[numbers]))

    def digests(self, counts: Callable[[str], bool]) -> Digests:
        """Of the columns that count, at each place; any where the row does not live."""
        own = (START_AT, VALID_FROM)
        names = [name for name in self.table.column_names if name not in own and counts(name)]
        every = row_digests({name: self.table.column(name) for name in names}, len(self.table))
        return every.take(self.chosen) if len(self.table) else every


def _stored_ends(places: RowMoments, runs: Runs, stored: pa.Table) -> tuple[Int64s, Flags]:
    """Where the stored version that begins with each run ends, ``NONE`` for nowhere, and whether there is one."""
    index = pc.index_in(places.versions(runs.heads), value_set=versions_of(stored))
    ends = stored.column(END_AT).take(index).fill_null(NONE)
    return np.asarray(ends.to_numpy(), dtype=np.int64), np.asarray(index.is_valid().to_numpy(zero_copy_only=False))


def _rows(places: RowMoments, runs: Runs, values: _Values, schema: pa.Schema, chosen: Int64s) -> pa.Table:
    """The versions of some runs, by record key."""
    heads, tails = runs.heads[chosen], runs.tails[chosen]
    ends, times = places.next_of(tails)
    content = values.take(tails)
    own = {
        KEY: places.versions(heads),
        START_AT: pa.array(places.places[heads]),
        VALID_FROM: places.times.take(pa.array(heads)),
        END_AT: ends,
        VALID_TO: times,
        IS_CURRENT: pc.is_null(ends),
        ORDER_FIELD: pa.array(np.full(len(chosen), WRITER_ORDER, dtype=np.int64)),
    }
    columns = {KEY: own[KEY]}
    for field in schema:
        kept = content.column(field.name) if field.name in content.column_names else pa.nulls(len(chosen), field.type)
        columns[field.name] = own.get(field.name, kept)
    return pa.table(columns).sort_by(KEY)


def _copies(places: RowMoments, runs: Runs, values: _Values, within: pa.Table, kept: Flags) -> pa.Table:
    """The events of runs of several, as rows beside the files, and those in whose place there is another one of their
    transaction; without those that are there as they are. ``kept``: at which places ``within`` has an event."""
    again = places.lives & kept
    numbers = np.flatnonzero((runs.of_several() | again) & ((places.rank == EVENT) | (places.rank == STORED)))
    rows = values.take(numbers)
    rows = rows.set_column(rows.column_names.index(START_AT), START_AT, pa.array(places.places[numbers]))
    rows = rows.set_column(rows.column_names.index(VALID_FROM), VALID_FROM, places.times.take(pa.array(numbers)))
    keys = places.versions(numbers)
    rows = rows.add_column(0, KEY, keys).append_column(IS_CURRENT, pa.array(np.zeros(len(rows), dtype=np.bool_)))
    if not len(within) or not len(rows):
        return rows
    names = [name for name in rows.column_names if name not in (KEY, IS_CURRENT)]
    ours, theirs = (row_digests({name: some.column(name) for name in names}, len(some)) for some in (rows, within))
    index = pc.index_in(keys, value_set=within.column(KEY).combine_chunks())
    there = np.flatnonzero(index.is_valid().to_numpy(zero_copy_only=False))
    them = index.take(pa.array(there)).to_numpy()
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[there] = (ours.low[there] != theirs.low[them]) | (ours.high[there] != theirs.high[them])
    return rows.filter(pa.array(fresh))
