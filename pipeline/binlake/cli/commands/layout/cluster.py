"""``binlake cluster``: rows laid out anew across file groups in a process of its own, from cron or Airflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from binlake.cli.lake_options import AsJson, LakeConf, Tables, chosen, shared
from binlake.cli.service_reports import print_line, serve
from binlake.cli.text import duration, number, size
from binlake.cli.workers import CORES, OnSpark, Threads, workers
from binlake.settings import Settings
from binlake.tables.services.cluster_run import Report, Wanted, cluster
from hudilake.errors import ConfigError

Now = Annotated[bool, typer.Option("--now", help="Lay out what would become better, due or not.")]
ScheduleOnly = Annotated[bool, typer.Option("--schedule-only", help="Write plans only; see --execute-only.")]
ExecuteOnly = Annotated[bool, typer.Option("--execute-only", help="Carry out plans only, Hudi's too; write none.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be laid out.")]


def cluster_tables(
    conf: LakeConf,
    tables: Tables = None,
    now: Now = False,
    schedule_only: ScheduleOnly = False,
    execute_only: ExecuteOnly = False,
    dry_run: DryRun = False,
    spark: OnSpark = False,
    threads: Threads = CORES,
    as_json: AsJson = False,
) -> None:
    """Lay out anew the rows of the tables that are due. The stream may run at the same time."""
    if schedule_only + execute_only + dry_run > 1:
        raise ConfigError(
            "--schedule-only, --execute-only and --dry-run exclude each other", do_next="give one of them"
        )
    settings = Settings.load(conf)
    wanted = Wanted(now, schedule=not execute_only, execute=not schedule_only, dry_run=dry_run)
    found, sharing = chosen(settings, tables), shared(settings, "cluster")
    with workers(settings, spark, threads) as map_tasks:
        code = serve(
            found,
            lambda place: cluster(place, sharing, map_tasks, wanted),
            lambda place: Report(place.name, error=place.error),
            lambda report: print_line(report, _parts(report), as_json=as_json),
            as_json=as_json,
        )
    raise typer.Exit(code)


def _parts(report: Report) -> Iterator[str]:
    if report.due is not None:
        yield f"due: {report.due}"
    if report.units:
        groups = f"{number(report.file_groups)} file groups in {number(report.units)} units"
        yield f"would lay out {groups}, {size(report.bytes_read)}"
    if report.completed:
        yield f"{number(report.replaced)} file groups became {number(report.made)}"
        yield f"{number(report.rows)} rows, {size(report.bytes_written)} written"
        if left := len(report.completed) - (report.scheduled in report.completed):
            yield f"{left} of the clusterings had been planned before"
    if report.gave_way:
        yield f"{number(report.gave_way)} units gave way to commits"
    if report.pending:
        yield f"pending: {', '.join(report.pending)}"
    if not report.completed and not report.pending and not report.units:
        yield "failed" if report.error is not None else report.skipped or "nothing to lay out"
    yield duration(report.seconds * 1000)
