"""The engine ``scd2``: every event is a version of its row, valid until the next event of its key.

What a version's end is follows from the set of all events of its key alone, so batches, late events and events that
come again all lead to the same rows. Each place at which a key has an event is known from one of these: a stored
version begins there, or ends there; a tombstone says that the row was deleted there; the batch has an event there. Of
several events at one place the last one counts: they are of one transaction, and nobody saw the ones before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import Op
from binlake.rows.merging.columns import Flags, column_of
from binlake.rows.merging.states import GroupStates, MergeResult
from binlake.rows.upsert.collapse import Int64s, codes_of, newest
from binlake.rows.upsert.merge import Place, records
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.rows.upsert.version_columns import (
    DERIVED_FIELDS,
    END_AT,
    IS_CURRENT,
    START_AT,
    VALID_FROM,
    VALID_TO,
    keys_of_versions,
)
from hudilake.format.definition.merging import WRITER_ORDER
from hudilake.format.files.file_group_write import FileGroupWrite

#: What counts at a place that several of them name, the lowest first.
_KNOWN_END, _STORED, _EVENT = 0, 1, 2
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Versions:
    """The merger of a table.

    Args:
        schema: the table's columns without meta fields.
        states: of its rows.
    """

    schema: pa.Schema
    states: GroupStates

    def merge(self, place: Place, file_id: str, rows: pa.Table) -> MergeResult:
        """Returns the write of the new versions and of those that now end elsewhere. Errors as ``Merger.merge``."""
        keep = newest(rows, *codes_of(rows.column(KEY).combine_chunks()))
        events = rows.take(pa.array(keep))
        superseded = records(rows) - records(events)
        event_keys = keys_of_versions(events.column(KEY).combine_chunks())
        wanted = pc.unique(event_keys)
        stored = _of_keys(self.states.live(file_id, self._stored_columns), wanted)
        dead = _of_keys(self.states.dead(file_id, (START_AT, VALID_FROM)), wanted)
        lives = np.asarray(events.column("__op").to_numpy() == Op.UPSERT)
        places = _Places.of(events, lives, stored, dead)
        changed = places.upserts(np.asarray(stored.column(END_AT).fill_null(_NONE).to_numpy(), dtype=np.int64))
        gone = _overruled(events, lives, stored)
        upserts = self._rows(events, stored, places, changed)
        write = FileGroupWrite(place[0], file_id, upserts if len(upserts) else None, _deletes(gone))
        ends = events.filter(pa.array(~lives)).select([KEY, START_AT, VALID_FROM])
        return MergeResult(write, superseded, ends if len(ends) else None)

    @property
    def _stored_columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.schema.names if name != ORDER_FIELD)

    def _rows(self, events: pa.Table, stored: pa.Table, places: _Places, changed: Int64s) -> pa.Table:
        """The versions to write, by record key. ``changed``: their places' numbers."""
        row = places.row[changed]
        chosen = pa.array(np.where(places.rank[changed] == _EVENT, row, len(events) + row))
        keys = pa.chunked_array([*events.column(KEY).chunks, *stored.column(KEY).chunks], pa.string())
        columns = {KEY: keys.take(chosen)}
        derived = {field.name for field in DERIVED_FIELDS}
        for field in self.schema:
            if field.name != ORDER_FIELD and field.name not in derived:
                both = [*column_of(events, field).chunks, *column_of(stored, field).chunks]
                columns[field.name] = pa.chunked_array(both, field.type).take(chosen)
        ends, times = places.next_of(changed)
        columns[END_AT], columns[VALID_TO] = ends, times
        columns[IS_CURRENT] = pc.is_null(ends)
        columns[ORDER_FIELD] = pa.array(np.full(len(changed), WRITER_ORDER, dtype=np.int64))
        return pa.table(columns).sort_by(KEY)


