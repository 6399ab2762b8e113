"""What becomes of events, given where their rows are: changes of rows, new rows, moves between partitions.

Rules of a move (measured, Hudi Spark 1.2.0, ``hoodie.bloom.index.update.partition.path``): the row is deleted in its
old partition and is a new one in the partition that the event names; an event that is older than the row and names
another partition does nothing; a delete deletes the row wherever it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from binlake.rows.tagging.events import KeyEvents
from binlake.rows.upsert.collapse import Int64s
from hudilake.format.definition.keys import KeyScope

#: The order of a row that was not read.
UNREAD = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where the rows of n events are.

    Args:
        partition_paths: string array of n; null where there is no row.
        file_ids: string array of n; null where there is no row.
        orders: the ordering values of the rows, int64 of n; UNREAD where it was not read or there is no row.
    """

    partition_paths: pa.Array
    file_ids: pa.Array
    orders: Int64s


@dataclass(frozen=True, slots=True)
class EventPlaces:
    """What n events do; all members are indexes of events, int64 arrays.

    Args:
        changes: update or delete the row in the file group where it is.
        moves: take the row out of the file group where it is; these are among ``inserts``.
        inserts: bring a row that is new in its partition.
        deletes: delete their row, or one that may come late; without those of a TRUNCATE.
    """

    changes: Int64s
    moves: Int64s
    inserts: Int64s
    deletes: Int64s


def placed(events: KeyEvents, where: Whereabouts, scope: KeyScope) -> EventPlaces:
    """What n events do; those that are older than their rows do nothing where the row's order is known.

    Args:
        events: of distinct rows, none older than the delete of its row.
        where: their rows.
        scope: of the table's record keys.
    """
    located = np.asarray(where.file_ids.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    deletes, fresh = events.deletes, events.orders >= where.orders
    elsewhere = located & ~deletes & scope.elsewhere(where.partition_paths, events.paths)
    moved = elsewhere & fresh
    return EventPlaces(
        np.flatnonzero(located & ~elsewhere & fresh),
        np.flatnonzero(moved),
        np.flatnonzero(~located & ~deletes | moved),
        np.flatnonzero(deletes & fresh & ~events.truncated),
    )
