"""A clean in the timeline, its execution, and which files it may take: for a data table and for its metadata table.

Order on storage, each step repeatable:

1. ``<t>.clean.requested`` with the plan: the files to delete. After a crash from here on, the next start goes on with
   this plan. From here on readers refuse times whose files may be deleted.
2. ``.inflight``, empty.
3. The files are deleted, base files first: a slice that still has its base file has its log files too.
4. The caller's step (``note``): for a data table, its metadata table records the deletions.
5. ``<t>_<completion>.clean``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from hudilake.clock import InstantClock, monotonic_s
from hudilake.commit.commit import check_not_completed, publish
from hudilake.format.files.names import (
    BaseFileName,
    LogFileName,
    in_partition,
    parse_base_name,
    parse_change_log_name,
    parse_log_name,
)
from hudilake.format.timeline.avro_container import decode_container, encode_container
from hudilake.format.timeline.instant import CLEAN, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import AlreadyExistsError, FileInfo, Storage

_PARALLEL = 8
_VERSION = 2
_SAVEPOINTS = "savepointed_timestamps"


@dataclass(frozen=True)
class CleanPlan:
    """The files that a clean deletes.

    Args:
        policy: Hudi's name of the rule that selected the files.
        files: bare file names by partition path.
        retained: file slices as of this write and later are kept; None if the rule keeps no such time.
        last_commit: requested time of the newest completed write when the plan was made.
        extra: further entries of the plan, which the completed file repeats.
    """

    policy: str
    files: Mapping[str, tuple[str, ...]]
    retained: Instant | None = None
    last_commit: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of files it deletes."""
        return sum(map(len, self.files.values()))

    def to_bytes(self, uri: str) -> bytes:
        """The body of the requested file; ``uri``: the table's root, for Hudi keeps full paths."""
        retained = self.retained and {
            "timestamp": self.retained.requested_time,
            "action": self.retained.action,
            "state": self.retained.state.name,
        }
        files = {
            path: [{"filePath": f"{uri}/{in_partition(path, name)}", "isBootstrapBaseFile": False} for name in names]
            for path, names in self.files.items()
        }
        record: dict[str, Any] = {
            "earliestInstantToRetain": retained,
            "lastCompletedCommitTimestamp": self.last_commit,
            "policy": self.policy,
            "filesToBeDeletedPerPartition": {},
            "version": _VERSION,
            "filePathsToBeDeletedPerPartition": files,
            "partitionsToBeDeleted": [],
            "extraMetadata": dict(self.extra),
        }
        return encode_container("HoodieCleanerPlan", record)

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> CleanPlan:
        """Read a requested clean, ours or Hudi's. Raises CorruptDataError."""
        record = decode_container(data, path)
        earliest = record.get("earliestInstantToRetain")
        retained = earliest and Instant(earliest["timestamp"], earliest["action"], State[earliest["state"]])
        files = {
            partition: tuple(str(file["filePath"]).rpartition("/")[2] for file in files)
            for partition, files in (record.get("filePathsToBeDeletedPerPartition") or {}).items()
        }
        last, extra = record.get("lastCompletedCommitTimestamp") or "", record.get("extraMetadata") or {}
        return cls(record.get("policy") or "", files, retained or None, last, extra)

    def metadata(self, start: str, millis: int) -> bytes:
        """The body of the completed file."""
        partitions = {
            partition: {
                "partitionPath": partition,
                "policy": self.policy,
                "deletePathPatterns": list(names),
                "successDeleteFiles": list(names),
                "failedDeleteFiles": [],
                "isPartitionDeleted": False,
            }
            for partition, names in self.files.items()
        }
        record = {
            "startCleanTime": start,
            "timeTakenInMillis": millis,
            "totalFilesDeleted": self.count,
            "earliestCommitToRetain": self.retained.requested_time if self.retained is not None else "",
            "lastCompletedCommitTimestamp": self.last_commit,
            "partitionMetadata": partitions,
            "version": _VERSION,
            "bootstrapPartitionMetadata": {},
            "extraMetadata": dict(self.extra),
        }
        return encode_container("HoodieCleanMetadata", record)


def savepoints_entry(instants: list[str]) -> dict[str, str]:
    """The entry of ``extra`` with the savepoints that held files when this clean was planned, for the next clean."""
    return {_SAVEPOINTS: ",".join(instants)} if instants else {}


def savepoints_of(extra: Mapping[str, str] | None) -> list[str]:
    """The savepoints in such an entry."""
    return [name for name in ((extra or {}).get(_SAVEPOINTS) or "").split(",") if name]


def request(storage: Storage, timeline: Timeline, clock: InstantClock, plan: CleanPlan) -> Instant:
    """Step 1; returns the requested instant."""
    requested = Instant(clock.next(), CLEAN, State.REQUESTED)
    storage.create(requested.path, plan.to_bytes(storage.uri))
    timeline.record(requested)
    return requested