@dataclass(frozen=True, slots=True)
class _Places:
    """The n places of events of some keys, by key and place; one event a place.

    ``codes``: of the keys. ``places``: their places. ``times``: of the source. ``rank``: what names the place.
    ``lives``: whether the row exists from there on. ``row``: the row among the events, or the stored versions, that
    begins there.
    """

    codes: Int64s
    places: Int64s
    times: pa.Array
    rank: Int64s
    lives: Flags
    row: Int64s

    @classmethod
    def of(cls, events: pa.Table, lives: Flags, stored: pa.Table, dead: pa.Table) -> _Places:
        """All places that events, stored versions and tombstones name."""
        ended = stored.filter(stored.column(END_AT).is_valid())
        parts = [(ended, END_AT, VALID_TO), (dead, START_AT, VALID_FROM), (stored, START_AT, VALID_FROM)]
        parts.append((events, START_AT, VALID_FROM))
        keys = pa.chunked_array([c for rows, _, _ in parts for c in rows.column(KEY).chunks], pa.string())
        codes, _ = codes_of(keys_of_versions(keys).combine_chunks())
        places = np.concatenate([np.asarray(rows.column(name).to_numpy(), dtype=np.int64) for rows, name, _ in parts])
        time = [c for rows, _, name in parts for c in rows.column(name).chunks]
        times = pa.chunked_array(time, stored.schema.field(VALID_FROM).type)
        sizes = [len(rows) for rows, _, _ in parts]
        rank = np.repeat(np.array([_KNOWN_END, _KNOWN_END, _STORED, _EVENT]), sizes)
        alive = np.concatenate([np.zeros(sizes[0] + sizes[1], np.bool_), np.ones(sizes[2], np.bool_), lives])
        row = np.concatenate([np.arange(size) for size in sizes])
        ranked = np.lexsort([rank, places, codes])
        ends = (np.diff(codes[ranked], append=-1) != 0) | (np.diff(places[ranked], append=-1) != 0)
        last = ranked[ends]
        return cls(codes[last], places[last], times.take(pa.array(last)), rank[last], alive[last], row[last])

    def upserts(self, stored_ends: Int64s) -> Int64s:
        """The numbers of the places whose versions are new, or end elsewhere than ``stored_ends`` say of the stored
        versions (int64, ``_NONE`` for no end)."""
        known = np.full(len(self.places), _NONE, dtype=np.int64)
        mine = self.rank == _STORED
        known[mine] = stored_ends[self.row[mine]]
        return np.flatnonzero(self.lives & ((self.rank == _EVENT) | (mine & (self._next() != known))))

    def next_of(self, numbers: Int64s) -> tuple[pa.Array, pa.ChunkedArray]:
        """The places after these of the same key, and their times; null for none."""
        following = self._next()[numbers]
        none = following == _NONE
        return pa.array(following, mask=none), self.times.take(pa.array(numbers + 1, mask=none))

    def _next(self) -> Int64s:
        """The place after each of the same key, ``_NONE`` for none."""
        following = np.full(len(self.places), _NONE, dtype=np.int64)
        same = np.flatnonzero(self.codes[1:] == self.codes[:-1])
        following[same] = self.places[same + 1]
        return following


def _of_keys(rows: pa.Table, wanted: pa.Array) -> pa.Table:
    """The versions of some rows of the source."""
    return rows.filter(pc.is_in(keys_of_versions(rows.column(KEY)), value_set=wanted)).combine_chunks()


def _overruled(events: pa.Table, lives: Flags, stored: pa.Table) -> pa.Array:
    """The record keys of stored versions whose own place is now that of a delete."""
    deleted = events.column(KEY).filter(pa.array(~lives)).combine_chunks()
    keys = stored.column(KEY).combine_chunks()
    return keys.filter(pc.is_in(keys, value_set=deleted))


def _deletes(keys: pa.Array) -> pa.Table | None:
    if not len(keys):
        return None
    orders = pa.array(np.full(len(keys), WRITER_ORDER, dtype=np.int64))
    return pa.table({KEY: keys.take(pc.sort_indices(keys)), ORDER_FIELD: orders})
