"""Data files that appear late: after the rollback of their commit.

A dead writer's call may be carried out after the rollback has deleted what it saw. Its file is seen by nobody while the
instant lies within the active timeline, which does not have it. But readers, ours and Hudi's, take an instant that is
older than the active timeline for an archived one, so for completed. Therefore writers see to two things:

- The active timeline begins before every instant that is rolled back. If a rolled-back commit would be the oldest one,
  an empty commit is made before it (``make_first``).
- Before archival moves the beginning of the active timeline past an instant that was rolled back, its files are deleted
  once more (``delete_late_files``). No listing is needed: a marker is written before its file, so each file is named by
  the rollback, which read the markers, or by a marker that a task has written since.

What lands later still is not covered: in a table with a metadata table no reader that uses it sees the file, in another
one ``fsck`` reports it.
"""

from __future__ import annotations

from collections.abc import Collection

from hudilake.clock import InstantClock, format_instant, parse_instant
from hudilake.commit.commit import drop_markers, publish
from hudilake.commit.rollback import marked_files
from hudilake.errors import CorruptDataError
from hudilake.format.files.names import in_partition
from hudilake.format.timeline.avro_container import decode_container
from hudilake.format.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata
from hudilake.format.timeline.instant import ROLLBACK, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import Storage, StorageNotFoundError


def is_first(timeline: Timeline, requested_time: str) -> bool:
    """Whether no write that began before an instant has completed, and none was archived: an empty commit before
    archived ones would hide these. Raises CorruptDataError, StorageError."""
    writes = timeline.completed()
    return (not writes or writes[0].requested_time > requested_time) and not timeline.history().entries


def make_first(
    storage: Storage, timeline: Timeline, clock: InstantClock, action: str, requested_time: str, schema: str
) -> None:
    """Make an empty commit before an instant that is about to be rolled back, if that would be the table's first one.

    Call it under the table's lock, with the timeline refreshed under it.

    Args:
        storage: the table's root.
        timeline: of the table.
        clock: of the table.
        action: of its commits of rows.
        requested_time: of the instant.
        schema: the table's columns, an Avro schema as JSON.

    Raises CommitUnknownError, StorageError: then call again.
    """
    if not is_first(timeline, requested_time):
        return
    millis = parse_instant(requested_time)
    millis -= 1 + millis % 2  # an odd one, which no commit of rows begins at: one may be about to begin just before
    while timeline.find(format_instant(millis)) is not None:
        millis -= 2
    completed = Instant(format_instant(millis), action, State.COMPLETED, clock.next())
    body = CommitMetadata((), {SCHEMA_KEY: schema})
    publish(storage, completed, body.to_bytes())
    timeline.record(completed)
    timeline.remember(completed, body)


def delete_late_files(storage: Storage, timeline: Timeline, archived: Collection[Instant]) -> int:
    """Delete the files of commits that were rolled back, before they are older than the active timeline.

    Call it under the table's lock.

    Args:
        storage: the table's root.
        timeline: of the table, which has ``archived`` still.
        archived: the instants that will leave it.

    Returns how many files there were. Raises StorageError.
    """
    gone = {instant.identity for instant in archived}
    begins = next((write.requested_time for write in timeline.completed() if write.identity not in gone), "~")
    deleted = 0
    for rollback in timeline.completed_actions({ROLLBACK}):
        try:
            record = decode_container(storage.read(rollback.path), rollback.path)
        except (CorruptDataError, StorageNotFoundError):  # fsck reports it
            continue
        targets = [str(time) for time in record.get("commitsRollback") or () if time < begins]
        if not targets:
            continue
        named = {path for target in targets for path in marked_files(storage, target)}
        for partition, files in (record.get("partitionMetadata") or {}).items():
            named |= {in_partition(partition, str(f).rpartition("/")[2]) for f in files.get("successDeleteFiles") or ()}
        deleted += sum(storage.delete(path) for path in sorted(named))
        for target in targets:
            drop_markers(storage, target)
    return deleted
