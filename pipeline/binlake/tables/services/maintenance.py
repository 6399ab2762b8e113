"""Runs table services (compaction, cleaning, archival, and those of the metadata table) from a process of their own.

A stream may write the table at the same time. The timeline is changed under the table's lock; compactions that another
live process is running are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from binlake.settings import CompactionSettings, TableRules
from binlake.tables.catalog import CatalogTable
from binlake.tables.lake_table import LakeTable
from binlake.tables.services.configs import compaction_config
from binlake.tables.services.upkeep import archive_if_long, clean_if_due
from hudilake.clock import monotonic_s
from hudilake.commit.clean import read_plan
from hudilake.errors import BinlakeError
from hudilake.format.definition import kind_support
from hudilake.format.timeline.instant import Instant
from hudilake.locking.ownership import Locking
from hudilake.services.compaction import (
    CompactedFile,
    CompactionConfig,
    CompactionJob,
    MapTasks,
    Operation,
    abandoned,
    carry_out,
    due,
    prepare,
    resume,
    schedule,
)
from hudilake.services.compaction.plan import pending_compactions
from hudilake.table.table import HudiTable


@dataclass(frozen=True)
class Wanted:
    """The requested services. ``now``: compact all log files, due or not. ``schedule``, ``execute``: the two steps of
    compaction; cleaning and archival follow the second."""

    now: bool = False
    schedule: bool = True
    execute: bool = True


@dataclass
class Report:
    """The result of the services of a table.

    Args:
        table: the table's name.
        due: why a compaction was scheduled; None if none was.
        scheduled: the instant of the compaction that was scheduled.
        completed: the compactions that completed, including those that a dead process had left pending.
        pending: compactions that are still pending: another process runs them, or execution was not requested.
        file_groups, rows, bytes_written: totals of the completed compactions.
        cleaned: number of files deleted.
        archived: number of instants moved to the history.
        seconds: the total time.
        skipped: why the table is never compacted; None if it can be.
        warning: a service that could not run, without an error.
        error: the error that ended the services early.
    """

    table: str
    due: str | None = None
    scheduled: str | None = None
    completed: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    file_groups: int = 0
    rows: int = 0
    bytes_written: int = 0
    cleaned: int = 0
    archived: int = 0
    seconds: float = 0.0
    skipped: str | None = None
    warning: str | None = None
    error: BinlakeError | None = None

    def count(self, instant: Instant, files: Sequence[CompactedFile]) -> None:
        """Add a completed compaction."""
        self.completed.append(instant.requested_time)
        self.file_groups += len(files)
        self.rows += sum(file.base_stat.num_writes for file in files)
        self.bytes_written += sum(added.size for file in files for added in file.added)


def maintain(place: CatalogTable, locking: Locking, map_tasks: MapTasks, wanted: Wanted) -> Report:
    """Run the services that are due for a table. A BinlakeError is put into the report and not raised.

    Args:
        place: the table.
        locking: how the table is shared with its writers.
        map_tasks: runs the work of compactions.
        wanted: the requested services.
    """
    started, report = monotonic_s(), Report(place.name)
    try:
        table = LakeTable.open(place.storage, place.rules, locking).table
        _compact(table, place.rules, map_tasks, wanted, report)
        if wanted.execute:
            report.warning = table.maintain()
            if (done := clean_if_due(table, place.rules)) is not None:
                report.cleaned = read_plan(table.storage, done).count
            report.archived = archive_if_long(table, place.rules)
    except BinlakeError as error:
        report.error = error
    report.seconds = monotonic_s() - started
    return report


def _compact(table: HudiTable, rules: TableRules, map_tasks: MapTasks, wanted: Wanted, report: Report) -> None:
    if (refusal := kind_support.refusal(table.config.kind, kind_support.Operation.COMPACTION)) is not None:
        report.skipped = refusal.why
        return
    config = compaction_config(rules, rules.compaction or CompactionSettings())
    if wanted.execute:
        for pending in abandoned(table):
            if (left := resume(table, pending, config)) is not None:
                _carry_out(table, left, map_tasks, report)
    if wanted.schedule and (requested := _scheduled(table, rules, config, wanted, report)) is not None:
        if wanted.execute:
            _carry_out(table, prepare(table, requested, config), map_tasks, report)
        else:
            table.ownership.end(requested.requested_time)  # so that another process may execute it
    report.pending = [i.requested_time for i in pending_compactions(table.timeline)]


def _scheduled(
    table: HudiTable, rules: TableRules, config: CompactionConfig, wanted: Wanted, report: Report
) -> Instant | None:
    if rules.compaction is None and not wanted.now:
        return None
    reason = "asked for" if wanted.now else due(table, config)
    requested = schedule(table, config) if reason is not None else None
    if requested is not None:
        report.due, report.scheduled = reason, requested.requested_time
    return requested


def _carry_out(table: HudiTable, job: CompactionJob, map_tasks: MapTasks, report: Report) -> None:
    """Run a compaction and complete it."""
    made: list[CompactedFile] = []

    def counted(task: Callable[[Operation], CompactedFile], operations: Sequence[Operation]) -> list[CompactedFile]:
        made.extend(map_tasks(task, operations))
        return made

    completed = carry_out(table, job, counted)
    if completed is not None:
        report.count(completed, made)
