"""What becomes of events, given where their rows are: changes of rows, new rows, moves between partitions.

Rules of a move (measured, Hudi Spark 1.2.0, ``hoodie.bloom.index.update.partition.path``): the row is deleted in its
old partition and is a new one in the partition that the event names; an event that is older than the row and names
another partition does nothing; a delete deletes the row wherever it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.hudi.files.log_rows import Flags
from pipeline.tagging.events import KeyEvents
from pipeline.upsert.collapse import Int64s
from pipeline.upsert.route import MOVED_AWAY

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
class Placed:
    """What events do.

    Args:
        changes: updates and deletes of rows.
        partition_paths, file_ids: the file group of each change, string arrays.
        inserts: events whose rows are new in their partitions.
        deleted: the names of the rows that were deleted (``KeyEvents.names``), string array.
        deleted_orders: the orders of these deletes, int64.
        moves: how many rows move between partitions.
    """

    changes: KeyEvents
    partition_paths: pa.Array
    file_ids: pa.Array
    inserts: KeyEvents
    deleted: pa.Array
    deleted_orders: Int64s
    moves: int


def placed(events: KeyEvents, where: Whereabouts, *, is_global: bool) -> Placed:
    """What n events do; those that are older than their rows are left out where the row's order is known.

    Args:
        events: of distinct rows, none older than the delete of its row.
        where: their rows.
        is_global: whether a record key names a row of the whole table.
    """
    found, late = _flags(where.file_ids.is_valid()), events.orders < where.orders
    deletes = events.deletes
    elsewhere = np.zeros_like(found)
    if is_global:
        elsewhere = found & ~deletes & ~same_paths(where.partition_paths, events.paths)
    moved, stays = elsewhere & ~late, found & ~elsewhere & ~late
    changed, gone = np.flatnonzero(stays), np.flatnonzero(moved)
    both = np.concatenate((changed, gone))
    changes = _with_deletes(events.take(both), len(changed))
    index = pa.array(both)
    buried = np.flatnonzero(deletes & ~late & ~events.truncated)
    names = events.take(buried).names(is_global=is_global)
    return Placed(
        changes,
        where.partition_paths.take(index),
        where.file_ids.take(index),
        events.take(np.flatnonzero((~found & ~deletes) | moved)),
        names,
        events.orders[buried],
        len(gone),
    )


def _with_deletes(events: KeyEvents, first: int) -> KeyEvents:
    """The events, those from ``first`` on as deletes at the previous places of rows that move."""
    if first == len(events):
        return events
    ops = np.array(events.rows.column("__op").to_numpy(), dtype=np.int8)
    ops[first:] = MOVED_AWAY
    at = events.rows.column_names.index("__op")
    return KeyEvents(events.rows.set_column(at, events.rows.schema.field(at), pa.array(ops)), events.paths)


def same_paths(paths: pa.Array, others: pa.DictionaryArray) -> Flags:
    """Whether n partition paths are equal to others, bool; false for null."""
    return _flags(pc.fill_null(pc.equal(paths, others.dictionary.take(others.indices)), fill_value=False))


def _flags(values: pa.Array) -> Flags:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.bool_)
