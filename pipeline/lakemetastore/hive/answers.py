"""Tables and partitions as bytes, kept for the next client that asks.

What is kept is bounded by its bytes; the table that was not asked for longest goes first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from lakemetastore.catalog.logs import TableEntry
from lakemetastore.catalog.partitions import Partitions
from lakemetastore.hive import to_thrift
from lakemetastore.hive.message import encode
from lakemetastore.hive.partition_bytes import PartitionEncoder, text_list
from lakemetastore.model import Partition, Table

_SPARE = 1000
"""So many partitions that are gone are kept for each table without looking for them."""


class _KeptTable:
    """The bytes of a table and of its partitions, as of one definition. A partition that changes is another object."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.data = encode(to_thrift.table(table))
        self.size = len(self.data)
        self._names: tuple[Partitions, bytes] | None = None
        self._lock = threading.Lock()
        self._encoder = PartitionEncoder(table)
        self._partitions: dict[tuple[str, ...], tuple[Partition, bytes]] = {}

    def partitions(self, partitions: Iterable[Partition], count: int) -> list[bytes]:
        """The bytes of partitions; ``count``: how many the table has."""
        if len(self._partitions) > 2 * count + _SPARE:
            self._forget()
        kept = self._partitions.get
        return [
            encoding[1] if (encoding := kept(p.values)) is not None and encoding[0] is p else self._encoded(p)
            for p in partitions
        ]

    def names(self, partitions: Partitions) -> bytes:
        """The bytes of the list of all names."""
        kept = self._names
        if kept is None or kept[0] is not partitions:
            kept = self._names = (partitions, text_list(partitions.names()))
        return kept[1]

    def _encoded(self, p: Partition) -> bytes:
        with self._lock:
            data = self._encoder.encode(p)
            before = self._partitions.get(p.values)
            self.size += len(data) - (len(before[1]) if before else 0)
            self._partitions[p.values] = (p, data)
            return data

    def _forget(self) -> None:
        with self._lock:
            self._partitions.clear()
            self.size = len(self.data)


class Answers:
    """The bytes of tables and partitions by table. Thread safe.

    Args:
        limit: how many bytes are kept. The tables in use may go beyond it.
    """

    def __init__(self, limit: int = 512 << 20) -> None:
        self._limit = limit
        self._size = 0
        self._lock = threading.Lock()
        self._tables: OrderedDict[str, _KeptTable] = OrderedDict()

    def table(self, entry: TableEntry) -> bytes:
        """The bytes of ``ttypes.Table``."""
        return self._kept(entry).data

    def partitions(self, entry: TableEntry, partitions: Sequence[Partition]) -> list[bytes]:
        """The bytes of ``ttypes.Partition`` of some partitions of a table."""
        kept = self._kept(entry)
        before = kept.size
        encoded = kept.partitions(partitions, len(entry.partitions))
        if kept.size != before:
            self._grown(kept.size - before)
        return encoded

    def names(self, entry: TableEntry) -> bytes:
        """The bytes of the list of the names of all partitions."""
        return self._kept(entry).names(entry.partitions)

    def _kept(self, entry: TableEntry) -> _KeptTable:
        with self._lock:
            kept = self._tables.get(entry.id)
            if kept is not None and kept.table == entry.table:
                self._tables.move_to_end(entry.id)
                return kept
        fresh = _KeptTable(entry.table)
        with self._lock:
            former = self._tables.pop(entry.id, None)
            self._tables[entry.id] = fresh
        self._grown(fresh.size - (former.size if former else 0))
        return fresh

    def _grown(self, size: int) -> None:
        with self._lock:
            self._size += size
            while self._size > self._limit and len(self._tables) > 1:
                self._size -= self._tables.popitem(last=False)[1].size
