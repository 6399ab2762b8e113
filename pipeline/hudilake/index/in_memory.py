"""IN_MEMORY: all record keys of a table in this process, read when the index is first asked.

A commit that its writer passed to the index counts once it has completed. After any other commit, it reads the table
again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.files.file_group_write import KeyChanges
from hudilake.index.base import KeyLocations, LookupCost
from hudilake.index.key_files import Longs
from hudilake.index.key_map import KeyMap
from hudilake.index.living_keys import all_living_keys
from hudilake.index.untold import changes_since, latest_change
from hudilake.storage.metered import Meter
from hudilake.table.table import HudiTable

_NONE: Final = -1


class InMemoryIndex:
    """Every key of an open table (see ``base.KeyIndex``); global.

    Args:
        table: open.
        most: keys at most.
    """

    def __init__(self, table: HudiTable, most: int) -> None:
        self._table, self._most = table, most
        #: The completion time up to which commits are taken in; None before the table was read.
        self._until: str | None = None
        self._kept: dict[str, Sequence[KeyChanges]] = {}
        self._map = KeyMap(1)
        self._numbers: dict[tuple[str, str], int] = {}

    def locate(self, keys: pa.Array, partition_paths: pa.Array) -> KeyLocations:
        """As ``KeyIndex.locate``. Raises UnsupportedError for a table with too many keys."""
        begun, cost = time.perf_counter(), LookupCost(keys=len(keys))
        self._take_in(cost)
        numbers = self._map.get(keys, _NONE)[0] if len(keys) else np.zeros(0, dtype=np.int64)
        places = pa.array(numbers, mask=numbers == _NONE)
        paths = pa.array([path for path, _ in self._numbers], pa.string())
        ids = pa.array([file_id for _, file_id in self._numbers], pa.string())
        cost.seconds = time.perf_counter() - begun
        return KeyLocations(paths.take(places), ids.take(places), cost)

    def keep(self, instant: str, changes: Sequence[KeyChanges]) -> None:
        """Keeps the changes of an instant in memory; they count once it has completed."""
        self._kept[instant] = list(changes)

    def _take_in(self, cost: LookupCost) -> None:
        changes = [] if self._until is None else changes_since(self._table, self._until)
        if self._until is None or any(change.requested_time not in self._kept for change in changes):
            self._read(cost)
        else:
            for change in changes:
                self._apply(self._kept[change.requested_time])
        self._until = latest_change(self._table)
        pending = self._table.timeline.pending_times()
        self._kept = {instant: changes for instant, changes in self._kept.items() if instant in pending}
        self._check_size(sum(len(run.keys) for run in self._map.runs))

    def _read(self, cost: LookupCost) -> None:
        meter, total = Meter(), 0
        self._map, self._numbers = KeyMap(1), {}
        keys: list[pa.Array] = []
        numbers: list[Longs] = []
        for file_slice, mine in all_living_keys(self._table, meter):
            total += len(mine)
            self._check_size(total)
            keys.append(mine)
            numbers.append(np.full(len(mine), self._number((file_slice.partition_path, file_slice.file_id))))
            cost.files_read += 1
        cost.files = cost.candidates = cost.files_read
        cost.bytes_read = meter.bytes_read
        if total:
            together = pa.concat_arrays(keys)
            self._check_distinct(together)
            self._map.put(together, np.concatenate(numbers)[np.newaxis, :])

    def _apply(self, changes: Sequence[KeyChanges]) -> None:
        """Deletes first: a key that moves is deleted in one file group and inserted in another."""
        for change in changes:
            number = self._number((change.partition_path, change.file_id))
            if len(change.deleted):
                mine = change.deleted.filter(pa.array(self._map.get(change.deleted, _NONE)[0] == number))
                self._map.put(mine, np.full((1, len(mine)), _NONE, dtype=np.int64))
        for change in changes:
            number = self._number((change.partition_path, change.file_id))
            self._map.put(change.inserted, np.full((1, len(change.inserted)), number, dtype=np.int64))

    def _number(self, place: tuple[str, str]) -> int:
        return self._numbers.setdefault(place, len(self._numbers))

    def _check_size(self, keys: int) -> None:
        if keys > self._most:
            raise UnsupportedError(
                f"the table has more than {self._most} record keys, the most that index in_memory may hold",
                do_next="raise index.in_memory_keys if the memory allows it, or make the table with another index",
                table=self._table.config.name,
            )

    def _check_distinct(self, keys: pa.Array) -> None:
        if pc.count_distinct(keys).as_py() == len(keys):
            return
        counts = pc.value_counts(keys)
        key = counts.field("values")[int(np.argmax(counts.field("counts").to_numpy()))].as_py()
        raise CorruptDataError(
            f"record key {key!r} has several rows",
            do_next="take all but one out (binlake verify --repair), or take a partitioned index",
            table=self._table.config.name,
        )
