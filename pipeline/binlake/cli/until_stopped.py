"""Work in a thread, and signals in front of it that ask it to stop between two steps.

It stands alone: ``binlake dump`` needs it and imports nothing of Spark, as ``workers`` does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDone
from typing import TypeVar

from lakemetastore.service.signals import stopping_on_signals

T = TypeVar("T")
_POLL_S = 0.2


def until_stopped(work: Callable[[threading.Event], T]) -> T:
    """What ``work`` gives, which gets an event that SIGTERM and SIGINT set. Raises what it raises.

    It runs in a thread of its own, because PySpark takes SIGINT for itself in the main thread and would cancel a batch.
    """
    stop = threading.Event()
    with stopping_on_signals(stop), ThreadPoolExecutor(1, thread_name_prefix="work") as pool:
        return wait(pool.submit(work, stop))


def wait(work: Future[T]) -> T:
    """Wait in short steps: Python runs signal handlers in the main thread, between two of them."""
    while True:
        try:
            return work.result(timeout=_POLL_S)
        except NotDone:
            if work.done():
                raise
