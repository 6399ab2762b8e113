"""After a crash: a pending compaction is executed again, whoever planned it, and never rolled back. That nobody works
on it any more its heartbeat tells.

Only a plan that cannot be executed is taken back: one that names files which are gone, or that a commit has made
unsound. Order on storage of taking back, each step repeatable: what the metadata table was told, the files, the
inflight file, the requested file, the markers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pipeline.hudi.actions.commit import check_not_completed, drop_markers
from pipeline.hudi.actions.rollback import files_of_instant
from pipeline.hudi.files.names import STEADY_TOKEN, in_partition, parse_base_name, parse_log_name
from pipeline.hudi.services.compaction.completion import (
    UnsoundPlanError,
    complete,
    unnote,
    wait_for_older_writers,
)
from pipeline.hudi.services.compaction.config import CompactionConfig
from pipeline.hudi.services.compaction.job import CompactionJob, MapTasks, execute, prepare
from pipeline.hudi.services.compaction.plan import CompactionPlan, pending_compactions, read_plan
from pipeline.hudi.services.compaction.task import CompactedFile
from pipeline.hudi.table.table import HudiTable
from pipeline.hudi.timeline.instant import Instant, State
from pipeline.storage.base import Storage

_log = logging.getLogger(__name__)

#: How long a compaction waits, with its files written, for delta commits that were begun before it.
PATIENCE_S = 60.0


def finish_pending(
    table: HudiTable, config: CompactionConfig, map_tasks: MapTasks, patience_s: float = PATIENCE_S
) -> list[Instant]:
    """Execute every pending compaction, oldest first; returns those that completed.

    The caller has rolled back what dead writers left. Errors as those of the steps; CorruptDataError for a plan that
    cannot be read.
    """
    table.refresh()
    done = []
    for pending in abandoned(table):
        job = resume(table, pending, config)
        if job is not None and (completed := carry_out(table, job, map_tasks, patience_s)) is not None:
            done.append(completed)
    return done


def carry_out(
    table: HudiTable, job: CompactionJob, map_tasks: MapTasks, patience_s: float = PATIENCE_S
) -> Instant | None:
    """Execute a compaction of ours and complete it; None if its plan was unsound, and it was unscheduled.

    If it fails it is abandoned, for the next attempt, anybody's. Errors as those of the steps.
    """
    try:
        made = execute(job, map_tasks)
        wait_for_older_writers(table, job.instant.requested_time, patience_s)
    except BaseException:
        table.ownership.end(job.instant.requested_time)
        raise
    return publish_or_unschedule(table, job, made)


def publish_or_unschedule(table: HudiTable, job: CompactionJob, made: Iterable[CompactedFile]) -> Instant | None:
    """The end of ``carry_out``, for those who execute elsewhere."""
    try:
        return complete(table, job.instant, made)
    except UnsoundPlanError:
        unschedule(table, job.instant)
        return None
    except BaseException:
        table.ownership.end(job.instant.requested_time)
        raise


def abandoned(table: HudiTable) -> list[Instant]:
    """The pending compactions that nobody works on, oldest first, as of the table's last refresh."""
    return [i for i in pending_compactions(table.timeline) if table.ownership.is_abandoned(i.requested_time)]


def resume(table: HudiTable, pending: Instant, config: CompactionConfig) -> CompactionJob | None:
    """Make ready to execute an abandoned compaction, ours or Hudi's; None if somebody else was first, or if it had to
    be unscheduled.

    To be used in place of ``prepare`` wherever the schedule is not this run's own. Errors as ``prepare``.
    """
    with table.exclusively():
        table.refresh()
        if pending.requested_time not in {instant.requested_time for instant in abandoned(table)}:
            return None
        table.ownership.take_over(pending.requested_time)
        if _missing(table.storage, read_plan(table.storage, pending)):
            unschedule(table, pending)
            return None
        _clear_away(table.storage, pending)
        return prepare(table, pending, config)


def unschedule(table: HudiTable, instant: Instant) -> None:
    """Take a pending compaction back: its files and its plan go, and its log files count for the old slice again.

    Raises LostOwnershipError if somebody has completed it, StorageError: then call again.
    """
    with table.exclusively():
        check_not_completed(table.storage, instant.requested_time)
        unnote(table, instant.requested_time)
        for partition, name in files_of_instant(table.storage, instant):
            table.storage.delete(in_partition(partition, name))
        for state in (State.INFLIGHT, State.REQUESTED):
            table.storage.delete(instant.in_state(state).path)
        table.timeline.forget(instant)
        drop_markers(table.storage, instant.requested_time)
    table.ownership.end(instant.requested_time)
    uri, time = table.storage.uri, instant.requested_time
    fields = {"event": "compaction_unscheduled", "table": uri, "instant": time}
    _log.info("%s: the compaction %s was unscheduled", uri, time, extra=fields)


def _missing(storage: Storage, plan: CompactionPlan) -> set[str]:
    """The files of a plan that are not on storage."""
    partitions = {operation.partition_path for operation in plan.operations}
    there = {info.path for partition in partitions for info in storage.list(partition)}
    return {path for operation in plan.operations for path in operation.paths} - there


def _clear_away(storage: Storage, instant: Instant) -> None:
    """Delete what another writer's attempt left under names that ours does not overwrite."""
    if instant.state is State.INFLIGHT:
        for partition, name in files_of_instant(storage, instant):
            parsed = parse_base_name(name) or parse_log_name(name)
            if parsed is None or parsed.write_token != STEADY_TOKEN:
                storage.delete(in_partition(partition, name))
