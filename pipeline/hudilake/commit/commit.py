"""A commit as a value, and the one function that applies it.

The order on storage makes it safe. After a crash these files remain, step by step:

1. ``<instant>.deltacommit.requested``, then ``.inflight``, created exclusively. They are empty, or say what the commit
   will write (``actions.announced``). After either: a pending instant without files. Readers see nothing; the next
   start rolls it back.
2. Markers, or one list of them, then data files, written by tasks (``write``). After any of them: files that no reader
   counts, for their instant is not completed, each named by a marker. The rollback deletes them.
3. The hashing metadata (``table.rings``) and ``.hoodie_partition_metadata`` of partitions that are new. After either:
   a partition without rows.
4. ``<instant>_<completion>.deltacommit``, created exclusively, after checking that the instant is still ours: its
   inflight file exists and no completed file does. Before it nothing is visible, after it everything is. If the answer
   to this write is lost, the file is read back: if it has our bytes the commit is done; if it does not exist, it is
   not.
5. The marker directory is deleted, after the table's lock is released (``drop_markers``). After a crash before it:
   markers of a completed instant, which nobody asks for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from hudilake.errors import CommitUnknownError, LakeError, LostOwnershipError, TransientError
from hudilake.format.definition.properties import dump_properties
from hudilake.format.files.names import PARTITION_METADATA, in_partition, marker_directory
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.format.timeline.instant import TIMELINE_PATH, Instant, State, parse_name
from hudilake.locking.ownership import Ownership
from hudilake.storage.abilities import list_names
from hudilake.storage.at_once import at_once
from hudilake.storage.base import (
    AlreadyExistsError,
    OutcomeUnknownError,
    Storage,
    StorageError,
    StorageNotFoundError,
)

_BEGIN_ATTEMPTS = 5


@dataclass(frozen=True)
class CommitPlan:
    """The data that completes an inflight instant.

    Args:
        inflight: the instant on the timeline; it must be inflight when the plan is applied.
        completion_time: later than every time known to the table.
        metadata: the body of the completed file.
        new_partitions: partition paths that may lack their partition metadata file.
    """

    inflight: Instant
    completion_time: str
    metadata: CommitMetadata
    new_partitions: tuple[str, ...] = ()

    @property
    def completed(self) -> Instant:
        """The instant once the plan is applied."""
        return self.inflight.in_state(State.COMPLETED, self.completion_time)


class OvertakenError(TransientError):
    """Another writer has committed since this instant began, so the instant is based on an old state of the table.

    Example:
        >>> other = hudilake.open_table(orders.uri)
        >>> with orders.transaction(isolated=True) as transaction:
        ...     _ = other.delete([{"id": 1, "day": "d1"}])
        ...     transaction.upsert([{"id": 1, "qty": 0, "day": "d1", "updated_at": 9}])
        Traceback (most recent call last):
        hudilake.commit.commit.OvertakenError: ...
    """


def begin_instant(
    storage: Storage,
    times: Callable[[], str],
    action: str,
    ownership: Ownership,
    body: bytes = b"",
    check: Callable[[Instant], None] | None = None,
    request_body: bytes | None = None,
) -> Instant:
    """Step 1: a new inflight instant; its heartbeat begins before it.

    Args:
        storage: the table's root.
        times: gives the requested time, as ``InstantClock`` says for the action; if another writer took it in the same
            millisecond, the next one is used.
        action: of the instant.
        ownership: of the writer.
        body: of the inflight file, and with ``check`` of the requested file; both may be empty for Hudi's readers.
        check: called with the requested instant, which is removed if it raises.
        request_body: of the requested file, where it is not that of the inflight file.

    Raises StorageError, and what ``check`` raises.
    """
    for attempt in range(_BEGIN_ATTEMPTS):
        requested = Instant(times(), action, State.REQUESTED)
        try:
            first = body if check is not None else b""
            request(storage, requested, first if request_body is None else request_body, ownership)
            break
        except AlreadyExistsError:
            if attempt == _BEGIN_ATTEMPTS - 1:
                raise
    if check is not None:
        try:
            check(requested)
        except BaseException:
            withdraw_request(storage, requested, ownership)
            raise
    inflight = requested.in_state(State.INFLIGHT)
    storage.create(inflight.path, body)
    return inflight


def withdraw_request(storage: Storage, requested: Instant, ownership: Ownership) -> None:
    """Remove a requested instant of ours that has no files. One that cannot be removed is rolled back as a dead one."""
    with contextlib.suppress(LakeError):
        storage.delete(requested.path)
    ownership.end(requested.requested_time)


def request(storage: Storage, requested: Instant, body: bytes, ownership: Ownership) -> None:
    """Create a requested file exclusively and start the instant's heartbeat. Raises AlreadyExistsError,
    StorageError."""
    ownership.begin(requested.requested_time)
    try:
        storage.create(requested.path, body)
    except AlreadyExistsError:
        ownership.end(requested.requested_time)
        raise


def apply_commit(storage: Storage, plan: CommitPlan) -> Instant:
    """Steps 3 and 4. Returns the completed instant.

    Raises LostOwnershipError if another writer completed the instant or rolled it back, CommitUnknownError if the
    completing write failed and its outcome cannot be read, StorageError if it failed and is known not to have happened.
    """
    _create_partitions(storage, plan.inflight.requested_time, plan.new_partitions)
    check_still_inflight(storage, plan.inflight)
    publish(storage, plan.completed, plan.metadata.to_bytes())
    return plan.completed


def check_still_inflight(storage: Storage, inflight: Instant) -> None:
    """Raise LostOwnershipError unless the instant is inflight and has no completed file.

    Its requested file must be there too: who rolls back an instant that is only requested deletes that file, and the
    writer may create the inflight file afterwards.
    """
    names = check_not_completed(storage, inflight.requested_time)
    if not {inflight.file_name, inflight.in_state(State.REQUESTED).file_name} <= names:
        raise LostOwnershipError(
            "another writer rolled this instant back",
            do_next="another process writes to this table: stop it, or set locking",
            instant=inflight.requested_time,
        )


def check_not_completed(storage: Storage, requested_time: str) -> set[str]:
    """The instant's file names in the timeline. Raises LostOwnershipError if one of them is a completed file.

    Completed names hold the completion time, so two writers completing one instant would create two files: exclusive
    create alone does not notice.
    """
    listed = list_names(storage, TIMELINE_PATH, requested_time)
    names = {name for name in listed if name.startswith(requested_time)}
    completed = [n for n in names if (i := parse_name(n)) is not None and i.completed]
    if completed:
        raise LostOwnershipError(
            "another writer completed this instant",
            do_next="another process writes to this table: stop it, or set locking",
            file=completed[0],
        )
    return names


def publish(storage: Storage, completed: Instant, body: bytes) -> None:
    """Create a completed file; if the answer is lost, read the outcome back. Errors as ``apply_commit``."""
    try:
        storage.create(completed.path, body)
    except AlreadyExistsError as error:
        if not _holds(storage, completed, body):
            raise LostOwnershipError(
                "another writer completed this instant",
                do_next="another process writes to this table: stop it, or set locking",
                path=completed.path,
            ) from error
    except StorageError as error:
        try:
            landed = _holds(storage, completed, body)
        except StorageError as unread:
            raise CommitUnknownError(
                f"the completing write failed ({error}) and cannot be read back ({unread})",
                do_next="start again: the timeline then shows whether the instant completed",
                path=completed.path,
            ) from error
        if not landed and isinstance(error, OutcomeUnknownError):
            raise CommitUnknownError(
                f"the completing write got no answer and its file is not visible yet ({error}); it may still appear",
                do_next="start again: the timeline then shows whether the instant completed",
                path=completed.path,
            ) from error
        if not landed:
            raise


def withdraw(storage: Storage, requested_time: str, files: Iterable[str]) -> None:
    """Delete the data files of an instant that another writer took over, unless it has completed: tasks may have
    written some after the rollback, and readers would count them once they are older than the active timeline."""
    with contextlib.suppress(LakeError):
        check_not_completed(storage, requested_time)
        for path in files:
            storage.delete(path)
        drop_markers(storage, requested_time)


def drop_markers(storage: Storage, requested_time: str) -> None:
    """Step 5. Remaining markers are harmless, so a failure to delete them does not fail the commit."""
    with contextlib.suppress(StorageError):
        storage.delete_tree(marker_directory(requested_time))


def _holds(storage: Storage, completed: Instant, body: bytes) -> bool:
    try:
        return storage.read(completed.path) == body
    except StorageNotFoundError:
        return False


def create_files(storage: Storage, files: Mapping[str, bytes]) -> list[str]:
    """Create files exclusively, several at once; returns the paths of those that exist already. Raises StorageError."""

    def create(path: str) -> bool:
        try:
            storage.create(path, files[path])
        except AlreadyExistsError:
            return False
        return True

    made = at_once([partial(create, path) for path in files])
    return [path for path, created in zip(files, made, strict=True) if not created]


def _create_partitions(storage: Storage, instant: str, partition_paths: Iterable[str]) -> None:
    create_files(storage, dict(_partition_file(instant, path) for path in partition_paths))


def _partition_file(instant: str, partition_path: str) -> tuple[str, bytes]:
    depth = partition_path.count("/") + 1 if partition_path else 0
    body = dump_properties({"commitTime": instant, "partitionDepth": str(depth)}, "partition metadata")
    return in_partition(partition_path, PARTITION_METADATA), body
