"""Cleaning: deletes file slices that neither the retention, a savepoint nor a pending compaction needs.

The rules are those of Hudi's KEEP_LATEST_COMMITS and KEEP_LATEST_BY_HOURS. The retention gives the oldest write to
retain: of every file group the slice that was its newest then is kept, and all later ones. A file group that was
replaced by then is deleted whole. That write is never later
than the last one before the oldest pending write, so the files that a pending compaction reads are always kept.

``clean`` plans and executes, as ``actions.clean`` describes, under the table's lock. ``finish_pending`` continues after
a crash: a pending clean that is visible under the lock has no live owner.
"""

from __future__ import annotations

from collections.abc import Collection

from hudilake.clock import format_instant, now_ms
from hudilake.commit import clean as clean_action
from hudilake.commit.clean import CleanPlan, superfluous_files
from hudilake.commit.compaction_plan import pending_compactions
from hudilake.commit.compaction_plan import read_plan as read_compaction
from hudilake.commit.savepoint_record import held_files, savepoints
from hudilake.format.definition.format_config import FormatConfig
from hudilake.format.files.names import parse_written_name
from hudilake.format.files.view import partition_paths
from hudilake.format.timeline.avro_container import decode_container
from hudilake.format.timeline.instant import (
    CLEAN,
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
    rewriting = table.config.kind.rewriting
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
    oldest = retained.requested_time
    replaced = {group for group, instant in timeline.replaced().items() if instant <= oldest}
    held_savepoints = savepoints(table.storage, timeline)
    held, planned = held_files(held_savepoints), _planned_files(table.storage, timeline)
    files: dict[str, tuple[str, ...]] = {}
    for path, infos in listing(table).items():
        kept = held.get(path, set()) | planned.get(path, set())
        gone = frozenset(file_id for partition, file_id in replaced if partition == path)
        doomed = superfluous_files(infos, timeline, lambda since: since < oldest, kept, gone)
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


def clean_slices(table: HudiTable, groups: Collection[tuple[str, str]]) -> Instant | None:
    """Delete all slices of some file groups but the newest, and all of those that were replaced; other file groups stay
    as they are. Returns the clean, None if there is nothing to delete.

    ``groups``: partition path and file id. What savepoints and pending compactions hold stays. Errors as ``clean``.
    """
    table.config.check_writable()
    with table.exclusively():
        finish_pending(table)
        replaced, kept = table.timeline.replaced(), held_files(savepoints(table.storage, table.timeline))
        planned = _planned_files(table.storage, table.timeline)
        files: dict[str, tuple[str, ...]] = {}
        for path, infos in listing(table).items():
            mine = [info for info in infos if _group_of(path, info) in groups]
            gone = {file_id for partition, file_id in replaced if partition == path}
            held = kept.get(path, set()) | planned.get(path, set())
            if doomed := superfluous_files(mine, table.timeline, lambda _: True, held, gone):
                files[path] = doomed
        if not files:
            return None
        last = table.timeline.last_completed()
        plan = CleanPlan("KEEP_LATEST_FILE_VERSIONS", files, None, last.requested_time if last is not None else "")
        return _execute(table, clean_action.request(table.storage, table.timeline, table.clock, plan), plan)


def _group_of(partition_path: str, info: FileInfo) -> tuple[str, str] | None:
    name = parse_written_name(info.path.rpartition("/")[2])
    return None if name is None else (partition_path, name.file_id)


def finish_pending(table: HudiTable) -> list[Instant]:
    """Finish the cleans that a dead cleaner, ours or Hudi's, planned. Errors as ``clean``."""
    table.refresh()
    return finish_known(table)


def finish_known(table: HudiTable) -> list[Instant]:
    """The same of those that the timeline has as of its last listing."""
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
    """Record the clean in the metadata table, after undoing the entries of a dead attempt.

    Also if these were complete: who opened the table while the clean was pending has not read them, and would make a
    base file without them.
    """
    index = table.metadata_table
    if index is None:
        return
    metadata_rollback.take_back(index, time)
    files: list[FileKey] = [(path, name) for path, names in plan.files.items() for name in names]
    index.apply(time, MetadataDelta(deleted=tuple(files)))


def listing(table: HudiTable) -> dict[str, list[FileInfo]]:
    """The files of a table by partition path, from the metadata table or else from storage."""
    index = table.metadata_table
    if index is not None:
        return index.reader.listed(sorted(index.partition_paths()))
    return {path: table.storage.list(path) for path in partition_paths(table.storage)}


def _planned_files(storage: Storage, timeline: Timeline) -> dict[str, set[str]]:
    """The bare names of the files that pending compactions read, by partition path."""
    planned: dict[str, set[str]] = {}
    for pending in pending_compactions(timeline):
        for operation in read_compaction(storage, pending).operations:
            names = planned.setdefault(operation.partition_path, set())
            names.update(path.rpartition("/")[2] for path in operation.paths)
    return planned


def _not_before_promised(table: HudiTable, retained: Instant) -> Instant:
    """The oldest write to retain in the plan: never before that of an earlier clean, whose files are deleted."""
    promised = clean_action.promised_since(table.storage, table.timeline)
    if promised is None or promised <= retained.requested_time:
        return retained
    return table.timeline.find(promised) or Instant(promised, retained.action, State.COMPLETED)
