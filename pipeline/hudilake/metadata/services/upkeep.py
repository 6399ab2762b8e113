"""What keeps the metadata table small and in order: due services after a commit of the data table, pending actions at a
writer's start.

Of every file group the newest slices at the last few compactions are kept. Only instants that completed before the
oldest kept slice are archived.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from hudilake.commit import clean as clean_action
from hudilake.commit.clean import CleanPlan, superfluous_files
from hudilake.errors import CorruptDataError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.names import parse_base_name, parse_log_name
from hudilake.format.timeline.history_writer import move_to_history
from hudilake.format.timeline.instant import CLEAN, COMMIT, COMPACTION, DELTA_COMMIT, ROLLBACK, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.records.layout import LAST_INITIAL_INSTANT, parse_file_group_id
from hudilake.metadata.services import compaction
from hudilake.metadata.services.rollback import finish_rollback, roll_back
from hudilake.metadata.table import MetadataTable
from hudilake.storage.base import FileInfo


def recover(table: MetadataTable) -> None:
    """Finish or undo pending actions, at a writer's start, after the data table's pending commits are rolled back.

    Raises CorruptDataError for an action that completed on the data table and has no entry here, StorageError.
    """
    for pending in table.timeline.pending():
        if pending.action == DELTA_COMMIT and pending.requested_time <= LAST_INITIAL_INSTANT:
            _remove_leftover(table, pending)
        elif pending.action == DELTA_COMMIT:
            _undo_unless_pending(table, pending)
        elif pending.action == ROLLBACK and table.data_timeline.find(pending.requested_time) is None:
            finish_rollback(table, pending)
    compaction.finish_pending(table)
    finish_cleans(table)


def _remove_leftover(table: MetadataTable, initial: Instant) -> None:
    """Remove a pending initial instant. A listed metadata table has completed its own ones; this one landed late, from
    an initialisation that died before."""
    for state in (State.INFLIGHT, State.REQUESTED):
        table.storage.delete(initial.in_state(state).path)
    table.timeline = Timeline.load(table.storage)


def _undo_unless_pending(table: MetadataTable, recorded: Instant) -> None:
    on_data = table.data_timeline.find(recorded.requested_time)
    if on_data is None and not table.data_timeline.is_completed(recorded.requested_time):
        roll_back(table, recorded.requested_time, table.clock.next())
    elif on_data is None or on_data.completed:
        raise CorruptDataError(
            "an action completed on the table but not in its metadata table, where its files are missing",
            do_next="run binlake repair to rebuild the metadata table",
            instant=recorded.requested_time,
        )


def is_due(table: MetadataTable) -> bool:
    """Whether ``maintain`` has work to do; reads counters only."""
    return compaction.compaction_due(table) or any(i.action in (COMPACTION, CLEAN) for i in table.timeline.pending())


def maintain(table: MetadataTable) -> bool:
    """Compact if it is due, then clean and archive, after a commit of the data table; True if it was due.

    Call it under the table's lock. Raises StorageError: the commit stands, and the next call tries again.
    """
    compaction.finish_pending(table)
    finish_cleans(table)
    if not compaction.compaction_due(table):
        return False
    compaction.compact(table)
    clean(table)
    archive(table)
    return True


_POLICY = "KEEP_LATEST_FILE_VERSIONS"


def oldest_kept_compaction(table: MetadataTable) -> str | None:
    """The compaction whose slices are the oldest kept ones; None while there are too few compactions."""
    compactions = (i for i in reversed(table.timeline.completed()) if i.action == COMMIT)
    oldest = next(islice(compactions, table.config.versions_kept - 1, None), None)
    return None if oldest is None else oldest.requested_time


def clean(table: MetadataTable, since: str | None = None) -> str | None:
    """Delete older slices; returns the clean's instant, or None if there is nothing to delete.

    ``since``: the compaction whose slices are the oldest that stay; None for ``oldest_kept_compaction``.
    """
    since = oldest_kept_compaction(table) if since is None else since
    doomed = {} if since is None else _doomed(table, since)
    if not doomed:
        return None
    last = table.timeline.last_completed()
    plan = CleanPlan(_POLICY, doomed, last_commit=last.requested_time if last is not None else "")
    requested = clean_action.request(table.storage, table.timeline, table.clock, plan)
    clean_action.execute(table.storage, table.timeline, table.clock, requested, plan)
    return requested.requested_time


def finish_cleans(table: MetadataTable) -> None:
    """Finish the cleans that a dead writer, ours or Hudi's, planned."""
    for pending in clean_action.pending_cleans(table.timeline):
        plan = clean_action.read_plan(table.storage, pending)
        clean_action.execute(table.storage, table.timeline, table.clock, pending, plan)


def _doomed(table: MetadataTable, since: str) -> Mapping[str, tuple[str, ...]]:
    """Files of slices older than each group's newest at the compaction ``since``, by metadata partition."""
    doomed: dict[str, tuple[str, ...]] = {}
    for partition in table.partitions:
        infos = [info for info in table.storage.list(partition.value) if _is_of(partition, info)]
        if names := superfluous_files(infos, table.timeline, lambda instant: instant <= since):
            doomed[partition.value] = tuple(sorted(names))
    return doomed


def _is_of(partition: MetadataPartition, info: FileInfo) -> bool:
    """Whether a file is of one of the partition's file groups."""
    name = info.path.rpartition("/")[2]
    parsed = parse_log_name(name) or parse_base_name(name)
    return parsed is not None and parse_file_group_id(partition, parsed.file_id) is not None


_ARCHIVED = (COMMIT, DELTA_COMMIT, CLEAN, ROLLBACK)


def archive(table: MetadataTable) -> int:
    """Archive old instants of the metadata table's active timeline; returns how many.

    Only instants that completed before the oldest kept slice are archived, so no file on storage needs an archived
    instant for its slice: a compaction's instant stays as long as its base file is the newest of a group.
    """
    before = oldest_kept_compaction(table)
    timeline = table.timeline
    if before is None or len(timeline.completed()) <= table.config.archive_after:
        return 0
    bases = {g.base.name.instant for groups in table.reader.groups.values() for g in groups if g.base is not None}
    old = [
        instant
        for instant in timeline.completed_actions(_ARCHIVED)
        if instant.completion_time is not None and instant.completion_time <= before
        if instant.requested_time not in bases
    ]
    # Delta commits leave without a gap: readers take an absent one for an entry that was never made.
    kept = [i.requested_time for i in timeline.completed_actions((DELTA_COMMIT,)) if i not in old]
    old = [i for i in old if i.action != DELTA_COMMIT or i.requested_time < min(kept, default="~")]
    room = len(timeline.completed()) - table.config.archive_keep
    old = old[: max(room, 0)]
    if old:
        move_to_history(table.storage, old)
        table.timeline = Timeline.load(table.storage)
    return len(old)
