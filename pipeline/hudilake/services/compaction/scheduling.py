"""The schedule of compactions: when one is due, and its plan.

The instant is later than the completion of every log file in the plan, and a delta commit that completes later is in
the next slice. So no delta commit may take its completion time before the instant and appear after the plan was made:
the table's lock is held during ``schedule``, and from the completion time to the completed file of each commit.
(``complete`` checks again, and refuses a plan that a writer without the lock has made unsound.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hudilake.commit.commit import request
from hudilake.commit.compaction_plan import CompactionOperation, CompactionPlan, pending_compactions, read_plan
from hudilake.commit.planned import groups_of
from hudilake.format.definition import kind_support
from hudilake.format.files.view import FileSlice, LogFile
from hudilake.format.timeline.instant import COMMIT, COMPACTION, DELTA_COMMIT, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.services.compaction.config import CompactionConfig
from hudilake.services.planned import due_by_commits
from hudilake.storage.base import AlreadyExistsError
from hudilake.table.table import HudiTable

_ATTEMPTS = 5


def due(table: HudiTable, config: CompactionConfig) -> str | None:
    """The reason why a compaction is due, as of the table's last refresh; None if it is not due.

    The first two reasons need no storage call; the ratio needs the file slices.
    """
    commits = _since_last(table.timeline)
    if not commits:
        return None
    reason = due_by_commits(commits, config.after_commits, config.after_minutes, "delta commit", "compaction")
    return reason or _ratio_met(table, config)


def schedule(
    table: HudiTable,
    config: CompactionConfig,
    *,
    all_groups: bool = False,
    among: Collection[tuple[str, str]] | None = None,
) -> Instant | None:
    """Plan a compaction of every file group that has log files and is in no pending plan; returns its instant.

    None if there is nothing to compact. The instant then has this writer's heartbeat. ``all_groups``: also of those
    that a pending clustering of binlake will replace; it gives way. ``among``: of these file groups alone, partition
    path and file id, also where log files only state deletes again; None for all. Raises UnsupportedError for a
    copy-on-write table and one that binlake cannot write to, ForeignActionError while an action is pending that
    excludes all others, LockHeldError, CorruptDataError, StorageError.
    """
    table.state.check_writable()
    table.config.kind.refuse(kind_support.TableOperation.COMPACTION, table.config.name)
    with table.exclusively():
        return _schedule(table, config, all_groups=all_groups, among=among)


def _schedule(
    table: HudiTable, config: CompactionConfig, *, all_groups: bool, among: Collection[tuple[str, str]] | None
) -> Instant | None:
    for attempt in range(_ATTEMPTS):
        time = table.clock.next()
        table.refresh()
        table.state.refuse_foreign()
        operations = _chosen(_candidates(table, time, among, all_groups=all_groups), config)
        if not operations:
            return None
        requested = Instant(time, COMPACTION, State.REQUESTED)
        try:
            request(table.storage, requested, CompactionPlan(tuple(operations)).to_bytes(), table.ownership)
        except AlreadyExistsError:
            if attempt == _ATTEMPTS - 1:
                raise
            continue  # a commit may have completed meanwhile: plan again
        table.timeline.record(requested)
        return requested
    return None


def logs_before(timeline: Timeline, logs: Iterable[LogFile], time: str) -> tuple[LogFile, ...]:
    """The log files whose commits completed before an instant: a compaction of that instant has to merge them."""
    return tuple(log for log in logs if (timeline.completion_time(log.name.instant) or time) < time)


def _since_last(timeline: Timeline) -> list[Instant]:
    """The delta commits that completed since a compaction was last scheduled."""
    compactions = [i.requested_time for i in timeline.completed() if i.action == COMMIT]
    last = max([*compactions, *(i.requested_time for i in pending_compactions(timeline))], default="")
    return [i for i in timeline.completed() if i.action == DELTA_COMMIT and (i.completion_time or "") >= last]


def _ratio_met(table: HudiTable, config: CompactionConfig) -> str | None:
    if config.log_ratio is None:
        return None
    slices = table.file_slices()
    logs, bases = sum(s.log_size for s in slices), sum(s.base_size for s in slices if s.log_files)
    if logs < config.log_ratio_from_bytes or logs < config.log_ratio * bases:
        return None
    return f"{logs} bytes of log files over {bases} bytes of base files"


def _candidates(
    table: HudiTable, time: str, among: Collection[tuple[str, str]] | None, *, all_groups: bool
) -> list[tuple[FileSlice, tuple[LogFile, ...]]]:
    """The slices with something to merge, and the log files to merge."""
    planned = {
        operation.group
        for pending in pending_compactions(table.timeline)
        for operation in read_plan(table.storage, pending).operations
    }
    planned |= groups_of([one for one in table.state.planned() if not (one.ours and all_groups)])
    candidates = []
    for file_slice in table.file_slices():
        base = file_slice.base_file
        logs = logs_before(table.timeline, file_slice.log_files, time)
        restated = base.name.instant if base is not None and _is_compaction(table.timeline, base.name.instant) else ""
        # A log file of a compaction's own instant only states tombstones again.
        has_new_rows = any(log.name.instant != restated for log in logs)
        group = file_slice.partition_path, file_slice.file_id
        wanted = has_new_rows if among is None else bool(logs) and group in among
        if wanted and group not in planned:
            candidates.append((file_slice, logs))
    return candidates


def _is_compaction(timeline: Timeline, instant: str) -> bool:
    """False for an archived compaction too: its tombstones are then compacted once without need."""
    completed = timeline.find(instant)
    return completed is not None and timeline.is_compaction(completed)


def _chosen(
    candidates: list[tuple[FileSlice, tuple[LogFile, ...]]], config: CompactionConfig
) -> list[CompactionOperation]:
    """The slices within the limits; those with the most log bytes for their base file are first."""
    ordered = sorted(
        candidates, key=lambda c: (-c[0].log_size / (c[0].base_size + 1), c[0].partition_path, c[0].file_id)
    )
    chosen: list[CompactionOperation] = []
    total = 0
    for file_slice, logs in ordered[: config.max_file_groups]:
        total += 2 * file_slice.base_size + sum(log.size for log in logs)
        if chosen and config.max_io_bytes is not None and total > config.max_io_bytes:
            break
        chosen.append(CompactionOperation.of(file_slice, logs))
    return sorted(chosen, key=lambda operation: operation.group)
