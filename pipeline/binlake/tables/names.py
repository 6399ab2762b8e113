"""What the source calls the lake's tables today, and what feeds them: a small document in the lake, kept by the stream.

The path of a lake table never moves. RENAME TABLE changes the name by which it is found, and the names of all tables of
a stream change in one write: whoever looks a name up during a swap finds the table of before or the table of after.
The document holds only tables whose names have changed, that the source has no more, or whose names are not determined;
``binlake.tables.feeds`` answers from it which table of the source feeds a lake table. It is worked out from the
statements that the stream knows and from those that commits record, so a lost one is written again with the stream's
next statement, batch or start.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from binlake.decode.changes import SourceTable
from binlake.schema.rules.ddl_effects import DatedName, TableEnd
from binlake.source.offsets import NO_OFFSETS, Offsets
from hudilake.errors import ConfigError, CorruptDataError
from hudilake.storage import Storage, StorageNotFoundError

_VERSION = 1


@dataclass(frozen=True, slots=True)
class LakeName:
    """The names of one lake table. ``source``: the name that its commits record. ``history``: the names that it had at
    the source, in order. ``dropped``: the source no longer has it; its last name finds it until another table has it.
    """

    path: str
    source: SourceTable
    history: tuple[DatedName, ...]
    dropped: bool = False

    @property
    def now(self) -> SourceTable:
        """The name that the source gives it now, or gave it last."""
        return self.history[-1].name


@dataclass(frozen=True, slots=True)
class Feed:
    """A source table through its names, and the path of the lake table that it feeds.

    Args:
        path: of the lake table.
        first: its first name at the source; that of a later table of one name has a number (``t@@2``).
        history: the names that it had at the source, in order.
        gone: since when the source has it no more; None if it has it.
        unsure: why it is not determined which table of the source it is; "" if it is.
    """

    path: str
    first: SourceTable
    history: tuple[DatedName, ...]
    gone: TableEnd | None = None
    unsure: str = ""

    def called(self, order: int | None = None) -> SourceTable | None:
        """Its name at an ordering value, or now; None if the source has no such table there."""
        if self.gone is not None and (order is None or order >= self.gone.since):
            return None
        names = [called.name for called in self.history if order is None or called.since <= order]
        return names[-1] if names else None

    def to_json(self) -> dict[str, Any]:
        """Returns a dict of values that JSON can write: path, first name, names with places, end and doubt."""
        names = [[c.name.database, c.name.table, c.place, c.since] for c in self.history]
        gone = self.gone and [self.gone.how, self.gone.place, self.gone.since]
        first = [self.first.database, self.first.table]
        return {"path": self.path, "first": first, "names": names, "gone": gone, "unsure": self.unsure}

    @staticmethod
    def from_json(said: dict[str, Any]) -> Feed:
        """The reverse of ``to_json``. Raises KeyError, TypeError, ValueError."""
        history = tuple(DatedName(SourceTable(name[0], name[1]), name[2], name[3]) for name in said["names"])
        gone = TableEnd(*said["gone"]) if said["gone"] else None
        return Feed(said["path"], SourceTable(*said["first"]), history, gone, said["unsure"])


@dataclass(frozen=True, slots=True)
class TableNames:
    """The lake tables of a stream whose names have changed, and the source tables behind them.

    ``feeds``: None in a document of before they were kept. ``heard``: up to where the DDL topics are read.
    """

    tables: tuple[LakeName, ...] = field(default=())
    feeds: tuple[Feed, ...] | None = field(default=())
    heard: Offsets = NO_OFFSETS

    def called(self, name: SourceTable) -> LakeName | None:
        """The table that has this name at the source now."""
        return next((one for one in sorted(self.tables, key=lambda t: t.dropped) if one.now == name), None)

    def at(self, path: str) -> LakeName | None:
        """The names of the table at a path; None if its name has never changed."""
        return next((one for one in self.tables if one.path == path), None)

    def is_dropped(self, path: str, now: SourceTable) -> bool:
        """Whether the source has the table at a path no more, as far as the names say: it was dropped, or another table
        has its name ``now``."""
        there, other = self.at(path), self.called(now)
        if there is not None:
            return there.dropped
        mine = [feed for feed in self.feeds or () if feed.path == path]
        if mine and all(feed.gone is not None for feed in mine):
            return True
        return other is not None and other.path != path and not other.dropped

    def to_bytes(self) -> bytes:
        """The document."""
        tables = [
            {
                "path": one.path,
                "source": [one.source.database, one.source.table],
                "names": [[c.name.database, c.name.table, c.place] for c in one.history],
                "dropped": one.dropped,
            }
            for one in sorted(self.tables, key=lambda t: t.path)
        ]
        feeds = [one.to_json() for one in sorted(self.feeds or (), key=lambda f: (f.path, str(f.first)))]
        said = {"version": _VERSION, "tables": tables, "feeds": feeds, "heard": self.heard.to_json()}
        return json.dumps(said, ensure_ascii=False, indent=1).encode()

    @staticmethod
    def from_bytes(data: bytes) -> TableNames:
        """The reverse of ``to_bytes``. Raises ValueError, KeyError, TypeError for other data."""
        said = json.loads(data)
        if said["version"] != _VERSION:
            raise ValueError(f"version {said['version']!r}")
        return TableNames(
            tuple(
                LakeName(
                    one["path"],
                    SourceTable(*one["source"]),
                    tuple(DatedName(SourceTable(database, table), place) for database, table, place in one["names"]),
                    one["dropped"],
                )
                for one in said["tables"]
            ),
            tuple(map(Feed.from_json, said["feeds"])) if "feeds" in said else None,
            Offsets.from_json(said.get("heard", {})),
        )

    @staticmethod
    def load(root: Storage, stream: str) -> TableNames:
        """The document of a stream; without names if there is none. Raises CorruptDataError, StorageError."""
        path = _path(stream)
        try:
            return TableNames.from_bytes(root.read(path))
        except StorageNotFoundError:
            return NO_NAMES
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptDataError(
                f"the names of the tables cannot be read: {error}",
                do_next="delete the file: the stream writes it again at its next start",
                path=f"{root.uri}/{path}",
            ) from error


NO_NAMES = TableNames()


def _path(stream: str) -> str:
    return f".binlake/{stream}/names.json"


def source_of(names: TableNames, name: SourceTable) -> SourceTable:
    """The name that the commits record of the table that the source calls ``name``.

    Raises ConfigError if the table of that name has another one now, and no other table has it.
    """
    lake_name = names.called(name)
    if lake_name is not None:
        return lake_name.source
    there = next((one for one in names.tables if one.source == name), None)
    if there is not None:
        raise ConfigError(
            f"the source has no table {name}: it was renamed to {there.now}",
            do_next=f"name it {there.now}, or by its path",
            table=str(name),
            path=there.path,
        )
    return name


@dataclass
class KeptNames:
    """Keeps the document of a stream current."""

    root: Storage
    stream: str
    _stored: TableNames | None = None

    def keep(self, tables: Iterable[LakeName], feeds: Iterable[Feed] = (), heard: Offsets = NO_OFFSETS) -> None:
        """Write the document, in one step, if it differs. Raises StorageError."""
        behind = tuple(sorted(feeds, key=lambda one: (one.path, str(one.first))))
        names = TableNames(tuple(sorted(tables, key=lambda one: one.path)), behind, heard)
        if self._stored is None:
            try:
                self._stored = TableNames.load(self.root, self.stream)
            except CorruptDataError:
                self._stored = None
        if names != self._stored:
            self.root.write(_path(self.stream), names.to_bytes())
            self._stored = names


def history_of(names: Sequence[DatedName]) -> str:
    """The former names, for people."""
    return ", ".join(f"{one.name} until {after.place}" for one, after in itertools.pairwise(names))
