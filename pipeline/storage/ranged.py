"""A stored file as Python's and Arrow's readers take files: only the ranges asked for are fetched."""

from __future__ import annotations

import io

from pipeline.storage.base import Storage


class StoredFile(io.RawIOBase):
    """A stored file, read by ranges. ``size``: its bytes."""

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        self._storage, self._path, self._size, self._at = storage, path, size, 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Where it stands."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; where it stands then."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """So many bytes from there on, fewer at the end; all the rest for -1. Raises StorageError."""
        end = self._size if size < 0 else min(self._at + size, self._size)
        data = self._storage.read_range(self._path, self._at, end - self._at) if end > self._at else b""
        self._at += len(data)
        return data

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill a buffer as far as there is something; how far."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
