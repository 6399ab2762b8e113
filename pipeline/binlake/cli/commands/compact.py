"""``binlake compact``: compaction, cleaning and archival in a process of its own, from cron or Airflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from binlake.cli.lake_options import AsJson, LakeConf, Tables, chosen, shared
from binlake.cli.service_reports import print_line, serve
from binlake.cli.text import duration, number, say, size
from binlake.cli.workers import CORES, OnSpark, Threads, workers
from binlake.settings import Settings
from binlake.tables.services.maintenance import Report, Wanted, maintain
from hudilake.errors import ConfigError

Now = Annotated[bool, typer.Option("--now", help="Compact all log files, due or not.")]
ScheduleOnly = Annotated[bool, typer.Option("--schedule-only", help="Write plans only; see --execute-only.")]
ExecuteOnly = Annotated[bool, typer.Option("--execute-only", help="Carry out plans only; write none.")]


def compact(
    conf: LakeConf,
    tables: Tables = None,
    now: Now = False,
    schedule_only: ScheduleOnly = False,
    execute_only: ExecuteOnly = False,
    spark: OnSpark = False,
    threads: Threads = CORES,
    as_json: AsJson = False,
) -> None:
    """Compact the tables that are due, then clean and archive them. The stream may run at the same time."""
    if schedule_only and execute_only:
        raise ConfigError("--schedule-only and --execute-only exclude each other", do_next="give one of the two")
    settings = Settings.load(conf)
    wanted, sharing = Wanted(now, schedule=not execute_only, execute=not schedule_only), shared(settings, "compact")
    found = chosen(settings, tables)
    with workers(settings, spark, threads) as map_tasks:
        code = serve(
            found,
            lambda place: maintain(place, sharing, map_tasks, wanted),
            lambda place: Report(place.name, error=place.error),
            lambda report: _print(report, as_json=as_json),
            as_json=as_json,
        )
    raise typer.Exit(code)


def _print(report: Report, *, as_json: bool) -> None:
    """One line for a table, and its warning."""
    print_line(report, _parts(report), as_json=as_json)
    if report.warning is not None and not as_json:
        say(f"  warning: {report.warning}")


def _parts(report: Report) -> Iterator[str]:
    if report.due is not None:
        yield f"due: {report.due}"
    if report.completed:
        yield f"{number(report.file_groups)} file groups compacted"
        yield f"{number(report.rows)} rows, {size(report.bytes_written)} written"
        if left := len(report.completed) - (report.scheduled in report.completed):
            yield f"{left} of the compactions had been left by another process"
    if report.pending:
        yield f"pending: {', '.join(report.pending)}"
    if not report.completed and not report.pending:
        yield "failed" if report.error is not None else report.skipped or "nothing to compact"
    if report.cleaned:
        yield f"{number(report.cleaned)} files cleaned"
    if report.archived:
        yield f"{number(report.archived)} instants archived"
    yield duration(report.seconds * 1000)
