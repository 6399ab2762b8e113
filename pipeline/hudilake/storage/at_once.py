"""Several calls of a store at once, which wait as long as the slowest one. It stands alone: any store may be called so.

The threads belong to the process and stay: a stream of hundreds of tables makes such calls thousands of times a batch.
A call made here must make no further ones here, or it could wait for a thread that waits for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from typing import TypeVar

from hudilake.storage.base import Storage
from hudilake.storage.passing import is_near

T = TypeVar("T")


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(64, thread_name_prefix="hudilake-call")


os.register_at_fork(after_in_child=_threads.cache_clear)  # a forked process has none of these threads


def at_once(calls: Sequence[Callable[[], T]], *, reads: Storage | None = None) -> list[T]:
    """Make the calls, the last one in this thread. Returns their results in order, once all have ended, or raises the
    first error in that order. ``reads``: the store, if they only read it; all those of a near one are made here."""
    here = calls if reads is not None and is_near(reads) else calls[-1:]
    others = [_threads().submit(call) for call in calls[: len(calls) - len(here)]]
    try:
        mine = [call() for call in here]
    finally:
        wait(others)
        results = [one.result() for one in others]
    return results + mine
