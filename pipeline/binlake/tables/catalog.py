"""The tables of a lake by name, for processes other than the stream that writes them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from binlake.decode.changes import SourceTable
from binlake.position.record_reader import RecordReader
from binlake.settings import Settings, TableRules
from binlake.settings.templates import QUARANTINE_DIRECTORY
from binlake.tables.names import TableNames, history_of, source_of
from hudilake.errors import ConfigError, LakeError
from hudilake.read import TableReader
from hudilake.read.source import PlanSource
from hudilake.storage import Storage, open_storage
from hudilake.table.directory import BrokenTable, paths_of_tables
from hudilake.table.table import HudiTable

_SKIPPED = (".binlake", QUARANTINE_DIRECTORY)


@dataclass(frozen=True)
class CatalogTable:
    """The location of a table of the lake, and its rules from the settings.

    ``source``: the name that its commits record. ``called``: what the source calls it now. ``former``: its earlier
    names at the source, for people.
    """

    source: SourceTable
    rules: TableRules
    storage: Storage
    called: SourceTable
    former: str = ""

    @property
    def name(self) -> str:
        """The name that is shown to users."""
        return str(self.called)


def catalog_table(settings: Settings, root: Storage, name: str) -> CatalogTable:
    """The table of a name.

    Args:
        settings: of the lake.
        root: the lake's root.
        name: ``database.table`` as the source calls it now, or a path below the root.

    Raises ConfigError if there is none or its path is not the one in the settings, CorruptDataError, StorageError.
    """
    path = table_path(settings, root, name)
    if not HudiTable.exists(root.sub(path)):
        raise no_such_table(settings, root, name)
    catalog_entry = catalog_table_at(settings, root, path)
    if catalog_entry is None or (path != name and catalog_entry.name != name):
        raise ConfigError(
            "the table at this path was not written with these settings",
            do_next="check tables.path; if another writer made the table, use that writer's tools",
            table=name,
            path=path,
        )
    return catalog_entry


def no_such_table(settings: Settings, root: Storage, name: str) -> ConfigError:
    """The error of a name that no table has. It gives the names that are like it, else those there are."""
    names = [one.name for one in catalog_tables(settings, root)]
    do_next = did_you_mean(name, names) or "check lake.uri: it has no table of this stream"
    return ConfigError("the lake has no such table", do_next=do_next, table=name)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question with the names that are like a mistaken one, else some of those there are; "" if there are none."""
    known = sorted(names)
    same = [one for one in known if one.lower() == name.lower()]
    near = same or difflib.get_close_matches(name, known, n=3, cutoff=0.5) or known[:5]
    return f"did you mean {' or '.join(near)}?" if near else ""


def catalog_tables(settings: Settings, root: Storage, names: Sequence[str] = ()) -> list[CatalogTable | BrokenTable]:
    """The tables of these names; without names, all tables that the lake holds under these settings, by path.

    A table that cannot be opened does not hide the others. Raises StorageError if the lake cannot be listed.
    """

    def look(name: str) -> CatalogTable | BrokenTable | None:
        try:
            return catalog_table(settings, root, name) if names else catalog_table_at(settings, root, name)
        except LakeError as error:
            return BrokenTable(name, error)

    depth = settings.tables.path.count("/") + 1
    catalog_entries = map(look, names or table_paths(root, depth))
    return [known for known in catalog_entries if known is not None]


def catalog_table_at(
    settings: Settings, root: Storage, path: str, table: HudiTable | None = None
) -> CatalogTable | None:
    """The table at a path; None if the settings give the source table that its commits name another path.

    ``table``: the same, if it is open already.
    """
    storage = root.sub(path)
    source = RecordReader.newest_of(table or HudiTable.open(storage)).source
    if source is None:
        return None
    rules = settings.table_rules(source)
    if rules.path != path:
        return None
    there = TableNames.load(root, settings.name).at(path)
    if there is None:
        return CatalogTable(source, rules, storage, source)
    return CatalogTable(source, rules, storage, there.now, history_of(there.history))


def table_path(settings: Settings, root: Storage, name: str) -> str:
    """The path below the root of a table that is named as by ``catalog_table``, whether it exists or not.

    Raises ConfigError for the former name of a table, CorruptDataError, StorageError.
    """
    database, dot, table = name.partition(".")
    if not dot or "/" in name:
        return name
    source = source_of(TableNames.load(root, settings.name), SourceTable(database, table))
    return settings.table_rules(source).path


def named_storage(settings: Settings, root: Storage, name: str) -> Storage:
    """Where the table of a name is; ``name`` as for ``catalog_table``, also of a table that another writer made.

    Raises ConfigError if there is none, or if the path is that of another table; and as ``table_path``.
    """
    path = table_path(settings, root, name)
    storage = root.sub(path)
    if not HudiTable.exists(storage):
        raise no_such_table(settings, root, name)
    parts = settings.tables.path.split("/")
    if path != name and not {"{database}", "{table}"} <= set(parts):  # several names may give one path
        there = catalog_table_at(settings, root, path)
        if there is not None and there.name != name:
            raise ConfigError(
                f"the lake has no such table: at its path is {there.name}",
                do_next=f"name it {there.name}",
                table=name,
                path=path,
            )
    return storage


def open_reader(settings: Settings, name: str, service: PlanSource | None = None) -> TableReader:
    """A table of the lake, opened for reading from Python. ``name``: as for ``catalog_table``; ``service``: as for
    ``TableReader.open``.

    Raises ConfigError if there is none, CorruptDataError, StorageError.
    """
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    return TableReader.open(named_storage(settings, root, name), service=service)


def table_paths(root: Storage, depth: int) -> list[str]:
    """The paths of a lake's tables below its root, without those that binlake keeps for itself; else as
    ``paths_of_tables``."""
    return paths_of_tables(root, depth, _SKIPPED)
