"""Services that plan in the timeline before they work (compaction, clustering): their steps, the way to run one, and
the report of a run.

1. ``schedule`` writes the plan, ``prepare`` puts it in flight.
2. ``execute`` does the work, in tasks that need nothing of the open table; it may run in another thread.
3. ``complete`` publishes what was made.

Steps 1 and 3 change the timeline under the table's lock; commits go on in between. A plan whose process is gone waits
for the next run, which takes it over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from hudilake.clock import now_ms, parse_instant
from hudilake.errors import LakeError
from hudilake.format.timeline.instant import Instant
from hudilake.table.table import HudiTable

_MS_PER_MINUTE = 60_000
T = TypeVar("T")
R = TypeVar("R")


class MapTasks(Protocol):
    """Runs a function over items, one task each, and returns the results in order: a thread pool's or Spark's map."""

    def __call__(self, function: Callable[[T], R], items: Sequence[T], /) -> list[R]:
        """Raises what the function raises, TransientError for a failed Spark job."""
        ...


def one_by_one(function: Callable[[T], R], items: Sequence[T], /) -> list[R]:
    """A MapTasks that runs the function here, one item after the other."""
    return [function(item) for item in items]


Job = TypeVar("Job")
Made = TypeVar("Made")


def due_by_commits(
    commits: Sequence[Instant], after_commits: int | None, after_minutes: float | None, kind: str, service: str
) -> str | None:
    """Why a service is due by the commits since it was last planned; None if it is not.

    Args:
        commits: completed, any order.
        after_commits: so many make it due; None for any number.
        after_minutes: so old may the oldest become; None for any age.
        kind: what the commits are called in the reason.
        service: what the service is called in the reason.
    """
    if not commits:
        return None
    if after_commits is not None and len(commits) >= after_commits:
        return f"{len(commits)} {kind}s since the last {service}"
    age_ms = now_ms() - parse_instant(min(i.completion_time or i.requested_time for i in commits))
    if after_minutes is not None and age_ms >= after_minutes * _MS_PER_MINUTE:
        return f"the oldest {kind} since the last {service} is {age_ms // _MS_PER_MINUTE} minutes old"
    return None


class ServiceOutcome(Protocol):
    """What became of one plan."""

    @property
    def instant(self) -> str:
        """The plan's requested time."""
        ...

    @property
    def completed(self) -> bool:
        """Whether anything was published; else the plan is gone."""
        ...

    @property
    def counts(self) -> Mapping[str, int]:
        """What was done, by name: file groups, rows, bytes."""
        ...


class PlannedService(Protocol[Job, Made]):
    """A service of one table. Its methods raise LockHeldError, LostOwnershipError, CommitUnknownError,
    ForeignActionError, CorruptDataError, UnsupportedError and StorageError as the functions that they call say."""

    @property
    def table(self) -> HudiTable:
        """Open."""
        ...

    def refusal(self) -> str | None:
        """Why tables of this kind never have the service; None if they can."""
        ...

    def waiting(self) -> list[Instant]:
        """The plans that no live process executes, oldest first, as of the table's last refresh."""
        ...

    def take_over(self, pending: Instant) -> Job | None:
        """Prepare one of ``waiting``; None if another process was first, or if the plan holds no more."""
        ...

    def due(self) -> str | None:
        """Why the service is due, as of the table's last refresh; None if it is not."""
        ...

    def schedule(self) -> Instant | None:
        """Write a plan, which has this process's heartbeat; None if there is nothing to do."""
        ...

    def prepare(self, requested: Instant) -> Job | None:
        """Put a plan of ``schedule`` in flight; None if it holds no more."""
        ...

    def execute(self, job: Job) -> Made:
        """Do the work; any thread may."""
        ...

    def complete(self, job: Job, made: Made) -> ServiceOutcome:
        """Publish the work. On an error the plan is left to the next run, or rolled back."""
        ...

    def give_up(self, job: Job) -> None:
        """Leave a plan whose execution has failed to the next run, or roll it back."""
        ...

    def pending(self) -> list[str]:
        """The requested times of all plans that are not completed."""
        ...


@dataclass(frozen=True)
class ServiceSteps:
    """The steps that are wanted.

    Args:
        now: plan whatever can be done, due or not.
        schedule: plan.
        execute: carry out plans, also those that were left by others.
        dry_run: only say what would be planned, for services that can.
    """

    now: bool = False
    schedule: bool = True
    execute: bool = True
    dry_run: bool = False


@dataclass
class ServiceReport:
    """What a service did to a table.

    Args:
        table: the table's name.
        due: why something was planned; None if nothing was.
        scheduled: the requested time of what was planned.
        completed: the requested times of what completed, also of plans that others had left.
        pending: those of plans that are not completed: another process has them, or execution was not wanted.
        counts: what was done, by name: file groups, rows, bytes, files, instants.
        names: the files or instants in question, where the service names them.
        retained: the requested time of the oldest write that stays whole; None if the service does not say it.
        dry_run: whether it is what would be done, and nothing was changed.
        seconds: the total time.
        skipped: why the table never has the service; None if it can.
        warning: what could not be done, without an error.
        error: what ended the service early.
    """

    table: str
    due: str | None = None
    scheduled: str | None = None
    completed: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    retained: str | None = None
    dry_run: bool = False
    seconds: float = 0.0
    skipped: str | None = None
    warning: str | None = None
    error: LakeError | None = None

    def count(self, name: str) -> int:
        """One of the counts; 0 if the service did not come to it."""
        return self.counts.get(name, 0)

    def add(self, outcome: ServiceOutcome) -> None:
        """Count a plan that was carried out."""
        if outcome.completed:
            self.completed.append(outcome.instant)
        for name, count in outcome.counts.items():
            self.counts[name] = self.count(name) + count


def run_planned(service: PlannedService[Job, Made], steps: ServiceSteps, report: ServiceReport) -> None:
    """Take over the plans that wait and carry them out; then plan what is due and carry that out.

    Args:
        service: of one table, as of its last refresh.
        steps: what of this is wanted; ``dry_run`` is the caller's.
        report: takes in what was done, also if an error ends the run early.

    Raises as the service's methods.
    """
    if steps.execute:
        for pending in service.waiting():
            if (job := service.take_over(pending)) is not None:
                report.add(carry_out(service, job))
    if steps.schedule:
        reason = "asked for" if steps.now else service.due()
        requested = service.schedule() if reason is not None else None
        if requested is not None:
            report.due, report.scheduled = reason, requested.requested_time
            if not steps.execute:
                service.table.ownership.end(requested.requested_time)  # so that another process may execute it
            elif (job := service.prepare(requested)) is not None:
                report.add(carry_out(service, job))
    report.pending = service.pending()


def carry_out(service: PlannedService[Job, Made], job: Job) -> ServiceOutcome:
    """Execute a job and complete it, in the calling thread. Raises as the service's methods."""
    try:
        made = service.execute(job)
    except BaseException:
        service.give_up(job)
        raise
    return service.complete(job, made)
