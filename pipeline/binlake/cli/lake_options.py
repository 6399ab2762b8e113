"""How commands name tables: the settings file first, then tables of its lake."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from binlake.cli.failure import print_error
from binlake.cli.text import terminal
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.tables.catalog import CatalogTable, catalog_tables
from binlake.tables.lake import locking
from binlake.tables.lake_table import LakeTable
from binlake.tables.presence import check_known, judged
from hudilake.errors import BinlakeError
from hudilake.locking.ownership import Locking
from hudilake.storage import Storage, open_storage
from hudilake.table.directory import BrokenTable

LakeConf = Annotated[Path, typer.Argument(help="The settings file (YAML).", metavar="CONF")]
Table = Annotated[str, typer.Argument(help="The table, as database.table or by its path in the lake.", metavar="TABLE")]
Tables = Annotated[
    list[str] | None,
    typer.Argument(help="Tables, as database.table or by path in the lake; all tables if none.", metavar="TABLE"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON line for every table.")]


def chosen(settings: Settings, names: list[str] | None) -> list[CatalogTable | BrokenTable]:
    """The tables that a command is for; those that the ledger knows and the lake has not are broken ones. Errors as
    ``binlake.tables.catalog.catalog_tables``."""
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    found = catalog_tables(settings, root, names or ())
    if not names:
        return [*found, *_lost(settings, root, found)]
    if not any(isinstance(table, BrokenTable) for table in found):
        return found
    lost = {table.name: table for table in _lost(settings, root, found)}
    return [lost.get(table.name, table) for table in found]


def _lost(settings: Settings, root: Storage, found: Sequence[CatalogTable | BrokenTable]) -> Iterator[BrokenTable]:
    """The tables of the ledger that were not found."""
    try:
        ledger = Ledger.load(open_storage(settings.state_uri, settings.state_options()), settings.name)
    except BinlakeError as error:
        yield BrokenTable("the ledger", error)
        return
    if ledger is None:
        return
    there = {table.source for table in found if isinstance(table, CatalogTable)}
    broken = {table.name for table in found if isinstance(table, BrokenTable)}
    for source in ledger.tables:
        if source not in there and settings.table_rules(source).path not in broken:
            try:
                check_known(settings, root, ledger, source)
            except BinlakeError as error:
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


def opened(settings: Settings, found: CatalogTable, command: str) -> LakeTable:
    """A table, opened as a writer. Raises as ``LakeTable.open``."""
    return LakeTable.open(found.storage, found.rules, shared(settings, command))


def each(found: Iterable[CatalogTable | BrokenTable], action: Callable[[CatalogTable], int | None]) -> int:
    """An action for every table; one that fails is told and does not stop the others.

    Returns the exit code: the first that is not 0, of an action or of its error.
    """
    code = 0
    for table in found:
        try:
            if isinstance(table, BrokenTable):
                raise table.error
            ended = action(table)
            code = code or ended or 0
        except BinlakeError as error:
            seen = judged(table.storage, error) if isinstance(table, CatalogTable) else error
            code = told(table.name, seen, code)
    return code


def told(table: str, error: BinlakeError, code: int) -> int:
    """Tell the error of one table of several; the exit code, of which the first counts."""
    sys.stdout.flush()
    error.where.setdefault("table", table)
    print_error(error, terminal(stderr=True))
    return code or error.exit_code
