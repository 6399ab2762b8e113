"""Where the rows of a batch's events are: the answers of the index, and of the file groups where these do not suffice.

The index knows the keys of base files. In a table with log files the row of such a key may be deleted in the log. So
the orders of stored rows, which say whether a row lives, are read
- of rows in file groups under compaction: a row that is dead there is in no base file after it,
- of rows that may move: an event that is older does not move them,
- of rows to delete, if the index must learn which deletes count.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.tagging.events import KeyEvents
from binlake.rows.tagging.placing import UNREAD, Whereabouts
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.keys import KeyScope
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.view import FileSlice
from hudilake.format.timeline.timeline import Timeline
from hudilake.index.base import KeyLocations
from hudilake.read.slice import SliceReader
from hudilake.storage.base import Storage

_SCHEMA = pa.schema([pa.field(RECORD_KEY_FIELD, pa.string()), pa.field(ORDER_FIELD, pa.int64())])


@dataclass(frozen=True, slots=True)
class StoredOrders:
    """Reads the ordering values of rows.

    Args:
        storage: the table's root.
        timeline: loaded; decides which log blocks are visible.
        slices: the newest file slice of each file group, by file id.
        pool: file slices are read side by side.
    """

    storage: Storage
    timeline: Timeline
    slices: Mapping[str, FileSlice]
    pool: Executor

    def of(self, keys: pa.Array, file_ids: pa.Array) -> Int64s:
        """The ordering value of the row of each of n keys in its file group, int64; UNREAD where no row lives. Raises
        CorruptDataError, UnsupportedError, StorageError.

        Args:
            keys: string array of n.
            file_ids: string array of n without nulls.
        """
        orders = np.full(len(keys), UNREAD, dtype=np.int64)
        groups = file_ids.dictionary_encode()
        codes = np.asarray(groups.indices.to_numpy(), dtype=np.int64)
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(groups.dictionary) + 1))
        places = [order[low:high] for low, high in itertools.pairwise(bounds)]
        names = groups.dictionary.to_pylist()
        asked = [(name, keys.take(pa.array(positions))) for name, positions in zip(names, places, strict=True)]
        for positions, values in zip(places, self.pool.map(self._of_group, asked), strict=True):
            orders[positions] = values
        return orders

    def _of_group(self, asked: tuple[str, pa.Array]) -> Int64s:
        file_id, keys = asked
        rows = SliceReader(self.storage, _SCHEMA, ORDER_FIELD, self.timeline).read(self.slices[file_id])
        positions = pc.index_in(keys, value_set=rows.column(RECORD_KEY_FIELD).combine_chunks())
        orders = rows.column(ORDER_FIELD).combine_chunks().take(positions)
        return np.asarray(pc.fill_null(orders, UNREAD).to_numpy(), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Doubts:
    """When the answer of the index does not suffice.

    Args:
        scope: of the table's record keys: rows may move between the partitions of one.
        deletes: whether the index must learn which deletes count.
        compacting: file ids of the file groups under compaction; none if the index knows which rows live.
    """

    scope: KeyScope
    deletes: bool
    compacting: Collection[str] = ()

    def of(self, events: KeyEvents, located: KeyLocations) -> Int64s:
        """The indexes of the events whose rows must be read."""
        deletes = events.deletes
        asked = deletes & self.deletes | ~deletes & self.scope.elsewhere(located.partition_paths, events.paths)
        if self.compacting:
            compacting = pc.is_in(located.file_ids, value_set=pa.array(sorted(self.compacting), pa.string()))
            asked |= ~deletes & np.asarray(compacting.to_numpy(zero_copy_only=False))
        return np.flatnonzero(asked & np.asarray(located.file_ids.is_valid().to_numpy(zero_copy_only=False)))


def whereabouts(events: KeyEvents, located: KeyLocations, doubts: Doubts, stored: StoredOrders) -> Whereabouts:
    """Where the rows of n events live.

    Args:
        events: of distinct rows.
        located: the answer of the index for the events' keys, in their order.
        doubts: when the stored rows are asked.
        stored: the rows.

    Errors as ``StoredOrders.of``.
    """
    doubtful = doubts.of(events, located)
    orders = np.full(len(events), UNREAD, dtype=np.int64)
    if not len(doubtful):
        return Whereabouts(located.partition_paths, located.file_ids, orders)
    asked = pa.array(doubtful)
    orders[doubtful] = stored.of(events.keys.take(asked), located.file_ids.take(asked))
    dead = np.zeros(len(events), dtype=np.bool_)
    dead[doubtful] = orders[doubtful] == UNREAD
    none = pa.scalar(None, pa.string())
    paths, ids = (pc.if_else(pa.array(dead), none, a) for a in (located.partition_paths, located.file_ids))
    return Whereabouts(paths, ids, orders)
