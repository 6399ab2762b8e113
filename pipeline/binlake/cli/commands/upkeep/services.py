"""``binlake compact``, ``cluster``, ``clean`` and ``archive``: table services in a process of their own, from cron or
Airflow. Each is a declaration: what runs it over a table, what its line says of a report, and what its JSON has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from binlake.cli.options import AsJson, LakeConf, Tables
from binlake.cli.reports import print_line, report_error
from binlake.cli.table_options import chosen, shared
from binlake.cli.text import duration, number, say, size
from binlake.cli.workers import CORES, OnSpark, Threads, workers
from binlake.settings import Settings
from binlake.tables.services.runner import LakeServices, Service, run_service
from hudilake.errors import ConfigError
from hudilake.services.planned import MapTasks, ServiceReport, ServiceSteps, one_by_one
from hudilake.wording import counted

Retire = Annotated[bool, typer.Option("--dry-run", help="Print what would be removed and change nothing.")]
ScheduleOnly = Annotated[bool, typer.Option("--schedule-only", help="Write plans only; see --execute-only.")]


@dataclass(frozen=True)
class ServiceCommand:
    """A command that runs one service.

    Args:
        name: of the command.
        service: the one of ``LakeServices`` that it runs.
        parts: what the line of a report says after the table's name.
        fields: what the JSON object of a report has after the table's name.
        quiet: whether nothing is said of a table that failed besides its error, nor of a lake without tables.
    """

    name: str
    service: Callable[[LakeServices], Service]
    parts: Callable[[ServiceReport], Iterator[str]]
    fields: Callable[[ServiceReport], Mapping[str, object]]
    quiet: bool = False

    def run(
        self,
        conf: Path,
        tables: list[str] | None,
        steps: ServiceSteps,
        as_json: bool,
        work: Callable[[Settings], AbstractContextManager[MapTasks]] = lambda _: nullcontext(one_by_one),
    ) -> None:
        """Run the service over tables and print their reports; exits with the first code that is not 0.

        Args:
            conf: the settings file.
            tables: their names; all tables if none.
            steps: what is wanted.
            as_json: whether reports are printed as JSON.
            work: opens what runs the tasks.
        """
        settings, code = Settings.load(conf), 0
        places, sharing = chosen(settings, tables), shared(settings, self.name)
        with work(settings) as map_tasks:
            for report in run_service(places, self.service(LakeServices(sharing, steps, map_tasks))):
                if report.error is None or not self.quiet:
                    self._print(report, as_json=as_json)
                if report.error is not None:
                    code = report_error(report.table, report.error, code)
        if not places and not as_json:
            say("the lake holds no tables")
        raise typer.Exit(code)

    def _print(self, report: ServiceReport, *, as_json: bool) -> None:
        print_line(report, self.parts(report), as_json=as_json, fields=self.fields(report))
        if as_json:
            return
        for name in report.names if report.dry_run else ():
            say(f"- {name}")
        if report.warning is not None:
            say(f"  warning: {report.warning}")


def compact(
    conf: LakeConf,
    tables: Tables = None,
    now: Annotated[bool, typer.Option("--now", help="Compact all log files, due or not.")] = False,
    schedule_only: ScheduleOnly = False,
    execute_only: Annotated[bool, typer.Option("--execute-only", help="Carry out plans only; write none.")] = False,
    spark: OnSpark = False,
    threads: Threads = CORES,
    as_json: AsJson = False,
) -> None:
    """Compact the tables that are due, then clean and archive them. The stream may run at the same time."""
    if schedule_only and execute_only:
        raise ConfigError("--schedule-only and --execute-only exclude each other", do_next="give one of the two")
    steps = ServiceSteps(now, schedule=not execute_only, execute=not schedule_only)
    COMPACT.run(conf, tables, steps, as_json, lambda settings: workers(settings, spark, threads))


def cluster_tables(
    conf: LakeConf,
    tables: Tables = None,
    now: Annotated[bool, typer.Option("--now", help="Lay out what would become better, due or not.")] = False,
    schedule_only: ScheduleOnly = False,
    execute_only: Annotated[
        bool, typer.Option("--execute-only", help="Carry out plans only, Hudi's too; write none.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be laid out.")] = False,
    spark: OnSpark = False,
    threads: Threads = CORES,
    as_json: AsJson = False,
) -> None:
    """Lay out anew the rows of the tables that are due. The stream may run at the same time."""
    if schedule_only + execute_only + dry_run > 1:
        raise ConfigError(
            "--schedule-only, --execute-only and --dry-run exclude each other", do_next="give one of them"
        )
    steps = ServiceSteps(now, schedule=not execute_only, execute=not schedule_only, dry_run=dry_run)
    CLUSTER.run(conf, tables, steps, as_json, lambda settings: workers(settings, spark, threads))


def clean_tables(conf: LakeConf, tables: Tables = None, dry_run: Retire = False, as_json: AsJson = False) -> None:
    """Delete files that neither the retention, a savepoint nor a pending compaction needs."""
    CLEAN.run(conf, tables, ServiceSteps(dry_run=dry_run), as_json)


def archive_tables(conf: LakeConf, tables: Tables = None, dry_run: Retire = False, as_json: AsJson = False) -> None:
    """Move old instants of the timeline into the table's history, if there are more than the retention needs."""
    ARCHIVE.run(conf, tables, ServiceSteps(dry_run=dry_run), as_json)


