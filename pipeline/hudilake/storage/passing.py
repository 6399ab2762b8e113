"""A storage that passes every call on to an inner one: the base of those that add something to some calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hudilake.storage.abilities import list_names
from hudilake.storage.base import FileInfo, Files, Names, Storage
from hudilake.storage.local import LocalStorage


@dataclass(frozen=True, slots=True)
class PassingStorage:
    """The same store.

    Args:
        inner: the storage behind it.
    """

    inner: Storage

    @property
    def uri(self) -> str:
        """The root as an absolute URI."""
        return self.inner.uri

    def read(self, path: str) -> bytes:
        """Reads a whole file through the inner storage."""
        return self.inner.read(path)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Reads ``length`` bytes from ``start`` through the inner storage."""
        return self.inner.read_range(path, start, length)

    def create(self, path: str, data: bytes) -> None:
        """Creates a file in the inner storage, which refuses one that exists."""
        self.inner.create(path, data)

    def write(self, path: str, data: bytes) -> None:
        """Writes or replaces a file in the inner storage."""
        self.inner.write(path, data)

    def delete(self, path: str) -> bool:
        """Deletes a file of the inner storage; returns False if there was none."""
        return self.inner.delete(path)

    def delete_tree(self, prefix: str) -> None:
        """Deletes a directory of the inner storage and everything below it."""
        self.inner.delete_tree(prefix)

    def stat(self, path: str) -> FileInfo | None:
        """Returns the file's entry in the inner storage, None if there is no such file."""
        return self.inner.stat(path)

    def list(self, prefix: str, start_after: str | None = None) -> Files:
        """Lists the files directly in a directory of the inner storage, by name; those after ``start_after``."""
        return self.inner.list(prefix, start_after)

    def list_names(self, prefix: str, start_after: str | None = None) -> Names:
        """Lists the bare names of the same files of the inner storage."""
        return list_names(self.inner, prefix, start_after)

    def list_dirs(self, prefix: str) -> Names:
        """Lists the bare names of the directories directly in a directory of the inner storage."""
        return self.inner.list_dirs(prefix)

    def walk(self, prefix: str) -> Iterator[FileInfo]:
        """Returns all files at or below a directory of the inner storage."""
        return self.inner.walk(prefix)


def is_near(storage: Storage) -> bool:
    """Whether a store is a local disk, which has answered a read before a thread has begun: several threads that read
    it wait for each other, since one at a time runs Python."""
    while isinstance(storage, PassingStorage):
        storage = storage.inner
    return isinstance(storage, LocalStorage)
