"""``binlake explain``: what an SQL query would read and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from binlake.cli.commands.reads.query import (
    Given,
    NamedTables,
    TableQueries,
    UseIndex,
    Words,
    plan_named,
    question,
)
from binlake.cli.table_options import Conf
from binlake.cli.text import number, say_json, size, terminal
from binlake.cli.typer_extras import options_of
from hudilake.read import ScanPlan
from hudilake.read.inside.planned import PlannedReads, planned_reads

AsJson = Annotated[
    bool, typer.Option("--json", help="Print a JSON line for every table, and one for what runs bucket by bucket.")
]


@options_of(asked=question)
def explain(
    words: Words,
    tables: Given = None,
    conf: Conf = None,
    *,
    asked: TableQueries,
    index: UseIndex = True,
    as_json: AsJson = False,
) -> None:
    """Print what an SQL query would read of each table and why, without reading data."""
    planned = plan_named(NamedTables(words, tables, conf, asked, index), count_all=True)
    if as_json:
        for table in planned.tables:
            say_json(_fields(table.plan))
        say_json({"parts": list(map(str, planned.split.parts)), "why_not": list(planned.split.why_not)})
        return
    for table in planned.tables:
        print_plan(table.plan, terminal())
        inside = planned_reads(table.plan)
        if inside is not None:
            terminal().print(_inside(inside), markup=False, highlight=False, soft_wrap=True)
    split = planned.split
    for line in (*map(str, split.parts), *(f"not bucket by bucket: {why}" for why in split.why_not)):
        terminal().print(line, markup=False, highlight=False, soft_wrap=True)


def _fields(plan: ScanPlan) -> dict[str, Any]:
    inside = planned_reads(plan)
    read = None if inside is None else {**asdict(inside.tally), "of_files": inside.files, "with_logs": inside.with_logs}
    return {
        "table": plan.table,
        "query": str(plan.query),
        "where": str(plan.condition),
        "columns": list(plan.columns),
        "steps": [asdict(step) for step in plan.steps],
        "laid_out": list(map(str, plan.laid_out)),
        "warnings": list(map(str, plan.warnings)),
        "counted": {"slices": len(plan.counted), "rows": sum(one.rows for one in plan.counted)},
        "slices": len(plan.slices),
        "files": plan.files,
        "bytes": plan.size,
        "inside": read,
    }


def _inside(planned: PlannedReads) -> str:
    """What would be read inside of the base files."""
    looked, files = planned.tally.files, planned.files
    first = f"the first {number(looked)} of {number(files)} base files" if looked < files else "base files"
    more = f"; log files of {number(planned.with_logs)} of them may need more" if planned.with_logs else ""
    return f"inside {first}: {planned.tally}{more}"


def print_plan(plan: ScanPlan, console: Console) -> None:
    """Print a plan: the question, a line for every step, what is left."""
    for line in (f"{plan.table}: {plan.query}", f"  where {plan.condition}", f"  columns {', '.join(plan.columns)}"):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    grid = Table("step")
    for heading in ("partitions", "slices", "files"):
        grid.add_column(heading, justify="right")
    grid.add_column("why")
    for step in plan.steps:
        counts = (step.partitions, step.slices, step.files)
        grid.add_row(step.name, *("" if count is None else number(count) for count in counts), step.why)
    console.print(grid, markup=False)
    for one in plan.laid_out:
        console.print(f"laid out by {one}", markup=False, highlight=False, soft_wrap=True)
    for warning in plan.warnings:
        console.print(f"warning: {warning}", markup=False, highlight=False, soft_wrap=True)
    if plan.counted:
        rows = sum(one.rows for one in plan.counted)
        text = f"counted in the metadata table: file slices {number(len(plan.counted))}, rows {number(rows)}"
        console.print(text, markup=False, highlight=False)
    left = f"to read: file slices {number(len(plan.slices))}, files {number(plan.files)}, bytes {size(plan.size)}"
    console.print(left, markup=False, highlight=False)
