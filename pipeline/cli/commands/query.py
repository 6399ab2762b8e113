"""``binlake query``: SQL over a table, reading only the file slices that may hold matching rows."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table

from pipeline.cli.option_group import options_of
from pipeline.cli.tables import Conf, TableName, storage_of
from pipeline.cli.text import number, terminal
from pipeline.errors import ConfigError
from pipeline.hudi.read import Incremental, Query, ReadOptimized, Snapshot, TableReader, instant_of
from pipeline.hudi.read.inside.tally import ReadTally
from pipeline.hudi.read.query import EARLIEST
from pipeline.hudi.read.sql_engine import plan_sql, run_sql

Sql = Annotated[str, typer.Argument(help="One SELECT in DuckDB's SQL; the table is called t.", metavar="SQL")]
AsOf = Annotated[str | None, typer.Option("--as-of", help="Rows as of an instant, or 2024-02-29 12:34:56 (UTC).")]
After = Annotated[
    str | None, typer.Option("--after", help=f"Rows that commits completed after this have changed; {EARLIEST}: all.")
]
Until = Annotated[str | None, typer.Option("--until", help="With --after: up to this time.")]
BaseOnly = Annotated[bool, typer.Option("--read-optimized", help="Read base files only.")]
UseIndex = Annotated[bool, typer.Option("--index/--no-index", help="Use the metadata table, or read all files.")]


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def question(
    as_of: AsOf = None,
    after: After = None,
    until: Until = None,
    read_optimized: BaseOnly = False,
) -> Query:
    """Which rows the options ask for. Raises ConfigError for options that contradict each other."""
    if sum((as_of is not None, after is not None, read_optimized)) > 1 or (until is not None and after is None):
        raise ConfigError(
            "these options cannot be combined", do_next="give --as-of, or --after (with --until), or --read-optimized"
        )
    if read_optimized:
        return ReadOptimized()
    if after is not None:
        begin = "" if after == EARLIEST else instant_of(after)
        return Incremental(begin, instant_of(until) if until is not None else None)
    return Snapshot(instant_of(as_of) if as_of is not None else None)


@options_of(asked=question)
def query(
    table: TableName,
    sql: Sql,
    conf: Conf = None,
    *,
    asked: Query,
    index: UseIndex = True,
    form: Annotated[Format, typer.Option("--format", help="Print a table, CSV, or JSON lines.")] = Format.TABLE,
    rows: Annotated[int, typer.Option("--rows", help="The most rows that a table shows.", min=1)] = 1000,
    counts: Annotated[bool, typer.Option("--counts", help="Print on stderr what was read of base files.")] = False,
) -> None:
    """Run an SQL query over a table."""
    reader = open_reader(table, conf, index)
    planned = plan_sql(reader, sql, asked)
    for warning in planned.plan.warnings:
        terminal(stderr=True).print(f"warning: {warning}", markup=False, highlight=False, soft_wrap=True)
    tally = ReadTally()
    with run_sql(planned, tally) as result:
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


def open_reader(table: str, conf: Path | None, index: bool) -> TableReader:
    """The table by its path or URI, or by its name in the lake of the settings."""
    return TableReader.open(storage_of(table, conf), use_index=index)


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
