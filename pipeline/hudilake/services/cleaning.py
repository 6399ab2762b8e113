"""Cleaning: deletes file slices that neither the retention, a savepoint nor a pending compaction needs.

The rules are those of Hudi's KEEP_LATEST_COMMITS and KEEP_LATEST_BY_HOURS. The retention gives the oldest write to
retain: of every file group the slice that was its newest then is kept, and all later ones. A file group that was
replaced by then is deleted whole. That write is never later
than the last one before the oldest pending write, so the files that a pending compaction reads are always kept.

``clean`` plans and executes, as ``actions.clean`` describes, under the table's lock. ``finish_pending`` continues after
a crash: a pending clean that is visible under the lock has no live owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hudilake.clock import format_instant, now_ms
from hudilake.commit import clean as clean_action
from hudilake.commit.clean import CleanPlan
from hudilake.commit.savepoint_record import held_files, savepoints
from hudilake.format.definition.format_config import FormatConfig
from hudilake.format.files.names import BaseFileName, LogFileName, parse_base_name, parse_log_name
from hudilake.format.files.view import partition_paths
from hudilake.format.timeline.avro_container import decode_container
from hudilake.format.timeline.instant import (
    CLEAN,
    COMMIT,
    DELTA_COMMIT,
    REPLACE_COMMIT,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
    State,
)
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.records.delta import FileKey, MetadataDelta
from hudilake.metadata.services import rollback as metadata_rollback
from hudilake.policies import RetentionPolicy
from hudilake.services.compaction import plan as compaction_plan
from hudilake.storage.base import FileInfo, Storage
from hudilake.table.table import HudiTable

_MS_PER_HOUR = 3_600_000


class CleaningConfig(RetentionPolicy, FormatConfig):
    """How far back time travel is promised. A table without a commit in the last ``hours`` is not cleaned."""

    @property
    def policy(self) -> str:
        """Hudi's name for the rule."""
        return "KEEP_LATEST_COMMITS" if self.commits is not None else "KEEP_LATEST_BY_HOURS"


def oldest_retained(timeline: Timeline, config: CleaningConfig) -> Instant | None:
    """The oldest write whose file slices are kept, as of now; None while no slice may be deleted."""
    writes = timeline.completed()
    if config.commits is not None:
        oldest = writes[-config.commits] if len(writes) > config.commits else None
    else:
        cutoff = format_instant(max(0, now_ms() - int((config.hours or 0) * _MS_PER_HOUR)))
        oldest = next((write for write in writes if write.requested_time >= cutoff), None)
    pending = [i.requested_time for i in timeline.pending() if i.identity[1] in WRITE_ACTIONS]
    if oldest is None or not pending or oldest.requested_time <= min(pending):
        return oldest
    return next((write for write in reversed(writes) if write.requested_time < min(pending)), None)


def due(table: HudiTable, config: CleaningConfig) -> bool:
    """Whether a clean may have slices to delete, as of the table's last refresh; at most one storage call.

    It may if a compaction, or a write that replaced file groups, has left the retention since the last clean, or a
    savepoint was deleted. Call it at the end of a compaction: little else makes a slice superfluous; in tables that
    look keys up, commits do that fill small files.
    """
    retained = oldest_retained(table.timeline, config)
    if retained is None:
        return False
    rewriting = {COMMIT, DELTA_COMMIT} if table.config.kind.looks_up else {COMMIT}
    passed = [
        i.requested_time
        for i in table.timeline.completed()
        if (i.action in rewriting and i.requested_time < retained.requested_time)
        or (i.action == REPLACE_COMMIT and i.requested_time <= retained.requested_time)
    ]
    cleans = table.timeline.completed_actions({CLEAN})
    if not passed or not cleans:
        return bool(passed)
    last = decode_container(table.storage.read(cleans[-1].path), cleans[-1].path)
    existing = {savepoint.requested_time for savepoint in table.timeline.completed_actions({SAVEPOINT})}
    deleted = set(clean_action.savepoints_of(last.get("extraMetadata"))) - existing
    return bool(deleted) or passed[-1] >= (last.get("earliestCommitToRetain") or "")


def plan_clean(table: HudiTable, config: CleaningConfig) -> CleanPlan | None:
    """The plan of a clean as of now; None if no file is to be deleted.

    Raises CorruptDataError, StorageError.
    """
    timeline = table.timeline
    retained = oldest_retained(timeline, config)
    if retained is None:
        return None
    replaced = {group for group, instant in timeline.replaced().items() if instant <= retained.requested_time}
    held_savepoints = savepoints(table.storage, timeline)
    held, planned = held_files(held_savepoints), _planned_files(table.storage, timeline)
    files: dict[str, tuple[str, ...]] = {}
    for path, infos in listing(table).items():
        kept = held.get(path, set()) | planned.get(path, set())
        gone = frozenset(file_id for at, file_id in replaced if at == path)
        doomed = _doomed(infos, timeline, retained.requested_time, kept, gone)
        if doomed:
            files[path] = doomed
    if not files:
        return None
    last = timeline.last_completed()
    return CleanPlan(
        config.policy,
        files,
        _not_before_promised(table, retained),
        last.requested_time if last is not None else "",
        clean_action.savepoints_entry([savepoint.instant for savepoint in held_savepoints]),
    )


