"""A storage that passes every call on to an inner one: the base of those that add something to some calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hudilake.storage.base import FileInfo, Files, Names, Storage


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
        """As the inner storage's."""
        return self.inner.read(path)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """As the inner storage's."""
        return self.inner.read_range(path, start, length)

    def create(self, path: str, data: bytes) -> None:
        """As the inner storage's."""
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
