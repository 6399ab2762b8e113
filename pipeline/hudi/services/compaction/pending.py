"""After a crash: a pending compaction is executed again, whoever planned it, and never rolled back.

Only a plan that cannot be executed is taken back: one that names files which are gone, or that a commit has made
unsound. Order on storage of taking back, each step repeatable: what the metadata table was told, the files, the
inflight file, the requested file, the markers.
"""

from __future__ import annotations

from pipeline.hudi.commit import check_not_completed, drop_markers
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
from pipeline.hudi.services.rollback import files_of_instant
from pipeline.hudi.table import HudiTable
from pipeline.hudi.timeline.instant import Instant, State
from pipeline.storage.base import Storage

#: How long a compaction waits, with its files written, for delta commits that were begun before it.
PATIENCE_S = 60.0


def finish_pending(
    table: HudiTable, config: CompactionConfig, map_tasks: MapTasks, patience_s: float = PATIENCE_S
) -> list[Instant]:
    """Execute every pending compaction, oldest first; returns those that completed.

    The caller is the table's one compactor (a pending compaction of a living one would be done twice), and has rolled
    back what dead writers left. Errors as those of the steps; CorruptDataError for a plan that cannot be read.
    """
    table.refresh()
    done = []
    for pending in pending_compactions(table.timeline):
        job = resume(table, pending, config)
        if job is None:
            continue
        made = execute(job, map_tasks)
        wait_for_older_writers(table, job.instant.requested_time, patience_s)
        try:
            done.append(complete(table, job.instant, made))
        except UnsoundPlanError:
            unschedule(table, pending)
    return done


def resume(table: HudiTable, pending: Instant, config: CompactionConfig) -> CompactionJob | None:
    """Make ready to execute a pending compaction of a dead run, ours or Hudi's; None if it had to be unscheduled.

    To be used in place of ``prepare`` wherever the schedule is not this run's own. Errors as ``prepare``.
    """
    if _missing(table.storage, read_plan(table.storage, pending)):
        unschedule(table, pending)
        return None
    _clear_away(table.storage, pending)
    return prepare(table, pending, config)


def unschedule(table: HudiTable, instant: Instant) -> None:
    """Take a pending compaction back: its files and its plan go, and its log files count for the old slice again.

    Raises LostOwnershipError if somebody has completed it, StorageError: then call again.
    """
    check_not_completed(table.storage, instant.requested_time)
    unnote(table, instant.requested_time)
    for partition, name in files_of_instant(table.storage, instant):
        table.storage.delete(in_partition(partition, name))
    for state in (State.INFLIGHT, State.REQUESTED):
        table.storage.delete(instant.at(state).path)
    table.timeline.forget(instant)
    drop_markers(table.storage, instant.requested_time)


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
