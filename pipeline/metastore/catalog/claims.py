"""Who in a catalog has which place: databases, tables, and partitions that are not where they are by default."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pipeline.metastore.catalog.locations import below, comparable, covers
from pipeline.metastore.catalog.partitions import Chunk, Partitions
from pipeline.metastore.model.errors import NoSuchObjectError, UnknownDatabaseError

if TYPE_CHECKING:
    from pipeline.metastore.catalog.catalog import Catalog
    from pipeline.metastore.catalog.logs import TableEntry

_scattered: WeakKeyDictionary[Chunk, tuple[str, list[tuple[str, str]]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Going:
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


@dataclass(frozen=True, slots=True)
class Claims:
    """The places of a catalog.

    Args:
        catalog: whose.
        real: a location as one text for each place.
    """

    catalog: Catalog
    real: Callable[[str], str] = comparable

    def on(self, place: str, going: Going) -> str | None:
        """Who else has a place, something above it or something below; None if nobody. A database has what is above
        its directory only, since its tables are below. ``place`` is ``real``."""
        kept = next((one for one in going.kept if _touch(self.real(one), place)), None)
        if kept is not None:
            return f"files at {kept} that stay"
        for name in self.catalog.databases():
            with contextlib.suppress(NoSuchObjectError, UnknownDatabaseError):  # dropped meanwhile
                if found := self._in_database(name, place, going):
                    return found
        return None

    def _in_database(self, name: str, place: str, going: Going) -> str | None:
        location = self.catalog.database(name).location
        if location and name not in going.databases and covers(place, self.real(location)):
            return f"the database {name}"
        for entry in self.catalog.tables_named(name, self.catalog.tables(name)):
            if entry.id not in going.tables:
                found = self._of_other(entry, place)
            else:
                found = None if going.partitions is None else self._of_same(entry, place, going.partitions)
            if found is not None:
                return found
        return None

    def _of_other(self, entry: TableEntry, place: str) -> str | None:
        name = f"{entry.table.database}.{entry.table.name}"
        if entry.table.location and _touch(self.real(entry.table.location), place):
            return f"the table {name}"
        for partition, location in scattered(entry.partitions, entry.table.location):
            if _touch(self.real(location), place):
                return f"the partition {partition} of {name}"
        return None

    def _of_same(self, entry: TableEntry, place: str, going: frozenset[str]) -> str | None:
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
        found = next((p for p in by_default if _is_default(entry, p)), None)
        return found and f"the partition {found} of {name}"


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
