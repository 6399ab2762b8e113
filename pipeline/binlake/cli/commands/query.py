"""``binlake query``: SQL over tables, reading only the file slices that may hold matching rows."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table

from binlake.cli.option_group import options_of
from binlake.cli.sql_options import Asked, ByBucket, Given, NamedTables, UseIndex, Words, limits, question
from binlake.cli.tables import Conf
from binlake.cli.text import number, terminal
from hudilake.query.sql import Limits, SqlQuery, plan_sql, run_sql
from hudilake.read.inside.tally import ReadTally


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


@options_of(asked=question, limited=limits)
def query(
    words: Words,
    tables: Given = None,
    conf: Conf = None,
    *,
    asked: Asked,
    limited: Limits,
    index: UseIndex = True,
    by_bucket: ByBucket = True,
    form: Annotated[Format, typer.Option("--format", help="Print a table, CSV, or JSON lines.")] = Format.TABLE,
    rows: Annotated[int, typer.Option("--rows", help="The most rows that a table shows.", min=1)] = 1000,
    counts: Annotated[bool, typer.Option("--counts", help="Print on stderr what was read of base files.")] = False,
) -> None:
    """Run an SQL query over one or several tables."""
    named = NamedTables(words, tables, conf, asked, index)
    planned = plan_named(named, by_bucket=by_bucket)
    for table in planned.tables:
        for warning in table.plan.warnings:
            of_table = f"{table.plan.table}: " if len(planned.tables) > 1 else ""
            terminal(stderr=True).print(f"warning: {of_table}{warning}", markup=False, highlight=False, soft_wrap=True)
    tally = ReadTally()
    with run_sql(planned, limited, tally) as result:
        if form is Format.TABLE:
            _print_table(result, terminal(), rows)
        elif form is Format.CSV:
            _print_csv(result)
        else:
            _print_json(result)
    if counts:
        _print_counts(tally, form)


def _print_counts(tally: ReadTally, form: Format) -> None:
    """What was read, as JSON where the rows are."""
    if form is Format.JSON:
        sys.stderr.write(json.dumps(asdict(tally)) + "\n")
    else:
        fetched = f"fetched {number(tally.fetched)} bytes in {number(tally.requests)} requests"
        sys.stderr.write(f"read of {number(tally.files)} base files: {tally}; {fetched}\n")


def plan_named(named: NamedTables, count_all: bool = False, by_bucket: bool = True) -> SqlQuery:
    """The plan of the query of a command line. Raises ConfigError for a moment of no table, and as ``plan_sql``."""
    planned = plan_sql(named.sql, named.find, count_all, by_bucket)
    named.check_used()
    return planned


def _rows(batches: pa.RecordBatchReader) -> Iterator[list[Any]]:
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        yield from (list(row) for row in zip(*columns, strict=True))


def _print_table(result: pa.RecordBatchReader, console: Console, most: int) -> None:
    grid = Table(*result.schema.names)
    shown, more = 0, False
    for row in _rows(result):
        if shown == most:
            more = True
            break
        grid.add_row(*("" if value is None else text(value) for value in row))
        shown += 1
    console.print(grid, markup=False)
    console.print(f"the first {number(shown)} rows; more with --rows or --format" if more else f"{number(shown)} rows")


def _print_csv(result: pa.RecordBatchReader) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(result.schema.names)
    for row in _rows(result):
        writer.writerow(["" if value is None else text(value) for value in row])


def _print_json(result: pa.RecordBatchReader) -> None:
    names: Sequence[str] = result.schema.names
    for row in _rows(result):
        found = dict(zip(names, row, strict=True))
        sys.stdout.write(json.dumps(found, ensure_ascii=False, default=text) + "\n")


def text(value: object) -> str:
    """A value as it is printed: bytes in hexadecimal, times as ISO 8601."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
