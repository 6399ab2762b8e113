"""A storage that creates the file of a completed instant only while the table's lock is held.

A lock does not stop a paused holder from writing when it continues. So the lock is checked immediately before the file
of a completed instant is created. Only the create itself remains after the check, and it is exclusive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from hudilake.format.timeline.instant import TIMELINE_PATH, parse_name
from hudilake.locking.base import TableLock
from hudilake.storage.base import FileInfo, Storage, UnfinishedWrites
from hudilake.storage.passing import PassingStorage
from hudilake.storage.paths import dir_path, join

_TIMELINES = frozenset({TIMELINE_PATH, f".hoodie/metadata/{TIMELINE_PATH}"})


@dataclass(frozen=True, slots=True)
class FencedStorage(PassingStorage):
    """See the docstring of this module. It is pickled as its inner storage: tasks on executors write data files only.

    Args:
        inner: the storage behind it.
        lock: the table's.
        root: path of the storage's root below the table's.
    """

    lock: TableLock
    root: str = ""

    def create(self, path: str, data: bytes) -> None:
        """As the inner storage's. Raises LostLockError for a completed instant if the lock is not held."""
        directory, _, name = join(self.root, path).rpartition("/")
        if directory in _TIMELINES and (instant := parse_name(name)) is not None and instant.completed:
            self.lock.check()
        self.inner.create(path, data)

    def sub(self, path: str) -> Storage:
        """The same store with its root further down, fenced as well."""
        return _fence(self.inner.sub(path), self.lock, join(self.root, dir_path(path)))

    def __reduce__(self) -> tuple[object, ...]:
        return _inner, (self.inner,)


@dataclass(frozen=True, slots=True)
class _FencedUnfinishedWrites(FencedStorage):
    """Over a store that leaves half-written files."""

    def unfinished(self, prefix: str) -> Iterator[FileInfo]:
        """Returns the half-written files at or below a directory of the inner storage."""
        return cast("UnfinishedWrites", self.inner).unfinished(prefix)


def fenced(storage: Storage, lock: TableLock) -> Storage:
    """A table's storage whose completed instants are created only under the table's lock.

    Args:
        storage: at the table's root. One that is fenced already gets this lock instead.
        lock: the table's.
    """
    return _fence(unfenced(storage), lock, "")


def unfenced(storage: Storage) -> Storage:
    """The inner storage of a fenced one, else the storage itself. For callers that need the type of the store."""
    return storage.inner if isinstance(storage, FencedStorage) else storage


def _fence(storage: Storage, lock: TableLock, root: str) -> FencedStorage:
    kind = _FencedUnfinishedWrites if isinstance(storage, UnfinishedWrites) else FencedStorage
    return kind(storage, lock, root)


def _inner(storage: Storage) -> Storage:
    return storage
