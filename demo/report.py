"""Prints the verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from binlake.cli.text import number
from demo.verdict import TableVerdict


def print_verdicts(verdicts: Sequence[TableVerdict], console: Console) -> None:
    """Print a table of all verdicts, and the differences. Names with brackets are printed as they are."""
    grid = Table("table", title="lake (read by hudi-rs) against the source's SELECT *", title_justify="left")
    for heading in ("rows", "in the lake", "cells equal", "cells differ"):
        grid.add_column(heading, justify="right")
    grid.add_column("verdict")
    for v in verdicts:
        differing = sum(d.count for d in v.differences.values())
        counts = (v.truth_rows, v.lake_rows, v.cells, differing)
        word = Text("equal", style="green") if v.equal else Text("DIFFERENT", style="red")
        grid.add_row(Text(v.table), *(number(c) for c in counts), word)
    console.print(grid)
    for v in verdicts:
        for line in _lines(v):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    equal = sum(v.equal for v in verdicts)
    style = "bold green" if equal == len(verdicts) else "bold red"
    console.print(f"{equal} of {len(verdicts)} tables equal", style=style, highlight=False)


def _lines(v: TableVerdict) -> list[str]:
    lines = [f"{v.table}: {mistake}" for mistake in v.mistakes]
    if v.missing_rows or v.extra_rows or v.duplicate_rows:
        counts = f"{v.missing_rows} rows missing, {v.extra_rows} too many, {v.duplicate_rows} twice"
        lines.append(f"{v.table}: {counts}, such as {v.row_examples}")
    for column, d in v.differences.items():
        shown = "; ".join(f"{key}: source {truth!r}, lake {lake!r}" for key, truth, lake in d.examples)
        lines.append(f"{v.table}.{column}: {d.count} cells differ, such as {shown}")
    if v.gone_columns:
        lines.append(f"{v.table}: columns that the source has dropped or renamed: {', '.join(v.gone_columns)}")
    return lines
