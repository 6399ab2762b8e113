"""Faults of stores in a history, beside those of ``dying_store``: calls done twice, and reads that were early."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, TypeVar

from hudilake.locking import process_lock
from hudilake.storage import FileInfo, Storage, open_storage
from hudilake.storage.base import Files, Names
from tests.binlake.stream.dying_store import CHANGING, Fate

T = TypeVar("T")


@dataclass
class DoubledFate(Fate):
    """The call is done and answered, and the network does it once more later."""

    @property
    def comes_late(self) -> bool:
        return True

    @property
    def is_deadly(self) -> bool:
        return False

    def _answered(self, method: str, path: str, action: Callable[[], T], late: Callable[[], object]) -> T:
        if method in CHANGING:
            self._late = late
        return action()


class DrawnPool(Executor):
    """A pool whose tasks are done by the caller, in an order that is drawn, as soon as one of them is asked for."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._open: list[_DrawnTask] = []

    def submit(self, task: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - any task
        self._open.append(_DrawnTask(self, lambda: task(*args, **kwargs)))
        return self._open[-1]

    def map(
        self, task: Callable[..., T], *items: Iterable[Any], timeout: object = None, chunksize: int = 1
    ) -> Iterator[T]:
        return iter([future.result() for future in [self.submit(task, *each) for each in zip(*items, strict=False)]])

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.finish()

    def finish(self) -> None:
        """Do what is to be done."""
        tasks, self._open = self._open, []
        self._chance.shuffle(tasks)
        for one in tasks:
            one.do()


class _DrawnTask(Future[Any]):
    """``do`` is called by its pool."""

    def __init__(self, pool: DrawnPool, task: Callable[[], Any]) -> None:
        super().__init__()
        self._pool, self._task = pool, task

    def do(self) -> None:
        """Do it; a death of the process is nobody's answer."""
        try:
            self.set_result(self._task())
        except Exception as error:
            self.set_exception(error)

    def result(self, timeout: float | None = None) -> Any:  # noqa: ANN401 - any task
        self._pool.finish()
        return super().result(timeout)


@dataclass
class Early:
    """A process that began before another one's work, was slow, and goes on after it.

    Args:
        past: the store as it was before that work.
        until: so many reads see the past, unless the process has a lock or has changed something before.
        uri: of the lake.
    """

    past: Storage
    until: int
    uri: str
    reads: int = 0

    def now(self) -> bool:
        """Whether a read sees the past still."""
        self.reads += 1
        locks = list(process_lock._entries.items())
        if self.reads > self.until or any(lock.depth for uri, lock in locks if uri.startswith(self.uri)):
            self.end()
        return self.until > 0

    def end(self) -> None:
        """From here on the present is seen."""
        self.until = 0


@dataclass
class EarlyStore:
    """A storage whose first reads are early."""

    inner: Storage
    past: Storage
    early: Early

    @property
    def uri(self) -> str:
        """As the inner one's."""
        return self.inner.uri

    @property
    def _read(self) -> Storage:
        return self.past if self.early.now() else self.inner

    @property
    def _changed(self) -> Storage:
        self.early.end()
        return self.inner

    def read(self, path: str) -> bytes:
        return self._read.read(path)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self._read.read_range(path, start, length)

    def create(self, path: str, data: bytes) -> None:
        self._changed.create(path, data)

    def write(self, path: str, data: bytes) -> None:
        self._changed.write(path, data)

    def delete(self, path: str) -> bool:
        return self._changed.delete(path)

    def delete_tree(self, prefix: str) -> None:
        self._changed.delete_tree(prefix)

    def stat(self, path: str) -> FileInfo | None:
        return self._read.stat(path)

    def list(self, prefix: str, start_after: str | None = None) -> Files:
        return self._read.list(prefix, start_after)

    def list_dirs(self, prefix: str) -> Names:
        return self._read.list_dirs(prefix)

    def walk(self, prefix: str) -> Iterator[FileInfo]:
        return self._read.walk(prefix)

    def sub(self, path: str) -> Storage:
        return EarlyStore(self.inner.sub(path), self.past.sub(path), self.early)


def copied(storage: Storage, uri: str) -> Storage:
    """A copy of a store, in memory."""
    copy = open_storage(uri, {})
    copy.delete_tree("")
    for info in storage.walk(""):
        copy.write(info.path, storage.read(info.path))
    return copy
