"""``binlake backfill``: columns of rows that a table has already, filled from files and queries."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Iterator
from typing import Annotated

import typer

from binlake.cli.display import make_display
from binlake.cli.options import LakeConf, Table
from binlake.cli.text import number, say, say_json, size, terminal
from binlake.cli.until_stopped import until_stopped
from binlake.load.backfill.inputs import find_input
from binlake.load.backfill.request import BackfillRequest
from binlake.load.backfill.run import Backfill, BackfillReport, OpenWorkers
from binlake.load.backfill.workers import PortionWorkers, SparkWorkers
from binlake.settings import Settings
from binlake.stream.spark.session import spark_session
from hudilake.storage import open_storage
from hudilake.wording import counted

From = Annotated[
    str, typer.Option("--from", help="Files (Parquet, CSV, Arrow), a glob pattern, or a query of DuckDB: SELECT ...")
]
Columns = Annotated[str, typer.Option(help="The columns to write, comma-separated, named alike in input and lake.")]
Key = Annotated[str | None, typer.Option(help="The input's columns with the table's key, if named otherwise.")]
Where = Annotated[str | None, typer.Option(help="A condition (SQL) over the input's columns; other rows are left out.")]
Order = Annotated[int, typer.Option(help="The ordering value of the values; 0: behind every change of the stream.")]
Group = Annotated[str | None, typer.Option(help="Name of the column group of new columns.")]
Insert = Annotated[bool, typer.Option("--insert", help="Insert rows whose key the table does not have.")]
PortionRows = Annotated[int, typer.Option(help="Rows of one commit, approximately.", min=1)]
Restart = Annotated[bool, typer.Option("--restart", help="Begin anew, even if it was interrupted or is done.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count what would be written; change nothing.")]
InProcess = Annotated[bool, typer.Option("--in-process", help="Run without Spark, however large the input is.")]
Live = Annotated[bool, typer.Option("--display/--no-display", help="Show a live table, or print plain lines.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON line for every portion, and one for the result.")]


def backfill(
    conf: LakeConf,
    table: Table,
    source: From,
    columns: Columns,
    key: Key = None,
    where: Where = None,
    order: Order = 0,
    group: Group = None,
    insert: Insert = False,
    portion_rows: PortionRows = 1_000_000,
    restart: Restart = False,
    dry_run: DryRun = False,
    in_process: InProcess = False,
    live: Live = True,
    as_json: AsJson = False,
) -> None:
    """Fill columns of rows from files or a query, each portion once. The stream may run at the same time. SIGTERM and
    Ctrl-C finish the portion in hand, then stop; the same command goes on from there."""
    settings = Settings.load(conf)
    keys = None if key is None else _names(key)
    request = BackfillRequest(_names(columns), keys, where, order, group, insert, portion_rows, restart)
    given = find_input(settings, source)
    display = make_display(settings.name, terminal(), live=live, as_json=as_json)

    def work(stop: threading.Event) -> BackfillReport:
        workers = None if in_process else _on_spark(settings)
        job = Backfill(settings, table, request, workers, on_progress=display.update, stop=stop)
        with display, job.hand.noted(open_storage(settings.state_uri, settings.state_options())):
            if not dry_run:
                return job.run(given)
            with tempfile.TemporaryDirectory(prefix="binlake-backfill-") as scratch:
                return job.dry_run(given, open_storage(scratch))

    print_report(until_stopped(work), as_json=as_json)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _on_spark(settings: Settings) -> OpenWorkers:
    @contextlib.contextmanager
    def opened() -> Iterator[PortionWorkers]:
        session = spark_session(settings)
        try:
            yield SparkWorkers(session.sparkContext)
        finally:
            session.stop()

    return opened


def print_report(report: BackfillReport, *, as_json: bool = False) -> None:
    """What a backfill came to."""
    if as_json:
        say_json(_fields(report))
        return
    columns, c = ", ".join(report.columns), report.counts
    if report.held:
        say(f"{report.table}: nothing to do: the table holds {columns} of this input; --restart writes it again")
        return
    would = "would be " if report.dry_run else ""
    say(f"{report.table}: {columns} (group {report.group or '-'}): {counted(report.rows, 'row')} of input")
    if report.before:
        say(f"  {number(report.before)} of {number(report.portions)} portions were committed before")
    written = f"{would}changed {number(c.changed)} + {would}inserted {number(c.inserted)}"
    left = f"newer in the table {number(c.older)} + not in the table {number(c.missing)}"
    unusable = f"repeated {number(c.repeated)} + without key {number(c.without_key)}"
    say(f"  read {number(c.read)} = {written} + {left} + {unusable} + left out by --where {number(c.filtered)}")
    say(f"  {number(len(report.events))} portions, {size(report.bytes_written)} written")
    if report.stopped:
        say("stopped; the same command takes the rest")


def _fields(report: BackfillReport) -> dict[str, object]:
    return {
        "table": report.table,
        "columns": list(report.columns),
        "group": report.group,
        "portions": report.portions,
        "portions_before": report.before,
        "held": report.held,
        "rows": report.rows,
        "counts": vars(report.counts),
        "bytes_written": report.bytes_written,
        "stopped": report.stopped,
        "dry_run": report.dry_run,
    }
