"""A storage that creates the file of a completed instant only while the table's lock is held.

A lock does not stop a paused holder from writing when it continues. So the lock is checked immediately before the file
of a completed instant is created. Only the create itself remains after the check, and it is exclusive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from pipeline.hudi.locking.base import TableLock
from pipeline.hudi.timeline.instant import TIMELINE_PATH, parse_name
from pipeline.storage.base import FileInfo, Files, LeavesUnfinished, Names, Storage
from pipeline.storage.paths import dir_path, join

_TIMELINES = frozenset({TIMELINE_PATH, f".hoodie/metadata/{TIMELINE_PATH}"})


@dataclass(frozen=True, slots=True)
class FencedStorage:
    """See the docstring of this module. It is pickled as its inner storage: tasks on executors write data files only.

    Args:
        inner: the storage behind it.
        lock: the table's.
        root: path of the storage's root below the table's.
    """

    inner: Storage
    lock: TableLock
    root: str = ""

    @property
    def uri(self) -> str:
        """The root as an absolute URI."""
        return self.inner.uri

    def read(self, path: str) -> bytes:
        """As the inner storage's."""
        return self.inner.read(path)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """As the inner storage's."""
        return self.inner.read_range(path, start, length)

    def create(self, path: str, data: bytes) -> None:
        """As the inner storage's. Raises LostLockError for a completed instant if the lock is not held."""
        directory, _, name = join(self.root, path).rpartition("/")
        if directory in _TIMELINES and (instant := parse_name(name)) is not None and instant.completed:
            self.lock.check()
        self.inner.create(path, data)

    def write(self, path: str, data: bytes) -> None:
        """As the inner storage's."""
        self.inner.write(path, data)

    def delete(self, path: str) -> bool:
        """As the inner storage's."""
        return self.inner.delete(path)

    def delete_tree(self, prefix: str) -> None:
        """As the inner storage's."""
        self.inner.delete_tree(prefix)

    def stat(self, path: str) -> FileInfo | None:
        """As the inner storage's."""
        return self.inner.stat(path)

    def list(self, prefix: str, start_after: str | None = None) -> Files:
        """As the inner storage's."""
        return self.inner.list(prefix, start_after)

    def list_dirs(self, prefix: str) -> Names:
        """As the inner storage's."""
        return self.inner.list_dirs(prefix)

    def walk(self, prefix: str) -> Iterator[FileInfo]:
        """As the inner storage's."""
        return self.inner.walk(prefix)

    def sub(self, path: str) -> Storage:
        """The same store with its root further down, fenced as well."""
        return _fence(self.inner.sub(path), self.lock, join(self.root, dir_path(path)))

    def __reduce__(self) -> tuple[object, ...]:
        return _inner, (self.inner,)


@dataclass(frozen=True, slots=True)
class _FencedUnfinished(FencedStorage):
    """Over a store that leaves half-written files."""

    def unfinished(self, prefix: str) -> Iterator[FileInfo]:
        """As the inner storage's."""
        return cast("LeavesUnfinished", self.inner).unfinished(prefix)


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
    kind = _FencedUnfinished if isinstance(storage, LeavesUnfinished) else FencedStorage
    return kind(storage, lock, root)


def _inner(storage: Storage) -> Storage:
    return storage
