"""Rolling back a pending commit: its files are deleted, then its instant; the timeline records the rollback.

Order on storage (Hudi 1.2.0, ``BaseRollbackActionExecutor``), each step repeatable:

1. ``<rollback>.rollback.requested`` with the plan (the files to delete), then ``.inflight``, empty. After a crash from
   here on, the next start finds the pending rollback and continues its plan.
2. An empty commit is made before the instant if it would be the table's first one (``late_files``). The metadata
   table's entries of the instant are undone (``metadata.services.rollback``), while it is still pending.
   Then the hash rings of a resize and the data files named by the plan are deleted; none was ever visible.
3. The instant's inflight file is deleted, then its requested file.
4. ``<rollback>_<completion>.rollback`` is created; then the markers are deleted.

The files of an instant are those its markers name, plus whatever in the same partitions carries the instant in its
name. Without any marker the whole table is searched once: a foreign writer may keep none.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from hudilake.clock import InstantClock, monotonic_s
from hudilake.commit.commit import check_not_completed, drop_markers, publish
from hudilake.commit.hashing_files import delete_rings
from hudilake.commit.late_completion import delete_late
from hudilake.commit.planned import read_planned
from hudilake.errors import CorruptDataError
from hudilake.format.definition.hashing_config import hashing_config_path
from hudilake.format.files.names import in_partition, marked_file, marker_directory, parse_written_name
from hudilake.format.timeline.avro_container import decode_container, encode_container
from hudilake.format.timeline.instant import (
    CLUSTERING,
    COMMIT,
    DELTA_COMMIT,
    REPLACE_COMMIT,
    ROLLBACK,
    SAVEPOINT,
    Instant,
    State,
)
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import AlreadyExistsError, Storage

_log = logging.getLogger(__name__)

#: As Java ends lines: a partition's path may have other letters that Python takes for an end.
_LINE_END = re.compile("\r\n|\n|\r")
_TARGETS = (COMMIT, DELTA_COMMIT, REPLACE_COMMIT)
#: What comes before an instant's files are deleted: it is undone in the metadata table, and the active timeline begins
#: before it (``late_files``). Takes its requested time and that of the rollback. Repeatable.
Unnote: TypeAlias = Callable[[str, str], None]


@dataclass(frozen=True)
class RollbackPlan:
    """The plan of a rollback: the instant to remove, and the files to delete as (partition path, file name)."""

    target_time: str
    target_action: str
    files: tuple[tuple[str, str], ...]

    def to_bytes(self, uri: str) -> bytes:
        """The body of the requested file; ``uri``: the table's root, for Hudi keeps full paths."""
        requests = [
            {
                "partitionPath": partition,
                "fileId": "",
                "latestBaseInstant": "",
                "filesToBeDeleted": [f"{uri}/{in_partition(partition, name)}"],
                "logBlocksToBeDeleted": {},
            }
            for partition, name in self.files
        ]
        record = {"instantToRollback": self._target(), "RollbackRequests": requests, "version": 1}
        return encode_container("HoodieRollbackPlan", record)

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> RollbackPlan:
        """Read a requested rollback, ours or Hudi's. Raises CorruptDataError."""
        record = decode_container(data, path)
        target = record.get("instantToRollback")
        if not target:
            raise CorruptDataError(
                "a rollback's plan names no instant",
                do_next="delete this rollback's files in the timeline, then start again",
                path=path,
            )
        files = [
            (request["partitionPath"], file.rpartition("/")[2])
            for request in record.get("RollbackRequests") or []
            for file in request["filesToBeDeleted"]
        ]
        return cls(target["commitTime"], target["action"], tuple(files))

    def metadata(self, uri: str, start: str, millis: int) -> bytes:
        """The body of the completed file."""
        partitions: dict[str, Any] = {}
        for partition, name in self.files:
            entry = partitions.setdefault(
                partition,
                {
                    "partitionPath": partition,
                    "successDeleteFiles": [],
                    "failedDeleteFiles": [],
                    "rollbackLogFiles": {},
                    "logFilesFromFailedCommit": {},
                },
            )
            entry["successDeleteFiles"].append(f"{uri}/{in_partition(partition, name)}")
        record = {
            "startRollbackTime": start,
            "timeTakenInMillis": millis,
            "totalFilesDeleted": len(self.files),
            "commitsRollback": [self.target_time],
            "partitionMetadata": partitions,
            "version": 1,
            "instantsRollback": [self._target()],
        }
        return encode_container("HoodieRollbackMetadata", record)

    def _target(self) -> dict[str, str]:
        return {"commitTime": self.target_time, "action": self.target_action}


def roll_back_pending(
    storage: Storage,
    timeline: Timeline,
    clock: InstantClock,
    is_abandoned: Callable[[str], bool],
    undo_entries: Unnote | None = None,
) -> list[str]:
    """Finish pending rollbacks, then roll back the abandoned pending commits and delta commits, oldest first.

    Call it under the table's lock, with the timeline refreshed under it. Returns the requested times that were rolled
    back. Pending compactions, cleans and the like stay. Pending savepoints, which hold no files, are removed.
    ``undo_entries``: for a table that keeps a metadata table.
    """
    rolled_back = []
    for rollback in [i for i in timeline.pending() if i.action == ROLLBACK]:
        plan = _read_plan(storage, rollback)
        if plan is None:
            forget_pending(storage, timeline, rollback)
            continue
        target = timeline.find(plan.target_time)
        if target is not None and target.completed:  # its completed file was under way when the rollback was planned
            if rollback.state is State.REQUESTED:  # nothing has been deleted yet
                forget_pending(storage, timeline, rollback)
                continue
            delete_late(storage, [target])
            timeline.archived([target])
        _execute(storage, timeline, clock, rollback, plan, undo_entries)
        rolled_back.append(plan.target_time)
    for target in [i for i in timeline.pending() if may_go(storage, i) and is_abandoned(i.requested_time)]:
        roll_back(storage, timeline, clock, target, undo_entries)
        rolled_back.append(target.requested_time)
    for savepoint in [i for i in timeline.pending() if i.action == SAVEPOINT and is_abandoned(i.requested_time)]:
        forget_pending(storage, timeline, savepoint)
    return rolled_back


