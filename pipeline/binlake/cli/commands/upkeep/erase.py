"""``binlake erase``: a row and all its versions leave every byte of the lake, and it is said where they were."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table as Grid

from binlake.cli.options import LakeConf, Table, refuse_question
from binlake.cli.table_options import chosen_one
from binlake.cli.text import moment, number, say, say_json, size, terminal
from binlake.proof.history.erasure import DUMPS, RowErasure, plan_row_erasure
from binlake.settings import Settings
from hudilake.services.erasure.erase import ErasureReport
from hudilake.services.erasure.search import ErasurePlan
from hudilake.services.erasure.traces import ByteScan
from hudilake.wording import counted

_SKIPPED = ("Kafka's topics", "the source", "other tables of the lake")
Key = Annotated[str, typer.Argument(help="The key's value, or name=value,name=value, or a JSON object.", metavar="KEY")]


def erase(
    conf: LakeConf,
    table: Table,
    key: Key,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print which files hold it and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    release: Annotated[
        bool, typer.Option("--release-savepoints", help="Delete the savepoints that hold the row.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print a JSON line for every file and one at the end, unasked: give --yes."),
    ] = False,
) -> None:
    """Erase a row and all its versions from the files of its table, the quarantine and the dumps, for good."""
    refuse_question(as_json=as_json, yes=yes, dry_run=dry_run)
    settings = Settings.load(conf)
    asked = plan_row_erasure(settings, chosen_one(settings, table), key)
    if dry_run or not as_json:
        for name, plan in asked.plans.items():
            _print_plan(name, plan, as_json=as_json)
    if dry_run:
        return
    if not yes and not typer.confirm("Erase? Nothing brings the row back."):
        raise typer.Exit(1)
    left = 0
    for name, report in asked.carry_out(release_savepoints=release):
        left += _print_report(name, report, as_json=as_json)
    left += _print_rest(asked, as_json=as_json)
    if left:
        raise typer.Exit(1)


def _print_plan(name: str, plan: ErasurePlan, *, as_json: bool) -> None:
    holders = [plan.holders[path] for path in sorted(plan.holders)]
    if as_json:
        for holder in holders:
            say_json({"table": name, "file": holder.path, "bytes": holder.size, "plan": holder.fate.value})
        say_json({"table": name, "savepoints": [s.instant for s in plan.held_by], "unread": plan.unread})
        return
    grid = Grid(
        "file",
        "bytes",
        "what becomes of it",
        title=f"{name}: {counted(len(holders), 'file', 'holds', 'hold')} it",
        title_justify="left",
    )
    for holder in holders:
        grid.add_row(holder.path, size(holder.size), holder.fate.value)
    terminal().print(grid, markup=False)
    for savepoint in plan.held_by:
        say(f"  savepoint {savepoint.instant} holds it: {savepoint.comment}")
    for path, why in plan.unread.items():
        say(f"  not known: {path}: {why}")


def _print_report(name: str, report: ErasureReport, *, as_json: bool) -> int:
    """Returns how much is left."""
    record, left = report.record, report.scan
    if as_json:
        for held in record.files:
            say_json({"table": name, "file": held.path, "bytes": held.size, "gone_ms": held.gone_ms})
    else:
        grid = Grid("file", "bytes", "gone", title=f"{name}: where it was", title_justify="left")
        for held in record.files:
            grid.add_row(held.path, size(held.size), moment(held.gone_ms) if held.gone_ms is not None else "no")
        terminal().print(grid, markup=False)
    _print_scan(name, left, as_json=as_json, record="" if name == DUMPS else record.path)
    return len(left.finds) + len(left.unread)


def _print_scan(name: str, done: ByteScan, *, as_json: bool, record: str = "") -> None:
    if as_json:
        finds = {path: sorted({trace.where for trace in seen}) for path, seen in done.finds.items()}
        counts = {"scanned_files": done.files, "scanned_bytes": done.size, "shared_texts": done.shared}
        say_json({"table": name, **counts, "left": finds, "unread": done.unread, "record": record})
        return
    say(f"{name}: {counted(done.files, 'file')}, {size(done.size)} read again: {_found(done)}")
    for path, seen in done.finds.items():
        say(f"  left: {path} ({', '.join(sorted({trace.where for trace in seen}))})")
    for path, why in done.unread.items():
        say(f"  not known: {path}: {why}")
    if done.shared:
        say(f"  {number(done.shared)} texts of the row are in other rows, too; of these nothing is said")
    if record:
        say(f"  the record of the erasure is {record}")


def _found(done: ByteScan) -> str:
    return (
        "nothing is left"
        if done.is_clean
        else f"{counted(len(done.finds), 'file', 'has', 'have')} it, {len(done.unread)} are not known"
    )


def _print_rest(asked: RowErasure, *, as_json: bool) -> int:
    """What is not erased here. Returns how much is left."""
    if asked.unmatched and not as_json:
        say(
            f"{number(asked.unmatched)} quarantined records of the table cannot be matched to a key; "
            "see binlake quarantine show"
        )
    elsewhere = [f"the dump {uri}" for uri in asked.elsewhere]
    if as_json:
        skipped = ["Kafka", "the source", "other tables", *elsewhere]
        say_json({"unmatched_quarantined": asked.unmatched, "not_looked_at": skipped})
    else:
        say(f"not looked at: {', '.join([*_SKIPPED, *elsewhere])}")
    return asked.unmatched
