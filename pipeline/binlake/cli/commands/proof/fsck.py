"""``binlake fsck`` and ``binlake repair``: check a table against itself, and repair it where that loses no rows."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Annotated

import typer
from rich.console import Console

from binlake.cli.table_options import Conf, TableName, locking_of, storage_of
from binlake.cli.text import number, size, terminal
from binlake.tables.audit import OFFSET_KEYS
from hudilake.errors import CorruptDataError
from hudilake.services.fsck import Finding, Report, Severity
from hudilake.services.fsck import fsck as check_table
from hudilake.services.kept import take_back as do_take_back
from hudilake.services.repair import plan_repair
from hudilake.services.repair import repair as do_repair
from hudilake.storage import Storage

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "dim"}

WithData = Annotated[bool, typer.Option("--data/--no-data", help="Read all data files, or check names and sizes only.")]
Grace = Annotated[
    float, typer.Option("--grace-min", help="Minutes without a sign after which a writer counts as dead.", min=0)
]


def fsck(
    table: TableName,
    conf: Conf = None,
    data: WithData = True,
    grace_min: Grace = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON line for every finding.")] = False,
) -> None:
    """Check a table against itself: timeline, files, rows, metadata table, offsets. Changes nothing."""
    report = _report(storage_of(table, conf), data, grace_min)
    if as_json:
        for finding in report.findings:
            sys.stdout.write(json.dumps(dataclasses.asdict(finding), ensure_ascii=False) + "\n")
    else:
        print_report(report, terminal())
    raise typer.Exit(exit_code(report))


def repair(
    table: TableName,
    conf: Conf = None,
    data: WithData = True,
    grace_min: Grace = 60.0,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the steps and change nothing.")] = False,
    take_back: Annotated[bool, typer.Option("--take-back", help="Undo the newest repair instead.")] = False,
) -> None:
    """Repair what fsck finds, as far as that loses no rows; what it removes is kept. Stop the stream first."""
    storage, console = storage_of(table, conf), terminal()
    if take_back:
        _ask(yes, "Put the files back as they were before the newest repair? No other process may write to the table.")
        console.print(do_take_back(storage, locking_of(conf, "repair")), markup=False, highlight=False, soft_wrap=True)
        return
    report = _report(storage, data, grace_min)
    plan = plan_repair(report.findings)
    for line in plan.lines():
        console.print(f"- {line}", markup=False, highlight=False, soft_wrap=True)
    if not plan.steps:
        console.print("nothing that can be repaired safely", markup=False, highlight=False)
    if dry_run or not plan.steps:
        raise typer.Exit(exit_code(report))
    _ask(yes, "Do this? No other process may write to the table.")
    for line in do_repair(storage, plan, grace_ms=_millis(grace_min), locking=locking_of(conf, "repair")):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    after = _report(storage, data, grace_min)
    print_report(after, console)
    raise typer.Exit(exit_code(after))


def _ask(yes: bool, question: str) -> None:
    if not yes and not typer.confirm(question):
        raise typer.Exit(1)


def exit_code(report: Report) -> int:
    """0, or that of corrupt data if there are errors."""
    return CorruptDataError.exit_code if report.errors else 0


def print_report(report: Report, console: Console) -> None:
    """Print the findings, errors first, and a line of sums."""
    for finding in report.findings:
        _print_finding(finding, console)
    counts = ", ".join(f"{sum(f.severity is s for f in report.findings)} {s.value}" for s in Severity)
    line = f"{report.table}: {counts}; {number(report.files)} files read, {size(report.bytes_read)}"
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _print_finding(finding: Finding, console: Console) -> None:
    console.print(f"{finding.severity.value} {finding.check.value}: ", style=_STYLES[finding.severity], end="")
    console.print(finding.what, markup=False, highlight=False, soft_wrap=True)
    for name, text in (("where", finding.where), ("next", finding.next)):
        if text:
            console.print(f"  {name}: {text}", markup=False, highlight=False, soft_wrap=True)


def _report(storage: Storage, with_data: bool, grace_min: float) -> Report:
    return check_table(storage, OFFSET_KEYS, with_data=with_data, grace_ms=_millis(grace_min))


def _millis(minutes: float) -> int:
    return int(minutes * 60_000)