def may_go(storage: Storage, pending: Instant) -> bool:
    """Whether a pending instant is rolled back once its writer is dead: commits and replacecommits, and clusterings
    that binlake is executing. A plan that nobody executes stays, and one that Hudi executes is left to Hudi. Raises
    StorageError."""
    if pending.action != CLUSTERING:
        return pending.action in _TARGETS
    planned = read_planned(storage, pending)
    return planned is not None and planned.may_go


def roll_back(
    storage: Storage, timeline: Timeline, clock: InstantClock, target: Instant, undo_entries: Unnote | None = None
) -> Instant:
    """Roll back one pending commit; returns the completed rollback.

    Raises LostOwnershipError if another process completed it meanwhile; StorageError: then call again.
    """
    check_not_completed(storage, target.requested_time)
    plan = RollbackPlan(target.requested_time, target.action, tuple(files_of_instant(storage, target)))
    rollback = Instant(clock.next(), ROLLBACK, State.REQUESTED)
    storage.create(rollback.path, plan.to_bytes(storage.uri))
    timeline.record(rollback)
    return _execute(storage, timeline, clock, rollback, plan, undo_entries)


def files_of_instant(storage: Storage, target: Instant) -> list[tuple[str, str]]:
    """The data files that an instant wrote, as sorted (partition path, file name)."""
    marked = {_split(path) for path in marked_files(storage, target.requested_time)}
    if marked:
        for partition in {partition for partition, _ in marked}:
            marked |= _carrying(target.requested_time, (i.path for i in storage.list(partition)))
    elif target.state is State.INFLIGHT:
        paths = (info.path for info in storage.walk("") if not info.path.startswith(".hoodie/"))
        marked = _carrying(target.requested_time, paths)
    return sorted(marked)


def _execute(
    storage: Storage,
    timeline: Timeline,
    clock: InstantClock,
    rollback: Instant,
    plan: RollbackPlan,
    undo_entries: Unnote | None,
) -> Instant:
    started = monotonic_s()
    check_not_completed(storage, plan.target_time)
    inflight = rollback.in_state(State.INFLIGHT)
    with contextlib.suppress(AlreadyExistsError):
        storage.create(inflight.path, b"")
    timeline.record(inflight)
    if undo_entries is not None:
        undo_entries(plan.target_time, rollback.requested_time)
    if plan.target_action == CLUSTERING:
        delete_rings(storage, plan.target_time)
    for partition, name in plan.files:
        storage.delete(in_partition(partition, name))
    if plan.target_action == REPLACE_COMMIT:
        storage.delete(hashing_config_path(plan.target_time))
    for state in (State.INFLIGHT, State.REQUESTED):
        storage.delete(Instant(plan.target_time, plan.target_action, state).path)
    timeline.forget(Instant(plan.target_time, plan.target_action, State.REQUESTED))
    completed = rollback.in_state(State.COMPLETED, clock.next())
    millis = int((monotonic_s() - started) * 1000)
    publish(storage, completed, plan.metadata(storage.uri, rollback.requested_time, millis))
    timeline.record(completed)
    drop_markers(storage, plan.target_time)
    fields = {"event": "rolled_back", "table": storage.uri, "instant": plan.target_time, "files": len(plan.files)}
    _log.info("%s: rolled back %s, %d files", storage.uri, plan.target_time, len(plan.files), extra=fields)
    return completed


def _read_plan(storage: Storage, rollback: Instant) -> RollbackPlan | None:
    """The plan of a pending rollback; None if a crash came before the plan was complete."""
    requested = rollback.in_state(State.REQUESTED)
    try:
        return RollbackPlan.from_bytes(storage.read(requested.path), requested.path)
    except CorruptDataError:
        return None


def forget_pending(storage: Storage, timeline: Timeline, pending: Instant) -> bool:
    """Delete the inflight and the requested file of an instant that has no other files; False if there were none.
    Raises StorageError."""
    deleted = [storage.delete(pending.in_state(state).path) for state in (State.INFLIGHT, State.REQUESTED)]
    timeline.forget(pending)
    return any(deleted)


def marked_files(storage: Storage, requested_time: str) -> set[str]:
    """The paths of an instant's data files by its markers: of one file each, or lists of them (``MARKERS0``...) from
    Hudi's timeline server. Raises StorageError."""
    directory = marker_directory(requested_time)
    files: set[str] = set()
    for info in storage.walk(directory):
        relative = info.path[len(directory) + 1 :]
        lines = [relative]
        if relative.startswith("MARKERS") and "." not in relative:
            lines = _LINE_END.split(storage.read(info.path).decode("utf-8"))
        files.update(path for line in lines if (path := marked_file(line)) is not None)
    return files


def _carrying(requested_time: str, paths: Iterable[str]) -> set[tuple[str, str]]:
    files = set()
    for partition, name in map(_split, paths):
        parsed = parse_written_name(name)
        if parsed is not None and parsed.instant == requested_time:
            files.add((partition, name))
    return files


def _split(path: str) -> tuple[str, str]:
    partition, _, name = path.rpartition("/")
    return partition, name