def _compacted(report: ServiceReport) -> Iterator[str]:
    count = report.count
    yield from _due(report)
    if report.completed:
        yield f"{number(count('file_groups'))} file groups compacted"
        yield f"{counted(count('rows'), 'row')}, {size(count('bytes_written'))} written"
        if left := _left(report):
            yield f"{left} of the compactions had been left by another process"
    yield from _pending(report, "nothing to compact")
    if cleaned := count("cleaned"):
        yield f"{counted(cleaned, 'file')} cleaned"
    if archived := count("archived"):
        yield f"{counted(archived, 'instant')} archived"
    yield duration(report.seconds * 1000)


def _clustered(report: ServiceReport) -> Iterator[str]:
    count = report.count
    yield from _due(report)
    if units := count("units"):
        groups = f"{number(count('file_groups'))} file groups in {number(units)} units"
        yield f"would lay out {groups}, {size(count('bytes_read'))}"
    if report.completed:
        yield f"{number(count('replaced'))} file groups became {number(count('made'))}"
        yield f"{counted(count('rows'), 'row')}, {size(count('bytes_written'))} written"
        if left := _left(report):
            yield f"{left} of the clusterings had been planned before"
    if gave_way := count("gave_way"):
        yield f"{number(gave_way)} units gave way to commits"
    yield from _pending(report, "" if units else "nothing to lay out")
    yield duration(report.seconds * 1000)


def _cleaned(report: ServiceReport) -> Iterator[str]:
    yield report.skipped or f"{counted(report.count('files'), 'file')} {'would be ' * report.dry_run}deleted"
    if report.retained is not None:
        yield f"all of {report.retained} and later stays"


def _archived(report: ServiceReport) -> Iterator[str]:
    yield report.skipped or f"{counted(report.count('instants'), 'instant')} {'would be ' * report.dry_run}archived"


def _due(report: ServiceReport) -> Iterator[str]:
    if report.due is not None:
        yield f"due: {report.due}"


def _left(report: ServiceReport) -> int:
    """How many of the completed plans another process had made."""
    return len(report.completed) - (report.scheduled in report.completed)


def _pending(report: ServiceReport, nothing: str) -> Iterator[str]:
    """The plans that wait; ``nothing``: what to say where none waits and none completed, "" for nothing at all."""
    if report.pending:
        yield f"pending: {', '.join(report.pending)}"
    elif not report.completed and nothing:
        yield "failed" if report.error is not None else report.skipped or nothing


def _planned(report: ServiceReport, *counts: str) -> dict[str, object]:
    """The fields of a service that plans. ``counts``: the names of those that it has."""
    names = ("due", "scheduled", "completed", "pending")
    totals = {name: report.count(name) for name in counts}
    return {name: getattr(report, name) for name in names} | totals | {"seconds": round(report.seconds, 3)}


def _compaction_fields(report: ServiceReport) -> dict[str, object]:
    fields = _planned(report, "file_groups", "rows", "bytes_written", "cleaned", "archived")
    return fields | {"skipped": report.skipped, "warning": report.warning, "error": report.error}


def _clustering_fields(report: ServiceReport) -> dict[str, object]:
    foreseen = ("units", "file_groups", "bytes_read")
    fields = _planned(report, *foreseen, "replaced", "made", "rows", "bytes_written", "gave_way")
    return fields | {"skipped": report.skipped, "error": report.error}


def _clean_fields(report: ServiceReport) -> dict[str, object]:
    return {} if report.skipped else {"files": report.names, "retained": report.retained}


def _archive_fields(report: ServiceReport) -> dict[str, object]:
    return {} if report.skipped else {"instants": report.count("instants")}


COMPACT: Final = ServiceCommand("compact", lambda lake: lake.compact, _compacted, _compaction_fields)
CLUSTER: Final = ServiceCommand("cluster", lambda lake: lake.cluster, _clustered, _clustering_fields)
CLEAN: Final = ServiceCommand("clean", lambda lake: lake.clean, _cleaned, _clean_fields, quiet=True)
ARCHIVE: Final = ServiceCommand("archive", lambda lake: lake.archive, _archived, _archive_fields, quiet=True)
