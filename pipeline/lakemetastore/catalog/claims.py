"""Who in a catalog has which place: databases, tables, and partitions that are not where they are by default."""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from lakemetastore.catalog.locations import below, comparable, covers
from lakemetastore.catalog.partitions import Chunk, Partitions
from lakemetastore.errors import NoSuchObjectError, UnknownDatabaseError

if TYPE_CHECKING:
    from lakemetastore.catalog.catalog import Catalog
    from lakemetastore.catalog.logs import TableEntry

_scattered: WeakKeyDictionary[Chunk, tuple[str, list[tuple[str, str]]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Removal:
    """What a call takes away or moves, so that its own places do not stand in its way.

    Args:
        tables: ids of tables.
        partitions: of the one table, the names of those that go; None for the whole tables.
        databases: names.
        kept: places of what goes from the catalog and whose files stay.
    """

    tables: frozenset[str] = frozenset()
    partitions: frozenset[str] | None = None
    databases: frozenset[str] = frozenset()
    kept: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claims:
    """Who has which place of a catalog, without what goes. The catalog is read once, at the first question.

    Args:
        catalog: whose.
        going: what goes.
        real: a location as one text for each place.
    """

    catalog: Catalog
    going: Removal
    real: Callable[[str], str] = comparable

    def on(self, location: str) -> str | None:
        """Who else has a place, something above it or something below; None if nobody. A database has what is above
        its directory only, since its tables are below."""
        place = self.real(location)
        if holder := self._others.touching(place) or self._databases.below(place):
            return holder
        return next(filter(None, (self._of_same(entry, place) for entry in self._same)), None)

    @cached_property
    def _entries(self) -> list[TableEntry]:
        entries: list[TableEntry] = []
        for name in self.catalog.databases.names():
            with contextlib.suppress(NoSuchObjectError, UnknownDatabaseError):  # dropped meanwhile
                entries += self.catalog.tables.named(name, self.catalog.tables.names(name))
        return entries

    @cached_property
    def _same(self) -> list[TableEntry]:
        """The tables of which partitions go."""
        return [e for e in self._entries if e.id in self.going.tables] if self.going.partitions is not None else []

    @cached_property
    def _databases(self) -> _OwnedPlaces:
        owners = {}
        for name in self.catalog.databases.names():
            with contextlib.suppress(NoSuchObjectError):
                location = None if name in self.going.databases else self.catalog.databases.get(name).location
                if location:
                    owners[self.real(location)] = f"the database {name}"
        return _OwnedPlaces(owners)

    @cached_property
    def _others(self) -> _OwnedPlaces:
        """The places of tables that stay, and what stays of those that go."""
        owners = {self.real(one): f"files at {one} that stay" for one in self.going.kept}
        for entry in self._entries:
            if entry.id in self.going.tables:
                continue
            name = f"{entry.table.database}.{entry.table.name}"
            if entry.table.location:
                owners.setdefault(self.real(entry.table.location), f"the table {name}")
            for partition, location in scattered(entry.partitions, entry.table.location):
                owners.setdefault(self.real(location), f"the partition {partition} of {name}")
        return _OwnedPlaces(owners)

    def _of_same(self, entry: TableEntry, place: str) -> str | None:
        going = self.going.partitions or frozenset()
        name = f"{entry.table.database}.{entry.table.name}"
        root = self.real(entry.table.location or "")
        if covers(place, root):
            return f"the table {name}"
        for partition, location in scattered(entry.partitions, entry.table.location):
            if partition not in going and _touch(self.real(location), place):
                return f"the partition {partition} of {name}"
        if not covers(root, place):
            return None
        by_default = (p for p in _named_around(entry.partitions, place[len(root) + 1 :]) if p not in going)
        partition_name = next((p for p in by_default if _is_default(entry, p)), None)
        return partition_name and f"the partition {partition_name} of {name}"


class _OwnedPlaces:
    """Places and whose they are."""

    def __init__(self, owners: Mapping[str, str]) -> None:
        self._owners = owners
        self._ordered = sorted(f"{place}/" for place in owners)

    def touching(self, place: str) -> str | None:
        """Who has a place, one above it, or one below."""
        above = place
        while above:
            if above in self._owners:
                return self._owners[above]
            above = above.rpartition("/")[0]
        return self.below(place)

    def below(self, place: str) -> str | None:
        """Who has a place, or one below."""
        start = f"{place.rstrip('/')}/"
        index = bisect_left(self._ordered, start)
        nearest_place = self._ordered[index] if index < len(self._ordered) else ""
        return self._owners[nearest_place[:-1]] if nearest_place.startswith(start) else None


def places(entry: TableEntry) -> list[str]:
    """The directory of a table, and those of its partitions that are not below it."""
    root = entry.table.location
    others = [location for _, location in scattered(entry.partitions, root)]
    outside = [one for one in others if root is None or not covers(comparable(root), comparable(one))]
    return [*([root] if root else []), *dict.fromkeys(outside)]


def scattered(partitions: Partitions, root: str | None) -> Iterator[tuple[str, str]]:
    """Names and locations of partitions that are elsewhere than below the table's directory ``root`` by their name."""
    for chunk in partitions.chunks:
        known = _scattered.get(chunk)
        if known is None or known[0] != (root or ""):
            named = zip(chunk.names, chunk.partitions, strict=True)
            elsewhere = [(n, p.location) for n, p in named if p.location and (not root or p.location != below(root, n))]
            known = _scattered[chunk] = (root or "", elsewhere)
        yield from known[1]


def _named_around(partitions: Partitions, path: str) -> Iterator[str]:
    """The names of partitions that are a path, begin it, or begin with it."""
    segments = path.split("/")
    depth = len(partitions.keys)
    if len(segments) >= depth:
        name = "/".join(segments[:depth])
        if partitions.position(name) is not None:
            yield name
    else:
        yield from (name for name in partitions.names() if name.startswith(f"{path}/"))


def _is_default(entry: TableEntry, name: str) -> bool:
    partition = entry.partitions.named(name)
    root = entry.table.location
    return partition is not None and root is not None and partition.location == below(root, name)


def _touch(one: str, other: str) -> bool:
    return covers(one, other) or covers(other, one)
