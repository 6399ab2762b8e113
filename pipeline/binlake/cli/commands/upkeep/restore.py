"""``binlake restore`` and ``binlake savepoint``: a table put back to a commit, and commits kept for that."""

from __future__ import annotations

import contextlib
import getpass
from typing import Annotated, Any

import typer
from rich.table import Table as Grid

from binlake.cli.options import AsJson, AsJsonUnasked, LakeConf, Table, refuse_question
from binlake.cli.table_options import chosen_one, opened, shared
from binlake.cli.text import moment, number, say, say_json, size, terminal
from binlake.position.lease import StreamLease
from binlake.position.record_reader import RecordReader
from binlake.settings import Settings
from binlake.tables.catalog import CatalogTable
from binlake.tables.definition import metadata_config
from hudilake.commit.savepoint_record import Savepoint, savepoints
from hudilake.errors import ConfigError
from hudilake.locking.ownership import Locking
from hudilake.services.restore import RestorePlan, finish_pending_restores, plan_restore, restore
from hudilake.services.restore_plan import instant_of
from hudilake.services.savepoint import create_savepoint, delete_savepoint
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from hudilake.wording import counted

Moment = Annotated[
    str, typer.Argument(help="Requested time of a commit, or the comment of a savepoint.", metavar="INSTANT|SAVEPOINT")
]


def restore_table(
    conf: LakeConf,
    table: Table,
    moment: Moment,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")] = False,
    as_json: AsJsonUnasked = False,
) -> None:
    """Take back every later write of a table, for good. Stop its writers first; its stream delivers again what went."""
    refuse_question(as_json=as_json, yes=yes, dry_run=dry_run)
    settings = Settings.load(conf)
    place = chosen_one(settings, table)
    lease = StreamLease(open_storage(settings.state_uri, settings.state_options()), settings.name)
    with contextlib.nullcontext() if dry_run else lease:  # its stream must not run meanwhile
        _restore(place, moment, shared(settings, "restore"), yes=yes, dry_run=dry_run, as_json=as_json)


