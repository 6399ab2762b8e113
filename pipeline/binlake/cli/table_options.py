"""How commands find and open the tables that they are for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from binlake.position.ledger import Ledger
from binlake.settings import LockingSettings, Settings
from binlake.tables.catalog import CatalogTable, catalog_tables, did_you_mean, named_storage
from binlake.tables.lake import locking
from binlake.tables.lake_table import LakeTable
from binlake.tables.presence import check_known
from hudilake.errors import ConfigError, LakeError
from hudilake.locking.ownership import Locking
from hudilake.storage import Storage, has_scheme, open_storage
from hudilake.table.directory import BrokenTable, paths_of_tables
from hudilake.table.table import HudiTable


def chosen(settings: Settings, names: list[str] | None) -> list[CatalogTable | BrokenTable]:
    """The tables that a command is for; those that the ledger knows and the lake has not are broken ones. Errors as
    ``binlake.tables.catalog.catalog_tables``."""
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    known = catalog_tables(settings, root, names or ())
    if not names:
        return [*known, *_lost(settings, root, known)]
    if not any(isinstance(table, BrokenTable) for table in known):
        return known
    lost = {table.name: table for table in _lost(settings, root, known)}
    return [lost.get(table.name, table) for table in known]


def _lost(settings: Settings, root: Storage, known: Sequence[CatalogTable | BrokenTable]) -> Iterator[BrokenTable]:
    """The tables of the ledger that were not found."""
    try:
        ledger = Ledger.load(open_storage(settings.state_uri, settings.state_options()), settings.name)
    except LakeError as error:
        yield BrokenTable("the ledger", error)
        return
    if ledger is None:
        return
    there = {table.source for table in known if isinstance(table, CatalogTable)}
    broken = {table.name for table in known if isinstance(table, BrokenTable)}
    for source in ledger.tables:
        if source not in there and settings.table_rules(source).path not in broken:
            try:
                check_known(settings, root, ledger, source)
            except LakeError as error:
                yield BrokenTable(str(source), error)


def chosen_one(settings: Settings, name: str) -> CatalogTable:
    """The table that a command is for. Errors as ``binlake.tables.catalog.catalog_table``, LostTableError."""
    [table] = chosen(settings, [name])
    if isinstance(table, BrokenTable):
        raise table.error
    return table


def shared(settings: Settings, command: str) -> Locking:
    """How a command shares the tables with the writers there may be."""
    return locking(settings.locking, f"binlake {command}")


def opened(settings: Settings, place: CatalogTable, command: str) -> LakeTable:
    """A table, opened as a writer. Raises as ``LakeTable.open``."""
    return LakeTable.open(place.storage, place.rules, shared(settings, command))


TableName = Annotated[
    str, typer.Argument(help="A table's path or URI; with --conf, database.table.", metavar="TABLE", show_default=False)
]
Conf = Annotated[Path | None, typer.Option("--conf", help="The settings file whose lake holds the table.")]


def locking_of(conf: Path | None, command: str) -> Locking:
    """How a command shares a table with the writers there may be. Raises SettingsError."""
    return locking(Settings.load(conf).locking if conf else LockingSettings(), f"binlake {command}")


def storage_of(table: str, conf: Path | None) -> Storage:
    """Where the table of a command is. Raises as ``table_storage``, and SettingsError."""
    return table_storage(table, Settings.load(conf) if conf else None)


def table_storage(name: str, settings: Settings | None) -> Storage:
    """Where a table is.

    Args:
        name: path or URI; with settings ``database.table`` as the source calls it now, or a path in their lake.
        settings: None for a table that is named by itself.

    Raises ConfigError if there is no such directory or table or it is a table's former name, CorruptDataError,
    StorageError.
    """
    if settings is None:
        return _at(name)
    return named_storage(settings, open_storage(settings.lake.uri, settings.lake.storage_options()), name)


def _at(name: str) -> Storage:
    """The storage of a table that is named by its path or URI. Raises ConfigError if there is none, StorageError."""
    if not has_scheme(name) and not Path(name).is_dir():
        what = "this is a file, and no table" if Path(name).exists() else "no such directory"
        raise ConfigError(what, do_next="give a path or URI, or --conf with database.table", path=name)
    storage = open_storage(name)
    if not HudiTable.exists(storage):
        below = (f"{name.rstrip('/')}/{path}" for path in paths_of_tables(storage, 2))
        do_next = did_you_mean("", below) or "check the path"
        raise ConfigError("there is no Hudi table at this path", do_next=do_next, path=storage.uri)
    return storage
