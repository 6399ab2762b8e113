"""The upkeep of a table from a process of its own, beside the stream that writes it or without one: compaction,
cleaning, archival, and that of the metadata table.

What changes the timeline happens under the table's lock; what another living process has under way is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pipeline.clock import monotonic_s
from pipeline.errors import BinlakeError
from pipeline.hudi.actions.clean import read_plan
from pipeline.hudi.locking.ownership import Locking
from pipeline.hudi.services.compaction import (
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
from pipeline.hudi.services.compaction.plan import pending_compactions
from pipeline.hudi.table.table import HudiTable
from pipeline.hudi.timeline.instant import Instant
from pipeline.lake.catalog import CatalogTable
from pipeline.lake.lake_table import LakeTable
from pipeline.lake.table_services import archive_if_long, clean_if_due, compaction_config
from pipeline.settings import CompactionSettings, TableRules


@dataclass(frozen=True)
class Wanted:
    """What shall be done. ``now``: compact what there is, due or not. ``schedule``, ``execute``: the two steps of
    compaction; cleaning and archival follow the second."""

    now: bool = False
    schedule: bool = True
    execute: bool = True


@dataclass
class Report:
    """What was done to a table.

    Args:
        table: its name.
        due: why a compaction was scheduled; None if it was not.
        scheduled: the compaction that was scheduled.
        completed: the compactions that completed, those that a dead process had left among them.
        pending: compactions that still are: another process works on them, or they were not to be executed.
        file_groups, rows, bytes_written: of those that completed.
        cleaned: files deleted.
        archived: instants moved to the history.
        seconds: all in all.
        warning: what could not be done, though nothing failed.
        error: what ended it early.
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
    warning: str | None = None
    error: BinlakeError | None = None

    def count(self, instant: Instant, files: Sequence[CompactedFile]) -> None:
        """Take in a compaction that completed."""
        self.completed.append(instant.requested_time)
        self.file_groups += len(files)
        self.rows += sum(file.base_stat.num_writes for file in files)
        self.bytes_written += sum(added.size for file in files for added in file.added)


def maintain(place: CatalogTable, locking: Locking, map_tasks: MapTasks, wanted: Wanted) -> Report:
    """Do what is due to a table; an error of binlake's ends in the report.

    Args:
        place: the table.
        locking: how it is shared with its writers.
        map_tasks: where compactions work.
        wanted: what shall be done.
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
    config = compaction_config(rules, rules.compaction or CompactionSettings())
    if wanted.execute:
        for pending in abandoned(table):
            if (left := resume(table, pending, config)) is not None:
                _carry_out(table, left, map_tasks, report)
    if wanted.schedule and (requested := _scheduled(table, rules, config, wanted, report)) is not None:
        if wanted.execute:
            _carry_out(table, prepare(table, requested, config), map_tasks, report)
        else:
            table.ownership.end(requested.requested_time)  # whoever executes it finds nobody at work on it
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
    """The work and the end of a compaction."""
    made: list[CompactedFile] = []

    def counted(task: Callable[[Operation], CompactedFile], operations: Sequence[Operation]) -> list[CompactedFile]:
        made.extend(map_tasks(task, operations))
        return made

    completed = carry_out(table, job, counted)
    if completed is not None:
        report.count(completed, made)