def _restore(place: CatalogTable, moment: str, locking: Locking, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    index = metadata_config(place.rules)
    held = HudiTable.open(place.storage, metadata=index, locking=locking)
    if not dry_run:
        for done in finish_pending_restores(held, index):
            if as_json:
                say_json({"table": place.name, "finished": done.requested_time})
                continue
            say(f"finished the restore {done.requested_time} that another process had begun")
    plan = plan_restore(held, _instant(held, moment))
    if not as_json:
        print_plan(place, plan)
    elif dry_run or not plan.undone:
        say_json({**_plan_fields(place, plan), "restored": False, "positions": {}})
    if not plan.undone or dry_run:
        return
    if not yes and not typer.confirm("Restore? No other process may write to the table."):
        raise typer.Exit(1)
    restore(held, plan.target.requested_time, index, agreed=plan)
    if as_json:
        kept = RecordReader.newest_of(held).positions or {}
        again = {stream: offsets.to_json() for stream, offsets in kept.items()}
        say_json({**_plan_fields(place, plan), "restored": True, "positions": again})
        return
    say(f"{place.name} is as of {plan.target.requested_time}")
    for stream, positions in (RecordReader.newest_of(held).positions or {}).items():
        say(f"stream {stream} delivers again from {positions.to_text()} on when it next runs")


def _plan_fields(place: CatalogTable, plan: RestorePlan) -> dict[str, Any]:
    undone = [(one.requested_time, one.action, one.state.value, one.completion_time) for one in plan.undone]
    names = ("requested", "action", "state", "completed")
    return {
        "table": place.name,
        "target": plan.target.requested_time,
        "undone": [dict(zip(names, one, strict=True)) for one in undone],
        "files": len(plan.files),
        "bytes": sum(info.size for info in plan.files),
        "kept_writes": plan.kept_writes,
        "kept_files": len(plan.kept_files),
    }


def print_plan(place: CatalogTable, plan: RestorePlan) -> None:
    """Print what goes and what stays."""
    target = plan.target
    say(f"{place.name} as of {target.requested_time} ({target.action}, completed {target.completion_time})")
    if not plan.undone:
        say("  nothing was written since")
        return
    grid = Grid("requested", "action", "state", "completed", title="taken back", title_justify="left")
    for heading in ("files", "bytes"):
        grid.add_column(heading, justify="right")
    for instant in plan.undone:
        files = [info for info in plan.files if instant_of(info) == instant.requested_time]
        cells = (instant.requested_time, instant.action, instant.state.value, instant.completion_time or "")
        grid.add_row(*cells, number(len(files)), size(sum(info.size for info in files)))
    terminal().print(grid)
    gone, kept = (size(sum(info.size for info in files)) for files in (plan.files, plan.kept_files))
    say(f"  goes: {counted(len(plan.undone), 'instant')}, {counted(len(plan.files), 'file')}, {gone}")
    say(f"  stays: {counted(plan.kept_writes, 'write')}, {counted(len(plan.kept_files), 'file')}, {kept}")


def _instant(table: HudiTable, moment: str) -> str:
    """The requested time that is meant."""
    if moment.isdigit():
        return moment
    instants = [s.instant for s in savepoints(table.storage, table.timeline) if s.comment == moment]
    if len(instants) != 1:
        raise ConfigError(
            f"{len(instants)} savepoints have that comment" if instants else "no savepoint has that comment",
            do_next="give the requested time that binlake savepoint list or inspect prints",
            comment=moment,
        )
    return instants[0]


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
    as_json: AsJson = False,
) -> None:
    """Protect a commit: its files are not cleaned, and the commits since are not archived."""
    settings = Settings.load(conf)
    held = opened(settings, chosen_one(settings, table), "savepoint").hudi
    newest = held.timeline.last_completed()
    if newest is None:
        raise ConfigError("the table has no commit yet", do_next="wait for the first one", table=table)
    made = create_savepoint(held, instant or newest.requested_time, getpass.getuser(), comment)
    if as_json:
        say_json({"table": table, **_savepoint_fields(made)})
        return
    say(f"{table}: savepoint {made.instant} holds {counted(_count(made), 'file')}")


@savepoint.command("delete")
def delete(
    conf: LakeConf,
    table: Table,
    instant: Annotated[str, typer.Argument(help="As binlake savepoint list prints it.")],
    as_json: AsJson = False,
) -> None:
    """Delete a savepoint; the next clean may delete its files."""
    settings = Settings.load(conf)
    held = opened(settings, chosen_one(settings, table), "savepoint").hudi
    if not delete_savepoint(held, instant):
        raise ConfigError("there is no such savepoint", do_next="see binlake savepoint list", instant=instant)
    if as_json:
        say_json({"table": table, "instant": instant, "deleted": True})
        return
    say(f"{table}: savepoint {instant} is gone")


@savepoint.command("list")
def list_all(conf: LakeConf, table: Table, as_json: AsJson = False) -> None:
    """Print a table's savepoints, oldest first."""
    settings = Settings.load(conf)
    held = HudiTable.open(chosen_one(settings, table).storage)
    saved = savepoints(held.storage, held.timeline)
    if as_json:
        for known in saved:
            say_json(_savepoint_fields(known))
        return
    grid = Grid("instant", "made", "by", "comment", title=f"{len(saved)} savepoints of {table}", title_justify="left")
    grid.add_column("files", justify="right")
    for known in saved:
        grid.add_row(known.instant, moment(known.made_ms), known.user, known.comment, number(_count(known)))
    terminal().print(grid)


def _savepoint_fields(known: Savepoint) -> dict[str, Any]:
    said = {"instant": known.instant, "user": known.user, "comment": known.comment, "made_ms": known.made_ms}
    return {**said, "files": _count(known)}


def _count(known: Savepoint) -> int:
    return sum(map(len, known.files.values()))
