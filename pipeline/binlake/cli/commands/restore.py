"""``binlake restore``: put a table back to the state of a commit or a savepoint."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer
from rich.table import Table as Grid

from binlake.cli.lake_options import LakeConf, Table, chosen_one, shared
from binlake.cli.text import number, say, size, terminal
from binlake.position.lease import StreamLease
from binlake.position.record_reader import RecordReader
from binlake.settings import Settings
from binlake.tables.catalog import CatalogTable
from binlake.tables.definition import metadata_config
from hudilake.commit.savepoint_record import savepoints
from hudilake.errors import ConfigError
from hudilake.locking.ownership import Locking
from hudilake.services.restore import RestorePlan, finish_pending_restores, plan_restore, restore
from hudilake.services.restore_plan import instant_of
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

Moment = Annotated[
    str, typer.Argument(help="Requested time of a commit, or the comment of a savepoint.", metavar="INSTANT|SAVEPOINT")
]


def restore_table(
    conf: LakeConf,
    table: Table,
    moment: Moment,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")] = False,
) -> None:
    """Take back every later write of a table, for good. Stop its writers first; its stream delivers again what went."""
    settings = Settings.load(conf)
    place = chosen_one(settings, table)
    lease = StreamLease(open_storage(settings.state_uri, settings.state_options()), settings.name)
    with contextlib.nullcontext() if dry_run else lease:  # its stream must not run meanwhile
        _restore(place, moment, shared(settings, "restore"), yes=yes, dry_run=dry_run)


def _restore(place: CatalogTable, moment: str, locking: Locking, *, yes: bool, dry_run: bool) -> None:
    index = metadata_config(place.rules)
    held = HudiTable.open(place.storage, metadata=index, locking=locking)
    if not dry_run:
        for done in finish_pending_restores(held, index):
            say(f"finished the restore {done.requested_time} that another process had begun")
    plan = plan_restore(held, _instant(held, moment))
    print_plan(place, plan)
    if not plan.undone or dry_run:
        return
    if not yes and not typer.confirm("Restore? No other process may write to the table."):
        raise typer.Exit(1)
    restore(held, plan.target.requested_time, index, agreed=plan)
    say(f"{place.name} is as of {plan.target.requested_time}")
    for stream, positions in (RecordReader.newest_of(held).positions or {}).items():
        say(f"stream {stream} delivers again from {positions.to_text()} on when it next runs")


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
    say(f"  goes: {len(plan.undone)} instants, {number(len(plan.files))} files, {gone}")
    say(f"  stays: {plan.kept_writes} writes, {number(len(plan.kept_files))} files, {kept}")


def _instant(table: HudiTable, moment: str) -> str:
    """The requested time that is meant."""
    if moment.isdigit():
        return moment
    found = [s.instant for s in savepoints(table.storage, table.timeline) if s.comment == moment]
    if len(found) != 1:
        raise ConfigError(
            f"{len(found)} savepoints have that comment" if found else "no savepoint has that comment",
            do_next="give the requested time that binlake savepoint list or inspect prints",
            comment=moment,
        )
    return found[0]
