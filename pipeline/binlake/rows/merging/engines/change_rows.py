"""The engine ``changes``: every change of a row of the source is a row, an update two: before it and after it.

What a change did follows from the places of its key (``row_moments``), as versions do: an event makes an insert where
the row was not there before it, and what an update or a delete changed is what the event before it left. A late event
mends the change after it. Deletes are rows, so all places are known as long as the table is there; TRUNCATEs that found
no row are named by the table's commits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.columns import Flags, column_of
from binlake.rows.merging.engines.row_moments import EVENT, GroupEvents, RowMoments, deletes_of, truncated_events
from binlake.rows.merging.states import GroupStates, MergeResult
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.merge import Place
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.rows.upsert.version_columns import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    SOURCE_TRANSACTION,
    START_AT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    VALID_FROM,
    key_of_change,
    key_of_version,
    keys_of_versions,
)
from hudilake.format.definition.merging import WRITER_ORDER
from hudilake.format.files.file_group_write import FileGroupWrite


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """The merger of a table.

    Args:
        schema: the table's columns without meta fields.
        states: of its rows.
    """

    schema: pa.Schema
    states: GroupStates

    def merge(self, place: Place, file_id: str, rows: pa.Table) -> MergeResult:
        """Returns the write of the changes that the events make, and of those right after them. Errors as
        ``Merger.merge``."""
        batch = GroupEvents.of(rows, self.states, file_id, self.schema)
        events, stored = batch.events, batch.stored
        change_types = stored.column(CHANGE_TYPE)
        versions = stored.filter(pc.is_in(change_types, value_set=pa.array([INSERT, UPDATE_AFTER])))
        gone = stored.filter(pc.equal(change_types, DELETE))
        places = RowMoments.of(events, batch.lives, versions, ((gone, START_AT, VALID_FROM),))
        own = places.row + np.array([len(events) + len(versions), len(events), 0, 0])[places.rank]
        made = self._changes(places, own, truncated_events(events), (events, versions, gone))
        stale = _stale(stored, places, made)
        write = FileGroupWrite(place[0], file_id, made if len(made) else None, deletes_of(stale))
        return MergeResult(write, batch.superseded)

    def _changes(self, places: RowMoments, own: Int64s, named: Flags, parts: tuple[pa.Table, ...]) -> pa.Table:
        """The rows to write, by record key.

        Args:
            places: all of the keys.
            own: the row of each place in ``parts``, one after the other.
            named: which of the events are TRUNCATEs.
            parts: events, stored versions, stored deletes.
        """
        follows = places.follow(places.lives)
        there = places.lives | follows | ~places.at(named)
        anew = _anew(places)
        after, before = np.flatnonzero(anew & there), np.flatnonzero(anew & places.lives & follows)
        kinds = np.where(places.lives, np.where(follows, UPDATE_AFTER, INSERT), DELETE)[after]
        content = np.where(places.lives[after] | ~follows[after], own[after], own[after - 1])
        numbers = pa.array(np.concatenate([after, before]))
        chosen = pa.array(np.concatenate([content, own[before - 1]]))
        change_types = pa.array([*kinds.tolist(), *[UPDATE_BEFORE] * len(before)], pa.string())
        columns = {
            KEY: key_of_change(places.keys.take(numbers), pa.array(places.places).take(numbers), change_types),
            START_AT: pa.array(places.places).take(numbers),
            VALID_FROM: places.times.take(numbers),
            CHANGE_TYPE: change_types,
            ORDER_FIELD: pa.array(np.full(len(numbers), WRITER_ORDER, dtype=np.int64)),
        }
        for field in self.schema:
            if field.name not in columns:
                chunks = [chunk for rows in parts for chunk in column_of(rows, field).chunks]
                of = pa.array(own).take(numbers) if field.name == SOURCE_TRANSACTION else chosen
                columns[field.name] = pa.chunked_array(chunks, field.type).take(of)
        return pa.table({KEY: columns[KEY]} | {name: columns[name] for name in self.schema.names}).sort_by(KEY)


def _anew(places: RowMoments) -> Flags:
    """The places whose changes are written: those of events, and those right after them."""
    event = np.asarray(places.rank == EVENT)
    return event | places.follow(event)


def _stale(stored: pa.Table, places: RowMoments, made: pa.Table) -> pa.Array:
    """The record keys of stored changes that are other ones now."""
    anew = pa.array(np.flatnonzero(_anew(places)))
    those = key_of_version(places.keys.take(anew), pa.array(places.places).take(anew))
    keys = stored.column(KEY).combine_chunks()
    there = key_of_version(keys_of_versions(keys), stored.column(START_AT).combine_chunks())
    mine = pc.is_in(there, value_set=those)
    return keys.filter(pc.and_(mine, pc.invert(pc.is_in(keys, value_set=made.column(KEY).combine_chunks()))))
