"""A stored file with the interface of a Python file: only the requested ranges are fetched."""

from __future__ import annotations

import io

from hudilake.storage.base import Storage


class StoredFile(io.RawIOBase):
    """A stored file, read by ranges. ``size``: its bytes."""

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        self._storage, self._path, self._size, self._position = storage, path, size, 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """The current position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position; returns the new one."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        """The next ``size`` bytes, fewer at the end; for -1 the rest of the file. Raises StorageError."""
        end = self._size if size < 0 else min(self._position + size, self._size)
        data = self._between(self._position, end) if end > self._position else b""
        self._position += len(data)
        return data

    def _between(self, start: int, end: int) -> bytes:
        return self._storage.read_range(self._path, start, end - start)

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read into a buffer; returns the number of bytes read."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
