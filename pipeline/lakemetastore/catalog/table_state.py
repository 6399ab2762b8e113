"""A table at one version, the state of its log: its definition, its partitions, the statistics of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from lakemetastore.catalog.entries import (
    PartitionRows,
    PartitionsChange,
    StatisticsDrop,
    StatisticsPut,
    Storages,
    TableChange,
    TableDefinition,
)
from lakemetastore.catalog.locations import moved_below
from lakemetastore.catalog.names import namer
from lakemetastore.catalog.partitions import Partitions
from lakemetastore.log.fold import VersionedChange
from lakemetastore.model import Column, Partition, Table

Statistics = Mapping[str, Mapping[str, bytes]]


@dataclass(frozen=True)
class TableState:
    """A table. ``table`` is None for a log that is empty or deleted; its names there may be out of date.

    ``statistics``: by partition name (the table's own: the empty name), then by column, as the client encoded them.
    """

    table: Table | None = None
    partitions: Partitions = field(default_factory=lambda: Partitions(()))
    statistics: Statistics = field(default_factory=dict)
    storages: Storages = field(default_factory=Storages)


class _Snapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    table: Table | None
    partitions: PartitionRows = PartitionRows()
    statistics: dict[str, dict[str, bytes]] = {}


class TableFold:
    """Folds the changes of a table's log."""

    def __init__(self) -> None:
        self._changes: msgspec.msgpack.Decoder[TableChange] = msgspec.msgpack.Decoder(TableChange)
        self._snapshots = msgspec.msgpack.Decoder(_Snapshot)

    def empty(self) -> TableState:
        """The state of a log without entries."""
        return TableState()

    def apply(self, state: TableState, changes: Sequence[VersionedChange[TableChange]]) -> TableState:
        """The state after some changes."""
        pending = _PartitionChanges()
        for versioned in changes:
            change = versioned.change
            if isinstance(change, PartitionsChange) and not state.statistics:
                pending.add(state, change)
                continue
            state = pending.applied(state)
            if isinstance(change, PartitionsChange):
                state = _renamed(state, change)
                pending.add(state, change)
                state = pending.applied(state)
            else:
                state = _defined(state, change) if isinstance(change, TableDefinition) else _counted(state, change)
        return pending.applied(state)

    def encode(self, change: TableChange) -> bytes:
        """A change as msgpack."""
        return msgspec.msgpack.encode(change)

    def decode(self, data: bytes) -> TableChange:
        """A change from msgpack. Raises msgspec.DecodeError."""
        return self._changes.decode(data)

    def dump(self, state: TableState) -> bytes:
        """A state as a snapshot."""
        statistics = {name: dict(columns) for name, columns in state.statistics.items()}
        return msgspec.msgpack.encode(_Snapshot(state.table, PartitionRows.of(state.partitions), statistics))

    def load(self, data: bytes) -> TableState:
        """The state of a snapshot. Raises msgspec.DecodeError."""
        snapshot = self._snapshots.decode(data)
        if snapshot.table is None:
            return TableState()
        state = TableState(snapshot.table, Partitions(snapshot.table.partition_keys), snapshot.statistics)
        pending = _PartitionChanges()
        pending.add(state, PartitionsChange(put=snapshot.partitions))
        return pending.applied(state)


class _PartitionChanges:
    """Changes of partitions that follow one another, put together so that they are applied at once."""

    def __init__(self) -> None:
        self._dropped: set[str] = set()
        self._put: dict[str, Partition] = {}

    def add(self, state: TableState, change: PartitionsChange) -> None:
        for name in change.dropped:
            self._put.pop(name, None)
            self._dropped.add(name)
        name_of = namer(state.partitions.keys)
        for partition in change.put.partitions(state.storages):
            self._put[name_of(partition.values)] = partition

    def applied(self, state: TableState) -> TableState:
        if not self._dropped and not self._put:
            return state
        partitions = state.partitions.changed(self._dropped, self._put)
        gone = self._dropped - self._put.keys()
        statistics = {n: c for n, c in state.statistics.items() if n not in gone} if state.statistics else {}
        for name in statistics.keys() & self._put.keys():
            before, after = state.partitions.named(name), self._put[name]
            if before is not None:
                statistics[name] = _still_true(statistics[name], before.storage.columns, after.storage.columns)
        self._dropped, self._put = set(), {}
        return replace(state, partitions=partitions, statistics=_not_empty(statistics))


def _renamed(state: TableState, change: PartitionsChange) -> TableState:
    """A partition that gets another name takes its statistics along, those of columns that it still has."""
    if change.renamed is None or change.dropped[0] not in state.statistics:
        return state
    old = change.dropped[0]
    statistics = dict(state.statistics)
    columns, before = statistics.pop(old), state.partitions.named(old)
    after = change.put.storages[change.put.rows[0].storage]
    if before is not None:
        statistics[change.renamed] = _still_true(columns, before.storage.columns, after.columns)
    return replace(state, statistics=_not_empty(statistics))


def _defined(state: TableState, change: TableDefinition) -> TableState:
    if state.table is None:
        return replace(state, table=change.table, partitions=Partitions(change.table.partition_keys))
    partitions = state.partitions.with_keys(change.table.partition_keys)
    if change.cascade or change.moved_from is not None:
        put = {
            name: _following(partition, change, state.storages)
            for name, partition in zip(partitions.names(), partitions, strict=True)
        }
        partitions = partitions.changed((), put)
    statistics = _statistics_after(state, change.table) if state.statistics else {}
    return replace(state, table=change.table, partitions=partitions, statistics=statistics)


def _following(partition: Partition, change: TableDefinition, storages: Storages) -> Partition:
    """A partition after the definition of its table has changed."""
    storage, location = partition.storage, partition.location
    if change.cascade:
        storage = storages.shared(msgspec.structs.replace(storage, columns=change.table.storage.columns))
    if change.moved_from is not None and change.table.location is not None:
        location = moved_below(location, change.moved_from, change.table.location)
    return msgspec.structs.replace(partition, storage=storage, location=location)


def _statistics_after(state: TableState, table: Table) -> Statistics:
    """The statistics after the columns of a table have changed: those of its partitions are judged by the columns of
    the table, too, whether these follow or not (Hive Metastore 3.1.3)."""
    assert state.table is not None
    before, after = state.table.storage.columns, table.storage.columns
    if _types(before) == _types(after):
        return state.statistics
    valid_statistics = {}
    for name, columns in state.statistics.items():
        partition = state.partitions.named(name) if name else None
        valid_statistics[name] = _still_true(columns, partition.storage.columns if partition else before, after)
    return _not_empty(valid_statistics)


def _still_true(columns: Mapping[str, bytes], before: Sequence[Column], after: Sequence[Column]) -> Mapping[str, bytes]:
    """The statistics of columns that still are there with their types."""
    same = _types(before).items() & _types(after).items()
    known = {name for name, _ in same}
    return {name: data for name, data in columns.items() if name.lower() in known}


def _types(columns: Sequence[Column]) -> dict[str, str]:
    return {column.name.lower(): column.type.lower() for column in columns}


def _not_empty(statistics: Mapping[str, Mapping[str, bytes]]) -> Statistics:
    return {name: columns for name, columns in statistics.items() if columns}


def _counted(state: TableState, change: StatisticsPut | StatisticsDrop) -> TableState:
    statistics = dict(state.statistics)
    columns = dict(statistics.pop(change.partition, {}))
    if isinstance(change, StatisticsPut):
        columns.update(change.columns)
    elif change.column is None:
        columns.clear()
    else:
        columns.pop(change.column, None)
    if columns:
        statistics[change.partition] = columns
    return replace(state, statistics=statistics)