def clean(table: HudiTable, config: CleaningConfig) -> Instant | None:
    """Finish pending cleans, then delete slices outside the retention; returns the new clean, None if there is none.

    Raises UnsupportedError for a table that binlake cannot write to, LockHeldError, LostOwnershipError,
    CommitUnknownError, CorruptDataError, StorageError.
    """
    table.config.check_writable()
    with table.exclusively():
        finish_pending(table)
        plan = plan_clean(table, config)
        if plan is None:
            return None
        requested = clean_action.request(table.storage, table.timeline, table.clock, plan)
        return _execute(table, requested, plan)


def finish_pending(table: HudiTable) -> list[Instant]:
    """Finish the cleans that a dead cleaner, ours or Hudi's, planned. Errors as ``clean``."""
    table.refresh()
    if not clean_action.pending_cleans(table.timeline):
        return []
    with table.exclusively():
        pending = clean_action.pending_cleans(table.timeline)
        return [_execute(table, instant, clean_action.read_plan(table.storage, instant)) for instant in pending]


def _execute(table: HudiTable, requested: Instant, plan: CleanPlan) -> Instant:
    def note() -> None:
        _note(table, requested.requested_time, plan)

    return clean_action.execute(table.storage, table.timeline, table.clock, requested, plan, note)


def _note(table: HudiTable, time: str, plan: CleanPlan) -> None:
    """Record the clean in the metadata table, once: the partial entries of a dead attempt are undone before."""
    index = table.metadata_table
    if index is None:
        return
    told = index.timeline.find(time)
    if told is not None and told.completed:
        return
    metadata_rollback.take_back(index, time)
    files: list[FileKey] = [(path, name) for path, names in plan.files.items() for name in names]
    index.apply(time, MetadataDelta(deleted=tuple(files)))


@dataclass
class _Slice:
    """A file slice of any age. ``since``: its base file's instant, or without a base file that of its oldest log
    file."""

    since: str
    names: list[str] = field(default_factory=list)


def _doomed(
    infos: Iterable[FileInfo], timeline: Timeline, retained: str, kept: set[str], gone: frozenset[str]
) -> tuple[str, ...]:
    """The files of one partition in slices that may be deleted.

    Args:
        infos: the files.
        timeline: the table's.
        retained: requested time of the oldest write to retain.
        kept: bare names of files that are kept together with their slices.
        gone: the file groups that were replaced at or before ``retained``: no retained moment sees them.
    """
    doomed: list[str] = []
    for file_id, slices in _slices(infos, timeline).items():
        older = [s for s in slices if s.since < retained]
        superfluous = slices if file_id in gone else older[:-1]  # the last is the group's slice as of ``retained``
        for candidate in superfluous:
            if not kept.intersection(candidate.names):
                doomed += candidate.names
    return tuple(doomed)


def _slices(infos: Iterable[FileInfo], timeline: Timeline) -> dict[str, list[_Slice]]:
    """All file slices by file id, oldest first, without files of instants that are not completed."""
    bases: dict[str, list[BaseFileName]] = {}
    logs: dict[str, list[LogFileName]] = {}
    for info in infos:
        name = info.path.rpartition("/")[2]
        if (log := parse_log_name(name)) is not None and timeline.is_completed(log.instant):
            logs.setdefault(log.file_id, []).append(log)
        elif (base := parse_base_name(name)) is not None and timeline.is_completed(base.instant):
            bases.setdefault(base.file_id, []).append(base)
    groups = sorted(bases.keys() | logs.keys())
    return {group: _slices_of_group(bases.get(group, []), logs.get(group, []), timeline) for group in groups}


def _slices_of_group(bases: Sequence[BaseFileName], logs: Sequence[LogFileName], timeline: Timeline) -> list[_Slice]:
    slices = [_Slice(instant) for instant in sorted({base.instant for base in bases})]
    for base in bases:
        next(s for s in slices if s.since == base.instant).names.append(str(base))
    alone: list[LogFileName] = []
    for log in sorted(logs, key=lambda log: log.order):
        completion = timeline.completion_time(log.instant) or ""
        slice_of_log = next((s for s in reversed(slices) if s.since <= completion), None)
        if slice_of_log is None:
            alone.append(log)
        else:
            slice_of_log.names.append(str(log))
    return [_Slice(alone[0].instant, list(map(str, alone))), *slices] if alone else slices


def listing(table: HudiTable) -> dict[str, list[FileInfo]]:
    """The files of a table by partition path, from the metadata table or else from storage."""
    index = table.metadata_table
    if index is not None:
        return index.reader.listed(sorted(index.partition_paths()))
    return {path: table.storage.list(path) for path in partition_paths(table.storage)}


def _planned_files(storage: Storage, timeline: Timeline) -> dict[str, set[str]]:
    """The bare names of the files that pending compactions read, by partition path."""
    planned: dict[str, set[str]] = {}
    for pending in compaction_plan.pending_compactions(timeline):
        for operation in compaction_plan.read_plan(storage, pending).operations:
            names = planned.setdefault(operation.partition_path, set())
            names.update(path.rpartition("/")[2] for path in operation.paths)
    return planned


def _not_before_promised(table: HudiTable, retained: Instant) -> Instant:
    """The oldest write to retain in the plan: never before that of an earlier clean, whose files are deleted."""
    promised = clean_action.promised_since(table.storage, table.timeline)
    if promised is None or promised <= retained.requested_time:
        return retained
    return table.timeline.find(promised) or Instant(promised, retained.action, State.COMPLETED)
