"""How commands name a table, and how they find it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from binlake.settings import LockingSettings, Settings
from binlake.tables.catalog import table_path
from binlake.tables.lake import locking
from hudilake.errors import ConfigError
from hudilake.locking.ownership import Locking
from hudilake.storage import Storage, open_storage

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

    Raises ConfigError if there is no such directory or it is a table's former name, CorruptDataError, StorageError.
    """
    if settings is None:
        if "://" in name or Path(name).is_dir():
            return open_storage(name)
        raise ConfigError("no such directory", do_next="give a path or URI, or --conf with database.table", path=name)
    lake = open_storage(settings.lake.uri, settings.lake.storage_options())
    return lake.sub(table_path(settings, lake, name))
