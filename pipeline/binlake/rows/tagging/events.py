"""The newest event of every record key of a batch.

A table with a global index has one row for a record key in the whole table. So an update that changes the partition is
one event there: the delete at the row's previous place, which the decode task adds, gives way to the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from binlake.decode.changes import Op
from binlake.rows.merging.truncate import TRUNCATED
from binlake.rows.upsert.collapse import Int64s, codes_of, newest
from binlake.rows.upsert.merge import records
from binlake.rows.upsert.parcel import Parcel, unpack
from binlake.rows.upsert.route import KEY, MOVED_AWAY
from hudilake.format.definition.keys import KeyScope
from hudilake.format.files.log_rows import Flags


@dataclass(frozen=True, slots=True)
class KeyEvents:
    """n events of distinct rows.

    Args:
        rows: n rows as parcels hold them.
        paths: the partition path that each event names, dictionary array of strings, n.
    """

    rows: pa.Table
    paths: pa.DictionaryArray

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def keys(self) -> pa.Array:
        """The record keys, string array of n."""
        return _one(self.rows.column(KEY))

    @property
    def orders(self) -> Int64s:
        """The ordering values, int64 of n."""
        return np.asarray(self.rows.column("__order").to_numpy(), dtype=np.int64)

    @property
    def deletes(self) -> Flags:
        """Whether each event deletes its row, bool of n."""
        ops = np.asarray(self.rows.column("__op").to_numpy(), dtype=np.int8)
        return np.not_equal(ops, int(Op.UPSERT))

    @property
    def truncated(self) -> Flags:
        """Whether each event is a delete that a TRUNCATE added, bool of n."""
        partitions = np.asarray(self.rows.column("__partition").to_numpy(), dtype=np.int32)
        return np.equal(partitions, TRUNCATED)

    def names(self, scope: KeyScope) -> pa.Array:
        """What names a row in the whole table, string array of n."""
        return scope.names(self.keys, self.paths)

    def take(self, chosen: Int64s) -> KeyEvents:
        """The events at these indexes."""
        index = pa.array(chosen)
        return KeyEvents(self.rows.take(index), self.paths.take(index))

    @property
    def records(self) -> int:
        """How many are records of their own."""
        return records(self.rows)


def events_of(parcels: Sequence[Parcel]) -> KeyEvents:
    """All rows of parcels, n > 0 of them."""
    by_path: dict[str, list[Parcel]] = {}
    for parcel in parcels:
        by_path.setdefault(parcel.partition_path, []).append(parcel)
    return joined({path: unpack(some) for path, some in by_path.items()})


def joined(by_path: Mapping[str, pa.Table]) -> KeyEvents:
    """The rows of some partitions; columns missing in one of them are null in its rows. At least one partition."""
    tables = list(by_path.values())
    numbers = np.repeat(np.arange(len(tables), dtype=np.int32), [len(rows) for rows in tables])
    paths = pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(list(by_path), pa.string()))
    rows = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    return KeyEvents(rows.combine_chunks(), paths)  # rows are taken file group by file group


def newest_events(events: KeyEvents, scope: KeyScope) -> KeyEvents:
    """The newest event of every row.

    Args:
        events: n events, several of one row among them.
        scope: of the table's record keys.
    """
    if not scope.by_partition:
        events = _moves_first(events)
    keep = newest(events.rows, *codes_of(events.keys, scope.paths(events.paths)))
    return events if len(keep) == len(events) else events.take(keep)


def _moves_first(events: KeyEvents) -> KeyEvents:
    """The deletes at previous places before all other events: of events that are equal in order the last one counts."""
    moved = np.asarray(events.rows.column("__op").to_numpy()) == MOVED_AWAY
    return events.take(np.argsort(~moved, kind="stable")) if moved.any() else events


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
