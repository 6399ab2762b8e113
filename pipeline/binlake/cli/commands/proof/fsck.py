"""``binlake fsck`` and ``binlake repair``: check a table against itself, and repair it where that loses no rows."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer
from rich.console import Console

from binlake.cli.options import AsJsonUnasked, refuse_question
from binlake.cli.table_options import Conf, TableName, locking_of, storage_of
from binlake.cli.text import say_json, size, terminal
from binlake.tables.audit import OFFSET_KEYS
from hudilake.errors import CorruptDataError
from hudilake.services.fsck import Finding, Report, Severity
from hudilake.services.fsck import fsck as check_table
from hudilake.services.kept import take_back as do_take_back
from hudilake.services.repair import plan_repair
from hudilake.services.repair import repair as do_repair
from hudilake.storage import Storage
from hudilake.wording import counted

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
        for fields in _finding_fields(report):
            say_json(fields)
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
    as_json: AsJsonUnasked = False,
) -> None:
    """Repair what fsck finds, as far as that loses no rows; what it removes is kept. Stop the stream first."""
    refuse_question(as_json=as_json, yes=yes, dry_run=dry_run)
    storage, console = storage_of(table, conf), terminal()
    if take_back:
        _ask(yes, "Put the files back as they were before the newest repair? No other process may write to the table.")
        back = do_take_back(storage, locking_of(conf, "repair"))
        if as_json:
            say_json({"steps": [], "done": [back], "findings": []})
            return
        console.print(back, markup=False, highlight=False, soft_wrap=True)
        return
    report = _report(storage, data, grace_min)
    plan = plan_repair(report.findings)
    steps = list(plan.lines())
    for line in [] if as_json else steps:
        console.print(f"- {line}", markup=False, highlight=False, soft_wrap=True)
    if not plan.steps and not as_json:
        console.print("nothing that can be repaired safely", markup=False, highlight=False)
    if dry_run or not plan.steps:
        if as_json:
            say_json({"steps": steps, "done": [], "findings": _finding_fields(report)})
        raise typer.Exit(exit_code(report))
    _ask(yes, "Do this? No other process may write to the table.")
    done: list[str] = []
    for line in do_repair(storage, plan, grace_ms=_millis(grace_min), locking=locking_of(conf, "repair")):
        done.append(line)
        if not as_json:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    after = _report(storage, data, grace_min)
    if as_json:
        say_json({"steps": steps, "done": done, "findings": _finding_fields(after)})
    else:
        print_report(after, console)
    raise typer.Exit(exit_code(after))


def _finding_fields(report: Report) -> list[dict[str, Any]]:
    return [dataclasses.asdict(finding) for finding in report.findings]


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
    line = f"{report.table}: {counts}; {counted(report.files, 'file')} read, {size(report.bytes_read)}"
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
