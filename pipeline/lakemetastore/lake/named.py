"""The Hudi tables of lakes by the names that the catalog gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hudilake.errors import ConfigError
from hudilake.storage import Storage
from hudilake.table.directory import BrokenTable
from hudilake.table.table import HudiTable
from lakemetastore.lake.naming import NamedTable, TableNaming, naming_by_settings, naming_of_lake


@dataclass(frozen=True)
class NamedLake:
    """A lake whose tables are registered.

    Args:
        root: of the lake.
        naming: names its tables.
    """

    root: Storage
    naming: TableNaming

    @classmethod
    def of_root(cls, root: Storage) -> NamedLake:
        """A lake of any writers. Raises ConfigError if streams of binlake write it and binlake is not installed."""
        return cls(root, naming_of_lake(root))

    @classmethod
    def of_settings(cls, file: str) -> NamedLake:
        """The lake of the stream with this settings file. Raises ConfigError, as well if binlake is not installed, and
        SettingsError."""
        return cls(*naming_by_settings(file))

    def tables(self, names: Sequence[str] = ()) -> list[NamedTable | BrokenTable]:
        """The tables of these names, or all. One that cannot be opened does not hide the others.

        ``names``: ``database.table`` or a path below the root. Raises ConfigError as ``of_root``, StorageError.
        """
        return apart(self.naming.tables(names))

    def has(self, uri: str) -> bool:
        """Whether a table's root is below the lake's."""
        return uri.startswith(f"{self.root.uri}/")

    def storage(self, uri: str) -> Storage:
        """The root of a table below the lake's."""
        return self.root.sub(uri.removeprefix(f"{self.root.uri}/"))

    def at(self, uri: str) -> NamedTable:
        """The table at a root below the lake's. Raises ConfigError if there is none, CorruptDataError, StorageError."""
        if not HudiTable.exists(self.storage(uri)):
            raise ConfigError("there is no Hudi table at this path", do_next="check the path", path=uri)
        return self.naming.table(uri.removeprefix(f"{self.root.uri}/"))


def apart(tables: Iterable[NamedTable | BrokenTable]) -> list[NamedTable | BrokenTable]:
    """The same tables, each with a name of its own: a dropped one gives its name up to one that the source has, and is
    ``t__dropped`` then. Of others with one name the first by place has it, and the rest are broken."""
    listed = list(tables)
    taken: set[str] = set()
    renamed: dict[int, NamedTable | BrokenTable] = {}
    order = ((i, t) for i, t in enumerate(listed) if isinstance(t, NamedTable))
    for place, table in sorted(order, key=lambda one: (one[1].dropped, one[1].storage.uri)):
        known = table
        number = 1
        while known.full_name in taken and table.dropped:
            known = replace(table, name=f"{table.name}__dropped{number if number > 1 else ''}")
            number += 1
        renamed[place] = _clash(known) if known.full_name in taken else known
        taken.add(known.full_name)
    return [renamed.get(place, table) for place, table in enumerate(listed)]


def _clash(table: NamedTable) -> BrokenTable:
    error = ConfigError(
        f"another table of the lake is {table.full_name} in the catalog, which knows no upper case and few characters",
        do_next="rename one of the two at the source, or leave it unregistered",
        table=table.full_name,
        path=table.storage.uri,
    )
    return BrokenTable(table.storage.uri, error)


def chosen(lakes: Iterable[NamedLake], names: Sequence[str]) -> Iterator[list[NamedTable | BrokenTable]]:
    """The tables of these names, or all, lake by lake. A name is broken only if it is in no lake. Raises
    StorageError."""
    unknown: dict[str, BrokenTable] = {}
    known: set[str] = set()
    for lake in lakes:
        tables = lake.tables(names)
        missing = {t.name: t for t in tables if isinstance(t, BrokenTable) and isinstance(t.error, ConfigError)}
        asked = {name: table for name, table in missing.items() if name in names}
        unknown |= asked
        known |= set(names) - asked.keys()
        yield [table for table in tables if not (isinstance(table, BrokenTable) and table.name in asked)]
    yield [table for name, table in unknown.items() if name not in known]
