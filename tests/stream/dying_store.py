"""A real storage whose process dies at the n-th call, counted over all its sub-storages and threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from pipeline.storage import FileInfo, Storage
from pipeline.storage.base import Files, Names

T = TypeVar("T")


class Killed(BaseException):
    """The process is gone; no code may handle it."""


@dataclass
class Fate:
    """Dies at call ``at`` (from 0; -1 never), before it reaches the store or after."""

    at: int = -1
    before: bool = True
    calls: list[tuple[str, str]] = field(default_factory=list)
    under_way: int = 0
    lock: threading.Condition = field(default_factory=threading.Condition)

    def call(self, method: str, path: str, action: Callable[[], T]) -> T:
        """Do it, or die."""
        with self.lock:
            turn = len(self.calls)
            if turn > self.at >= 0:
                raise Killed
            self.calls.append((method, path))
            self.under_way += 1
        try:
            if turn == self.at and self.before:
                raise Killed
            result = action()
            if turn == self.at:
                raise Killed
            return result
        finally:
            with self.lock:
                self.under_way -= 1
                self.lock.notify_all()

    def settle(self) -> None:
        """Wait for the calls that other threads had begun: a dead process leaves none that lands later."""
        with self.lock:
            assert self.lock.wait_for(lambda: self.under_way == 0, timeout=30)


@dataclass
class DyingStore:
    """The storage, with its fate."""

    inner: Storage
    fate: Fate
    name: str = ""

    @property
    def uri(self) -> str:
        """As the inner one's."""
        return self.inner.uri

    def read(self, path: str) -> bytes:
        return self.fate.call("read", self.name + path, lambda: self.inner.read(path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self.fate.call("read_range", self.name + path, lambda: self.inner.read_range(path, start, length))

    def create(self, path: str, data: bytes) -> None:
        self.fate.call("create", self.name + path, lambda: self.inner.create(path, data))

    def write(self, path: str, data: bytes) -> None:
        self.fate.call("write", self.name + path, lambda: self.inner.write(path, data))

    def delete(self, path: str) -> bool:
        return self.fate.call("delete", self.name + path, lambda: self.inner.delete(path))

    def delete_tree(self, prefix: str) -> None:
        self.fate.call("delete_tree", self.name + prefix, lambda: self.inner.delete_tree(prefix))

    def stat(self, path: str) -> FileInfo | None:
        return self.fate.call("stat", self.name + path, lambda: self.inner.stat(path))

    def list(self, prefix: str, start_after: str | None = None) -> Files:
        return self.fate.call("list", self.name + prefix, lambda: list(self.inner.list(prefix, start_after)))

    def list_dirs(self, prefix: str) -> Names:
        return self.fate.call("list_dirs", self.name + prefix, lambda: list(self.inner.list_dirs(prefix)))

    def walk(self, prefix: str) -> Iterator[FileInfo]:
        return self.fate.call("walk", self.name + prefix, lambda: self.inner.walk(prefix))

    def sub(self, path: str) -> DyingStore:
        return DyingStore(self.inner.sub(path), self.fate, f"{self.name}{path}/")
