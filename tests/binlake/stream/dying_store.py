"""A real storage one of whose calls gets another answer: the process dies there, or goes on with an error.

The calls are counted over all sub-storages and threads.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from hudilake.errors import LakeError
from hudilake.storage import FileInfo, Storage, StorageError
from hudilake.storage.base import Files, Names, OutcomeUnknownError

T = TypeVar("T")

#: The calls that change the store. A death at any other call leaves what a death after the last of these leaves.
CHANGING = ("create", "write", "delete", "delete_tree")


class Killed(BaseException):
    """The process is gone; no code may handle it."""


@contextmanager
def silent_threads() -> Iterator[None]:
    """Threads of a process that has died say nothing: their ``Killed`` is no failure of a test."""
    outer = threading.excepthook

    def tell(raised: threading.ExceptHookArgs) -> None:
        if raised.exc_type is not Killed:
            outer(raised)

    threading.excepthook = tell
    try:
        yield
    finally:
        threading.excepthook = outer


class Answer(StrEnum):
    """What becomes of a call."""

    DONE = "done"
    """It happens, and the process dies before it knows."""
    LOST = "lost"
    """It does not happen, and the process dies."""
    LATE = "late"
    """The process dies, and it happens after the next process has begun (``Fate.after``)."""
    FAILED = "failed"
    """It does not happen; the process gets an error and goes on."""
    UNANSWERED = "unanswered"
    """It happens; the process gets an error and goes on."""


def answers_of(method: str) -> tuple[Answer, ...]:
    """The answers that differ for a call: a read can only fail."""
    return tuple(Answer) if method in CHANGING else (Answer.FAILED,)


@dataclass
class Fate:
    """What becomes of call ``at`` (from 0; -1: every call is done and answered).

    Args:
        at: the number of the call.
        answer: what becomes of it.
        arriving: the call of a dead process that is still under way.
        arrives_at: before which of our calls it happens.
        spared: calls on paths that have this in them are done and not counted; "" spares none.
    """

    at: int = -1
    answer: Answer = Answer.DONE
    arriving: Callable[[], object] | None = None
    arrives_at: int = 0
    spared: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    under_way: int = 0
    lock: threading.Condition = field(default_factory=threading.Condition)
    _late: Callable[[], object] | None = None

    def call(self, method: str, path: str, action: Callable[[], T], late: Callable[[], object] | None = None) -> T:
        """Do it, or answer as fate has it.

        Args:
            method, path: of the call.
            action: does it.
            late: does it later; the same as ``action`` if not given.
        """
        if self.spared and self.spared in path:
            return action()
        with self.lock:
            turn = len(self.calls)
            if turn > self.at >= 0 and self.is_deadly:
                raise Killed
            self.calls.append((method, path))
            if turn == self.arrives_at:
                self.arrive()
            self.under_way += 1
        try:
            return self._answered(method, path, action, late or action) if turn == self.at else action()
        finally:
            with self.lock:
                self.under_way -= 1
                self.lock.notify_all()

    @property
    def comes_late(self) -> bool:
        """Whether the call happens, perhaps once more, after others."""
        return self.answer is Answer.LATE

    @property
    def is_deadly(self) -> bool:
        """Whether the process dies at the call."""
        return self.answer in (Answer.DONE, Answer.LOST, Answer.LATE)

    def _answered(self, method: str, path: str, action: Callable[[], T], late: Callable[[], object]) -> T:
        if self.answer in (Answer.DONE, Answer.UNANSWERED):
            action()
        if self.answer is Answer.LATE:
            self._late = late
        if self.is_deadly:
            raise Killed
        if self.answer is Answer.UNANSWERED and method == "create":
            raise OutcomeUnknownError("the store did not answer", path=path)
        raise StorageError("the store failed", path=path)

    def arrive(self) -> None:
        """What was under way happens now, or fails unseen."""
        arriving, self.arriving = self.arriving, None
        if arriving is not None:
            with contextlib.suppress(LakeError):
                arriving()

    def after(self, arrives_at: int) -> Fate:
        """The fate of the next process: no call of it goes wrong, but a late one of ours arrives before that call."""
        self.settle()
        return Fate(arriving=self._late, arrives_at=arrives_at)

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
        kept = bytes(data)
        self.fate.call("write", self.name + path, lambda: self.inner.write(path, kept))

    def delete(self, path: str) -> bool:
        return self.fate.call("delete", self.name + path, lambda: self.inner.delete(path))

    def delete_tree(self, prefix: str) -> None:
        """Late: of the files that are there now, as in an object store, whose request names the files."""
        named: list[str] = []
        if self.fate.comes_late and len(self.fate.calls) == self.fate.at:
            named = [info.path for info in self.inner.walk(prefix)]
        action = lambda: self.inner.delete_tree(prefix)  # noqa: E731 - as the others
        self.fate.call("delete_tree", self.name + prefix, action, lambda: _delete(self.inner, named))

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


def _delete(storage: Storage, paths: Sequence[str]) -> None:
    for path in paths:
        storage.delete(path)
