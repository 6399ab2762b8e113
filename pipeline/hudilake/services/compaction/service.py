"""The compaction of one table as a ``PlannedService``, and all of its steps in one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudilake.commit.compaction_plan import pending_compactions
from hudilake.format.definition.kind_support import Operation
from hudilake.format.timeline.instant import Instant
from hudilake.services.compaction.config import CompactionConfig
from hudilake.services.compaction.job import CompactionJob, MapTasks, execute, prepare
from hudilake.services.compaction.pending import PATIENCE_S, abandoned, publish_or_unschedule, resume
from hudilake.services.compaction.scheduling import due, schedule
from hudilake.services.compaction.task import CompactedFile
from hudilake.services.planned import ServiceReport, ServiceSteps, run_planned
from hudilake.table.table import HudiTable


@dataclass(frozen=True)
class CompactionOutcome:
    """A compaction that has ended.

    Args:
        instant: its requested time.
        completed: False if its plan was unsound and it was unscheduled.
        counts: base files written (``file_groups``), their ``rows``, and ``bytes_written`` with those of tombstones.
    """

    instant: str
    completed: bool
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Compaction:
    """A ``PlannedService``.

    Args:
        table: open.
        config: the settings.
        map_tasks: runs the tasks.
        patience_s: how long completion waits for delta commits that were begun before the compaction.
        all_groups: plan also what a pending clustering of binlake will replace.
    """

    table: HudiTable
    config: CompactionConfig
    map_tasks: MapTasks
    patience_s: float = PATIENCE_S
    all_groups: bool = False

    def refusal(self) -> str | None:
        """Why a copy-on-write table has none."""
        refused = self.table.config.kind.refusal(Operation.COMPACTION)
        return refused.why if refused is not None else None

    def waiting(self) -> list[Instant]:
        """Pending compactions, ours or Hudi's, without a live owner."""
        return abandoned(self.table)

    def take_over(self, pending: Instant) -> CompactionJob | None:
        """None also if a file of the plan is gone, and it was unscheduled."""
        return resume(self.table, pending, self.config)

    def due(self) -> str | None:
        """By commits, age or the ratio of log bytes."""
        return due(self.table, self.config)

    def schedule(self) -> Instant | None:
        """A plan of file groups that have log files."""
        return schedule(self.table, self.config, all_groups=self.all_groups)

    def prepare(self, requested: Instant) -> CompactionJob:
        """The plan with all data for its execution."""
        return prepare(self.table, requested, self.config)

    def execute(self, job: CompactionJob) -> list[CompactedFile]:
        """Write the base files."""
        return execute(job, self.map_tasks)

    def complete(self, job: CompactionJob, made: list[CompactedFile]) -> CompactionOutcome:
        """Publish, or unschedule an unsound plan; after any other error the plan stays, without an owner."""
        time = job.instant.requested_time
        if publish_or_unschedule(self.table, job, made, self.patience_s) is None:
            return CompactionOutcome(time, completed=False)
        rows = sum(file.base_stat.num_writes for file in made)
        written = sum(added.size for file in made for added in file.added)
        return CompactionOutcome(time, True, {"file_groups": len(made), "rows": rows, "bytes_written": written})

    def give_up(self, job: CompactionJob) -> None:
        """Leave the plan without an owner, so that any process can execute it."""
        self.table.ownership.end(job.instant.requested_time)

    def pending(self) -> list[str]:
        """All that are requested or inflight."""
        return [instant.requested_time for instant in pending_compactions(self.table.timeline)]


def run(
    table: HudiTable,
    config: CompactionConfig,
    map_tasks: MapTasks,
    *,
    now: bool = False,
    patience_s: float = PATIENCE_S,
) -> list[Instant]:
    """Finish pending compactions, then compact if it is due; returns the compactions that completed.

    Args:
        table: open.
        config: the settings.
        map_tasks: runs the tasks.
        now: compact even if it is not due, and what a pending clustering of binlake will replace.
        patience_s: how long to wait for delta commits that were begun before the compaction.

    Raises as the steps of ``Compaction``.
    """
    service = Compaction(table, config, map_tasks, patience_s, all_groups=now)
    finished = _completed(service, ServiceSteps(schedule=False))
    return [*finished, *_completed(service, ServiceSteps(now=now))]


def finish_pending(
    table: HudiTable, config: CompactionConfig, map_tasks: MapTasks, patience_s: float = PATIENCE_S
) -> list[Instant]:
    """Execute every pending compaction that has no live owner, oldest first; returns those that completed.

    The caller has rolled back the commits of dead writers. Raises as the steps of ``Compaction``; CorruptDataError for
    a plan that cannot be read.
    """
    return _completed(Compaction(table, config, map_tasks, patience_s), ServiceSteps(schedule=False))


def _completed(service: Compaction, steps: ServiceSteps) -> list[Instant]:
    service.table.refresh()
    report = ServiceReport(service.table.config.name)
    run_planned(service, steps, report)
    ended = (service.table.timeline.find(time) for time in report.completed)
    return [instant for instant in ended if instant is not None]
