"""A storage that counts the bytes that are read through it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from hudilake.storage.base import Storage
from hudilake.storage.passing import PassingStorage


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
class MeteredStorage(PassingStorage):
    """The same store, with what is read counted.

    Args:
        inner: the storage behind it.
        meter: counts.
    """

    meter: Meter

    def read(self, path: str) -> bytes:
        """Reads a whole file through the inner storage and counts its bytes."""
        return self.meter.count(self.inner.read(path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Reads ``length`` bytes from ``start`` through the inner storage and counts them."""
        return self.meter.count(self.inner.read_range(path, start, length))

    def sub(self, path: str) -> Storage:
        """The same store with its root further down, counted by the same meter."""
        return MeteredStorage(self.inner.sub(path), self.meter)
