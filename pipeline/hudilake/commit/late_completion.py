"""Completed files that appear late.

The write of a completed file may still be under way when its process dies: an object store or a NameNode carries it out
after the next process has looked at the timeline. There are two cases:

- A commit appears after its rollback. It counts as completed, but its data files are deleted, and its commit record
  says that its offsets are applied: a stream that believes it loses their rows. A rollback is final as soon as it
  is inflight, though its process may have died: writers ignore such a commit when they refresh, also one that they took
  in before.
- A compaction, clean, rollback, restore or savepoint appears after the next process has completed it. The later file
  describes what is on storage, because the next process wrote the same files again.

Both are deleted when a writer starts, and before instants are archived: an instant before a gap in the timeline would
make readers ignore the archived instants in the gap.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Sequence

from hudilake.errors import CorruptDataError
from hudilake.format.timeline.avro_container import decode_container
from hudilake.format.timeline.instant import REPLACE_COMMIT, ROLLBACK, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import Storage, StorageNotFoundError

_log = logging.getLogger(__name__)


def rolled_back_since(storage: Storage, timeline: Timeline, writes: Sequence[Instant]) -> dict[str, str]:
    """What rollbacks of the active timeline have taken back: requested time of a write -> that of its rollback, a
    completed one, or one that is inflight, which has begun to delete the write's files.

    Args:
        storage: the table's root.
        timeline: loaded.
        writes: the rollbacks that were requested after the oldest of them are read.

    Raises StorageError.
    """
    if not writes:
        return {}
    oldest, rolled_back = min(write.requested_time for write in writes), dict[str, str]()
    begun = [i for i in timeline.pending() if i.action == ROLLBACK and i.state is State.INFLIGHT]
    for rollback in (*timeline.completed_actions({ROLLBACK}), *begun):
        if rollback.requested_time > oldest:
            with contextlib.suppress(CorruptDataError, StorageNotFoundError):  # fsck reports it
                rolled_back |= dict.fromkeys(rolled_back_by(storage, rollback), rollback.requested_time)
    return rolled_back


def completed_again(timeline: Timeline, action: str) -> list[Instant]:
    """The completed files, as of the last listing of the whole timeline, of instants that have a later completed file
    and whose work can be done twice. Two completed files of a commit of rows or of a replace commit are the work of two
    writers, and only a person can tell which is right.

    ``action``: of the table's commits of rows.
    """
    return [instant for instant in timeline.outdated if instant.action not in (action, REPLACE_COMMIT)]


def delete_late(storage: Storage, late: Iterable[Instant]) -> None:
    """Delete such completed files. Call it under the table's lock. Raises StorageError."""
    for instant in late:
        storage.delete(instant.path)
        fields = {"event": "late_completion_deleted", "table": storage.uri, "instant": instant.requested_time}
        text = "%s: %s appeared after the instant was rolled back or completed by another process; it was deleted"
        _log.warning(text, storage.uri, instant.file_name, extra=fields)


def rolled_back_by(storage: Storage, rollback: Instant) -> set[str]:
    """The requested times of the instants that a completed rollback, ours or Hudi's, has taken back, or that the plan
    of a pending one names.

    Raises CorruptDataError, StorageNotFoundError, StorageError.
    """
    path = rollback.path if rollback.completed else rollback.in_state(State.REQUESTED).path
    record = decode_container(storage.read(path), path)
    if rollback.completed:
        return set(record.get("commitsRollback") or ())
    target = record.get("instantToRollback")
    return {target["commitTime"]} if target else set()