def pending_cleans(timeline: Timeline) -> list[Instant]:
    """The cleans that are requested or inflight, oldest first."""
    return [instant for instant in timeline.pending() if instant.action == CLEAN]


def read_plan(storage: Storage, clean: Instant) -> CleanPlan:
    """The plan of a clean, ours or Hudi's. Raises CorruptDataError, StorageError."""
    requested = clean.in_state(State.REQUESTED)
    return CleanPlan.from_bytes(storage.read(requested.path), requested.path)


def execute(
    storage: Storage,
    timeline: Timeline,
    clock: InstantClock,
    clean: Instant,
    plan: CleanPlan,
    note: Callable[[], None] | None = None,
) -> Instant:
    """Steps 2 to 5; returns the completed clean.

    Raises LostOwnershipError if another process completed it; CommitUnknownError, StorageError: then call again.
    """
    started = monotonic_s()
    inflight = clean.in_state(State.INFLIGHT)
    with contextlib.suppress(AlreadyExistsError):
        storage.create(inflight.path, b"")
    timeline.record(inflight)
    paths = [in_partition(partition, name) for partition, names in plan.files.items() for name in names]
    logs = {path for path in paths if path.rpartition("/")[2].startswith(".")}
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(storage.delete, [path for path in paths if path not in logs]))
        list(pool.map(storage.delete, sorted(logs)))
    if note is not None:
        note()
    check_not_completed(storage, clean.requested_time)
    completed = clean.in_state(State.COMPLETED, clock.next())
    millis = int((monotonic_s() - started) * 1000)
    publish(storage, completed, plan.metadata(clean.requested_time, millis))
    timeline.record(completed)
    return completed


def promised_since(storage: Storage, timeline: Timeline) -> str | None:
    """The requested time as of which, and later, all file slices exist according to the active timeline.

    It is the latest time of the newest completed clean and of the plans of pending ones, which may have begun to
    delete; for a clean without such a time, its own. None if the active timeline has no clean. Raises CorruptDataError,
    StorageError.
    """
    times: list[str] = []
    cleans = timeline.completed_actions({CLEAN})
    if cleans:
        body = decode_container(storage.read(cleans[-1].path), cleans[-1].path)
        times.append(str(body.get("earliestCommitToRetain") or cleans[-1].requested_time))
    for pending in pending_cleans(timeline):
        retained = read_plan(storage, pending).retained
        times.append((retained or pending).requested_time)
    return max(times, default=None)


def superfluous_files(
    infos: Iterable[FileInfo],
    timeline: Timeline,
    is_old: Callable[[str], bool],
    kept: Collection[str] = (),
    gone: Collection[str] = (),
) -> tuple[str, ...]:
    """The files of one partition in slices that may be deleted: in each file group the old ones but the newest of them.

    Args:
        infos: the files; those of instants that are not completed are passed over.
        timeline: the table's.
        is_old: whether a slice that began at an instant is older than what is retained.
        kept: bare names of files that are kept together with their slices.
        gone: ids of file groups that were replaced before all that is retained: no retained moment sees them.
    """
    doomed: list[str] = []
    for file_id, slices in _slices(infos, timeline).items():
        older = [piece for piece in slices if is_old(piece.since)]
        for candidate in slices if file_id in gone else older[:-1]:
            if not set(kept).intersection(candidate.names):
                doomed += candidate.names
    return tuple(doomed)


@dataclass
class _Slice:
    """A file slice of any age. ``since``: its base file's instant, or without a base file that of its oldest log
    file."""

    since: str
    names: list[str] = field(default_factory=list)


def _slices(infos: Iterable[FileInfo], timeline: Timeline) -> dict[str, list[_Slice]]:
    """All file slices by file id, oldest first, without files of instants that are not completed."""
    bases: dict[str, list[BaseFileName]] = {}
    logs: dict[str, list[LogFileName]] = {}
    change_logs: dict[tuple[str, str], list[str]] = {}
    for info in infos:
        name = info.path.rpartition("/")[2]
        if (changes := parse_change_log_name(name)) is not None:
            change_logs.setdefault((changes.file_id, changes.instant), []).append(name)
        elif (log := parse_log_name(name)) is not None and timeline.is_completed(log.instant):
            logs.setdefault(log.file_id, []).append(log)
        elif (base := parse_base_name(name)) is not None and timeline.is_completed(base.instant):
            bases.setdefault(base.file_id, []).append(base)
    groups = sorted(bases.keys() | logs.keys())
    slices = {group: _slices_of_group(bases.get(group, []), logs.get(group, []), timeline) for group in groups}
    for group, pieces in slices.items():
        for piece in pieces:  # what a commit changed goes with the base file that it wrote
            piece.names += change_logs.get((group, piece.since), [])
    return slices


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
