"""What the source calls the lake's tables today: a small document in the lake, kept by the stream.

The path of a lake table never moves. RENAME TABLE changes the name by which it is found, and the names of all tables of
a stream change in one write: whoever looks a name up during a swap finds the table of before or the table of after.
The document holds only tables whose names have changed. It is worked out from the statements that the stream knows and
from those that commits record, so a lost one is written again with the stream's next statement, batch or start.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pipeline.decode.changes import SourceTable
from pipeline.errors import ConfigError, CorruptDataError
from pipeline.schema_changes.rules.ddl_log import Called
from pipeline.storage import Storage, StorageNotFoundError

_VERSION = 1


@dataclass(frozen=True, slots=True)
class LakeName:
    """The names of one lake table. ``source``: the name that its commits record. ``history``: the names that it had at
    the source, in order. ``dropped``: the source no longer has it; its last name finds it until another table has it.
    """

    path: str
    source: SourceTable
    history: tuple[Called, ...]
    dropped: bool = False

    @property
    def now(self) -> SourceTable:
        """The name that the source gives it now, or gave it last."""
        return self.history[-1].name


@dataclass(frozen=True, slots=True)
class TableNames:
    """The lake tables of a stream whose names have changed."""

    tables: tuple[LakeName, ...] = field(default=())

    def called(self, name: SourceTable) -> LakeName | None:
        """The table that has this name at the source now."""
        return next((one for one in sorted(self.tables, key=lambda t: t.dropped) if one.now == name), None)

    def at(self, path: str) -> LakeName | None:
        """The names of the table at a path; None if its name has never changed."""
        return next((one for one in self.tables if one.path == path), None)

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
        return json.dumps({"version": _VERSION, "tables": tables}, ensure_ascii=False, indent=1).encode()

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
                    tuple(Called(SourceTable(database, table), place) for database, table, place in one["names"]),
                    one["dropped"],
                )
                for one in said["tables"]
            )
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
    found = names.called(name)
    if found is not None:
        return found.source
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

    def keep(self, tables: Iterable[LakeName]) -> None:
        """Write the document, in one step, if it differs. Raises StorageError."""
        names = TableNames(tuple(sorted(tables, key=lambda one: one.path)))
        if self._stored is None:
            try:
                self._stored = TableNames.load(self.root, self.stream)
            except CorruptDataError:
                self._stored = None
        if names != self._stored:
            self.root.write(_path(self.stream), names.to_bytes())
            self._stored = names


def history_of(names: Sequence[Called]) -> str:
    """The former names, for people."""
    return ", ".join(f"{one.name} until {after.place}" for one, after in itertools.pairwise(names))
