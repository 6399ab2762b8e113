"""Recovery of pending compactions: they are executed again, whoever planned them, and never rolled back. The heartbeat
shows whether a live process still works on one.

Only a plan that cannot be executed is unscheduled: one that names deleted files, or one that lacks a completed commit.
Order on storage of unscheduling, each step repeatable: the metadata table's entries, the files, the inflight file, the
requested file, the markers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from hudilake.commit.commit import check_not_completed, drop_markers
from hudilake.commit.compaction_plan import CompactionPlan, pending_compactions, read_plan
from hudilake.commit.rollback import files_of_instant
from hudilake.format.files.names import STEADY_TOKEN, in_partition, parse_base_name, parse_log_name
from hudilake.format.timeline.instant import Instant, State
from hudilake.services.compaction.completion import (
    UnsoundPlanError,
    complete,
    undo_entries,
    wait_for_older_writers,
)
from hudilake.services.compaction.config import CompactionConfig
from hudilake.services.compaction.job import CompactionJob, prepare
from hudilake.services.compaction.task import CompactedFile
from hudilake.storage.base import Storage
from hudilake.table.table import HudiTable

_log = logging.getLogger(__name__)

#: How long a compaction with written files waits for delta commits that were begun before it.
PATIENCE_S = 60.0


def publish_or_unschedule(
    table: HudiTable, job: CompactionJob, made: Iterable[CompactedFile], patience_s: float = 0.0
) -> Instant | None:
    """Complete a compaction of ours whose files are written; None if its plan was unsound and it was unscheduled.

    ``patience_s``: how long to wait for delta commits that were begun before it. If it fails it is abandoned, so that
    any process can execute it again. Errors as ``complete``.
    """
    try:
        wait_for_older_writers(table, job.instant.requested_time, patience_s)
        return complete(table, job.instant, made)
    except UnsoundPlanError:
        unschedule(table, job.instant)
        return None
    except BaseException:
        table.ownership.end(job.instant.requested_time)
        raise


def abandoned(table: HudiTable) -> list[Instant]:
    """The pending compactions without a live owner, oldest first, as of the table's last refresh."""
    return [i for i in pending_compactions(table.timeline) if table.ownership.is_abandoned(i.requested_time)]


def resume(table: HudiTable, pending: Instant, config: CompactionConfig) -> CompactionJob | None:
    """Prepare the execution of an abandoned compaction, ours or Hudi's; None if another process was first, or if it
    had to be unscheduled.

    Use it in place of ``prepare`` if this run did not schedule the compaction. Errors as ``prepare``.
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
    """Unschedule a pending compaction: its files and its plan are deleted, and its log files belong to the old slice
    again.

    Raises LostOwnershipError if another process completed it; StorageError: then call again.
    """
    with table.exclusively():
        check_not_completed(table.storage, instant.requested_time)
        undo_entries(table, instant.requested_time)
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
    existing = {info.path for partition in partitions for info in storage.list(partition)}
    return {path for operation in plan.operations for path in operation.paths} - existing


def _clear_away(storage: Storage, instant: Instant) -> None:
    """Delete the files of another writer's attempt that our attempt does not overwrite."""
    if instant.state is State.INFLIGHT:
        for partition, name in files_of_instant(storage, instant):
            parsed = parse_base_name(name) or parse_log_name(name)
            if parsed is None or parsed.write_token != STEADY_TOKEN:
                storage.delete(in_partition(partition, name))
