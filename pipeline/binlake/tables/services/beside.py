"""Work of the table services in a thread of its own, while the commits of the tables go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Job = TypeVar("Job")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Running(Generic[Job, Made]):
    """A job under way, and the files that it will have written."""

    job: Job
    files: Future[Made]


@dataclass
class Beside(Generic[Job, Made]):
    """The jobs of one service, at most one for each table; they run one after the other.

    ``name``: of the service, for its thread.
    """

    name: str
    _running: dict[str, Running[Job, Made]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pool: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"binlake-{self.name}")

    def start(self, path: str, job: Job, work: Callable[[Job], Made]) -> None:
        """Begin a job of the table at ``path``, which has none."""
        with self._lock:
            self._running[path] = Running(job, self._pool.submit(work, job))

    def is_at_work(self, path: str) -> bool:
        """Whether a table's job has not ended yet."""
        with self._lock:
            running = self._running.get(path)
            return running is not None and not running.files.done()

    def take(self, path: str) -> Running[Job, Made] | None:
        """The job of a table, ended or not, for its caller to complete; None if there is none."""
        with self._lock:
            return self._running.pop(path, None)

    def __iter__(self) -> Iterator[Running[Job, Made]]:
        with self._lock:
            return iter([*self._running.values()])

    def close(self) -> None:
        """Begin no more jobs. Those that are running stay pending on their tables."""
        self._pool.shutdown(wait=False, cancel_futures=True)
