"""The engine ``scd2``: every event is a version of its row, valid until the next event of its key.

What a version's end is follows from the set of all events of its key alone, so batches, late events and events that
come again all lead to the same rows. Each place at which a key has an event is known from one of these: a stored
version begins there, or ends there; a tombstone says that the row was deleted there; the batch has an event there. Of
several events at one place the last one counts: they are of one transaction, and nobody saw the ones before it.

A delete that ends no version would be known from nothing, so it is a tombstone, which is kept as long as the table: an
event from before it may come at any time. TRUNCATEs need none, the table's commits name them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.columns import Flags, column_of
from binlake.rows.merging.engines.row_moments import (
    EVENT,
    NONE,
    GroupEvents,
    RowMoments,
    deletes_of,
    of_keys,
    truncated_events,
    versions_of,
)
from binlake.rows.merging.engines.tracked import tracked_versions
from binlake.rows.merging.states import GroupStates, MergeResult
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.merge import Place
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.rows.upsert.version_columns import (
    DERIVED_FIELDS,
    END_AT,
    IS_CURRENT,
    START_AT,
    VALID_FROM,
    VALID_TO,
)
from hudilake.format.definition.merging import WRITER_ORDER, Merging
from hudilake.format.files.file_group_write import FileGroupWrite


@dataclass(frozen=True, slots=True)
class NewVersions:
    """What events make of the versions that are stored of their rows.

    Args:
        rows: the versions that are new or end elsewhere now, by record key; a stored one has the key that it has.
        overruled: which stored versions are none any more: their own place is that of a delete.
        tombstones: of the deletes that no version's end tells, and the events within versions (``tracked``).
    """

    rows: pa.Table
    overruled: Flags
    tombstones: pa.Table

    @staticmethod
    def of(batch: GroupEvents, states: GroupStates, file_id: str, schema: pa.Schema, merging: Merging) -> NewVersions:
        """``schema``: the table's columns without meta fields. Errors as ``GroupStates.dead``."""
        if merging.tracks:
            return NewVersions(*tracked_versions(batch, states, file_id, schema, merging))
        events, lives, stored = batch.events, batch.lives, batch.stored
        dead = of_keys(states.dead(file_id, (START_AT, VALID_FROM)), batch.wanted)
        ended = stored.filter(stored.column(END_AT).is_valid())
        places = RowMoments.of(events, lives, stored, ((ended, END_AT, VALID_TO), (dead, START_AT, VALID_FROM)))
        changed = places.upserts(np.asarray(stored.column(END_AT).fill_null(NONE).to_numpy(), dtype=np.int64))
        rows = _rows(batch, schema, places, changed)
        return NewVersions(rows, _overruled(batch), places.tombstones(truncated_events(events), dead))


@dataclass(frozen=True, slots=True)
class Versions:
    """The merger of a table.

    Args:
        merging: of the table.
        schema: the table's columns without meta fields.
        states: of its rows.
    """

    merging: Merging
    schema: pa.Schema
    states: GroupStates

    def merge(self, place: Place, file_id: str, rows: pa.Table) -> MergeResult:
        """Returns the write of the new versions and of those that now end elsewhere. Errors as ``Merger.merge``."""
        batch = GroupEvents.of(rows, self.states, file_id, self.schema)
        made = NewVersions.of(batch, self.states, file_id, self.schema, self.merging)
        gone = batch.stored.column(KEY).combine_chunks().filter(pa.array(made.overruled))
        write = FileGroupWrite(place[0], file_id, made.rows if len(made.rows) else None, deletes_of(gone))
        return MergeResult(write, batch.superseded, made.tombstones if len(made.tombstones) else None)


def _rows(batch: GroupEvents, schema: pa.Schema, places: RowMoments, changed: Int64s) -> pa.Table:
    """The versions to write, by record key. ``changed``: their places' numbers."""
    events, stored, row = batch.events, batch.stored, places.row[changed]
    chosen = pa.array(np.where(places.rank[changed] == EVENT, row, len(events) + row))
    keys = pa.chunked_array([*events.column(KEY).chunks, *stored.column(KEY).chunks], pa.string())
    columns = {KEY: keys.take(chosen)}
    derived = {field.name for field in DERIVED_FIELDS}
    for field in schema:
        if field.name != ORDER_FIELD and field.name not in derived:
            both = [*column_of(events, field).chunks, *column_of(stored, field).chunks]
            columns[field.name] = pa.chunked_array(both, field.type).take(chosen)
    ends, times = places.next_of(changed)
    columns[END_AT], columns[VALID_TO] = ends, times
    columns[IS_CURRENT] = pc.is_null(ends)
    columns[ORDER_FIELD] = pa.array(np.full(len(changed), WRITER_ORDER, dtype=np.int64))
    return pa.table(columns).sort_by(KEY)


def _overruled(batch: GroupEvents) -> Flags:
    deleted = versions_of(batch.events.filter(pa.array(~batch.lives)))
    return np.asarray(pc.is_in(versions_of(batch.stored), value_set=deleted).to_numpy(zero_copy_only=False))
