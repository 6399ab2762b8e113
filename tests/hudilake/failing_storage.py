"""A real storage whose caller dies, or whose answers go wrong, at a chosen call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from hudilake.storage.base import FileInfo, Files, Names, Storage
from tests.hypothesis_profile import is_nightly

T = TypeVar("T")


def sides(turn: int) -> tuple[bool, ...]:
    """On which sides of a call the process dies, ``True`` for before: on both; in a usual run on each in turns."""
    return (True, False) if is_nightly() else (turn % 2 == 0,)


class Killed(BaseException):
    """The process is gone. Not an Exception: no code may handle it."""


@dataclass
class CountingStorage:
    """Counts the calls to a storage, in order as (method, path), and the files that each listing gave."""

    inner: Storage
    calls: list[tuple[str, str]] = field(default_factory=list)
    listed: list[int] = field(default_factory=list)

    @property
    def uri(self) -> str:
        """As the inner one's."""
        return self.inner.uri

    def read(self, path: str) -> bytes:
        """Counted."""
        return self._call("read", path, lambda: self.inner.read(path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Counted."""
        return self._call("read_range", path, lambda: self.inner.read_range(path, start, length))

    def create(self, path: str, data: bytes) -> None:
        """Counted."""
        self._call("create", path, lambda: self.inner.create(path, data))

    def write(self, path: str, data: bytes) -> None:
        """Counted."""
        self._call("write", path, lambda: self.inner.write(path, data))

    def delete(self, path: str) -> bool:
        """Counted."""
        return self._call("delete", path, lambda: self.inner.delete(path))

    def delete_tree(self, prefix: str) -> None:
        """Counted."""
        self._call("delete_tree", prefix, lambda: self.inner.delete_tree(prefix))

    def stat(self, path: str) -> FileInfo | None:
        """Counted."""
        return self._call("stat", path, lambda: self.inner.stat(path))

    def list(self, prefix: str, start_after: str | None = None) -> Files:
        """Counted."""
        found = self._call("list", prefix, lambda: self.inner.list(prefix, start_after))
        self.listed.append(len(found))
        return found

    def list_dirs(self, prefix: str) -> Names:
        """Counted."""
        return self._call("list_dirs", prefix, lambda: self.inner.list_dirs(prefix))

    def walk(self, prefix: str) -> Iterator[FileInfo]:
        """Counted."""
        return self._call("walk", prefix, lambda: self.inner.walk(prefix))

    def sub(self, path: str) -> Storage:
        """Not used by the code under test."""
        raise NotImplementedError

    def _call(self, method: str, path: str, action: Callable[[], T]) -> T:
        self.calls.append((method, path))
        return action()


@dataclass
class DyingStorage(CountingStorage):
    """Dies at the n-th call (counted from 0), before it reaches the store or after it is done.

    ``torn``: a write that dies leaves the first half of its bytes, as a store that is not atomic would.
    """

    at: int = -1
    before: bool = True
    torn: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def write(self, path: str, data: bytes) -> None:
        """Counted; torn if asked for."""
        if self.torn and len(self.calls) == self.at:
            self.inner.write(path, data[: len(data) // 2])
        super().write(path, data)

    def _call(self, method: str, path: str, action: Callable[[], T]) -> T:
        with self.lock:
            turn = len(self.calls)
            if turn > self.at >= 0:
                raise Killed
            self.calls.append((method, path))
        if turn == self.at and self.before:
            raise Killed
        result = action()
        if turn == self.at:
            raise Killed
        return result


@dataclass
class AnsweringStorage(CountingStorage):
    """Calls whose (method, path) matches get the answer of ``fault(method, path, action)`` instead."""

    fault: Callable[[str, str, Callable[[], object]], None] = lambda method, path, action: None

    def _call(self, method: str, path: str, action: Callable[[], T]) -> T:
        self.calls.append((method, path))
        self.fault(method, path, action)
        return action()
