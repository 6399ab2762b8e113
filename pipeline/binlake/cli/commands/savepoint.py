"""``binlake savepoint``: commits that cleaning and archival keep until the savepoint is deleted."""

from __future__ import annotations

import getpass
import json
import sys
from typing import Annotated

import typer
from rich.table import Table as Grid

from binlake.cli.lake_options import AsJson, LakeConf, Table, chosen_one, opened
from binlake.cli.text import moment, number, say, terminal
from binlake.settings import Settings
from hudilake.commit.savepoint_record import Savepoint, savepoints
from hudilake.errors import ConfigError
from hudilake.services.savepoint import create_savepoint, delete_savepoint
from hudilake.table.table import HudiTable

savepoint = typer.Typer(no_args_is_help=True, help="Create, delete and list protected commits.")

Comment = Annotated[str, typer.Option("--comment", help="What it is for; binlake restore accepts this text as a name.")]


@savepoint.command("create")
def create(
    conf: LakeConf,
    table: Table,
    instant: Annotated[
        str | None, typer.Argument(help="Requested time of a commit; the newest if none.", show_default=False)
    ] = None,
    comment: Comment = "",
) -> None:
    """Protect a commit: its files are not cleaned, and the commits since are not archived."""
    settings = Settings.load(conf)
    held = opened(settings, chosen_one(settings, table), "savepoint").table
    newest = held.timeline.last_completed()
    if newest is None:
        raise ConfigError("the table has no commit yet", do_next="wait for the first one", table=table)
    made = create_savepoint(held, instant or newest.requested_time, getpass.getuser(), comment)
    say(f"{table}: savepoint {made.instant} holds {number(_count(made))} files")


@savepoint.command("delete")
def delete(
    conf: LakeConf, table: Table, instant: Annotated[str, typer.Argument(help="As binlake savepoint list prints it.")]
) -> None:
    """Delete a savepoint; the next clean may delete its files."""
    settings = Settings.load(conf)
    held = opened(settings, chosen_one(settings, table), "savepoint").table
    if not delete_savepoint(held, instant):
        raise ConfigError("there is no such savepoint", do_next="see binlake savepoint list", instant=instant)
    say(f"{table}: savepoint {instant} is gone")


@savepoint.command("list")
def list_all(conf: LakeConf, table: Table, as_json: AsJson = False) -> None:
    """Print a table's savepoints, oldest first."""
    settings = Settings.load(conf)
    held = HudiTable.open(chosen_one(settings, table).storage)
    found = savepoints(held.storage, held.timeline)
    if as_json:
        for known in found:
            said = {"instant": known.instant, "user": known.user, "comment": known.comment, "made_ms": known.made_ms}
            sys.stdout.write(json.dumps({**said, "files": _count(known)}, ensure_ascii=False) + "\n")
        return
    grid = Grid("instant", "made", "by", "comment", title=f"{len(found)} savepoints of {table}", title_justify="left")
    grid.add_column("files", justify="right")
    for known in found:
        grid.add_row(known.instant, moment(known.made_ms), known.user, known.comment, number(_count(known)))
    terminal().print(grid)


def _count(found: Savepoint) -> int:
    return sum(map(len, found.files.values()))
