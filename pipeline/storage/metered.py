"""A storage that counts the bytes that are read through it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.storage.base import FileInfo, Files, Names, Storage


@dataclass
class Meter:
    """Bytes read so far; may be shared by several storages and threads."""

    bytes_read: int = 0
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, data: bytes) -> bytes:
        """Count those bytes, and return them."""
        with self._guard:
            self.bytes_read += len(data)
        return data


@dataclass(frozen=True, slots=True)
class MeteredStorage:
    """The same store, with what is read counted.

    Args:
        inner: the storage behind it.
        meter: counts.
    """

    inner: Storage
    meter: Meter

    @property
    def uri(self) -> str:
        """As the inner storage's."""
        return self.inner.uri

    def read(self, path: str) -> bytes:
        """As the inner storage's, counted."""
        return self.meter.count(self.inner.read(path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """As the inner storage's, counted."""
        return self.meter.count(self.inner.read_range(path, start, length))

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

    def sub(self, path: str) -> Storage:
        """The same store with its root further down, counted by the same meter."""
        return MeteredStorage(self.inner.sub(path), self.meter)
