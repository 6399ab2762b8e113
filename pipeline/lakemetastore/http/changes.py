"""Clients that wait for a table's next commit: one comparison with storage at an interval a table, however many wait.

A registration at this process wakes the clients of its table at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from hudilake.clock import monotonic_s
from hudilake.errors import LakeError, TransientError
from lakemetastore.api.tables import ChangesWire

_log = logging.getLogger(__name__)


class TooManyWaitersError(TransientError):
    """The service lets no further client wait for changes: its bound on waiting clients is reached."""


@dataclass
class _WatchedTable:
    """A table that clients wait for. ``changed`` is replaced by a new event whenever it is set."""

    waiters: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


@dataclass(frozen=True)
class WaitingClient:
    """A client that waits.

    Args:
        place: names the table.
        look: gives the changes by the last comparison; called in a thread.
        state: compares the table with storage and names its state; called in a thread.
        first: what the client would have got without waiting.
    """

    place: str
    look: Callable[[], ChangesWire]
    state: Callable[[], str]
    first: ChangesWire


class ChangeWatch:
    """Waits for changes of tables. All methods but ``tell`` belong to one event loop.

    Args:
        interval_ms: between two comparisons of a table with storage.
        most: the most clients that wait at once.
    """

    def __init__(self, interval_ms: int, most: int) -> None:
        self._interval_s, self._most = interval_ms / 1000, most
        self._tables: dict[str, _WatchedTable] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        self.waiters = 0

    async def wait(self, waiting: WaitingClient, wait_ms: int) -> ChangesWire:
        """The changes as soon as there are any; none after ``wait_ms``.

        Raises TooManyWaitersError, and as ``WaitingClient.look``.
        """
        if self.waiters >= self._most:
            raise TooManyWaitersError(
                "too many clients wait for changes", do_next="ask again later, or without waiting", waiting=self.waiters
            )
        deadline = monotonic_s() + wait_ms / 1000
        watched = self._enter(waiting)
        try:
            while True:
                changed = watched.changed  # taken before the look, so that no change falls between the two
                answer = await run_in_threadpool(waiting.look)
                left = deadline - monotonic_s()
                if answer.changes or left <= 0 or self._closing:
                    return answer
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), left)
        finally:
            self._leave(waiting.place, watched)

    def tell(self, place: str) -> None:
        """Wake the clients that wait for a table; from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, place)

    def close(self) -> None:
        """Answer all clients that wait, and those that come from now on, at once."""
        self._closing = True
        for place in list(self._tables):
            self._wake(place)

    def _enter(self, waiting: WaitingClient) -> _WatchedTable:
        self._loop = asyncio.get_running_loop()
        watched = self._tables.setdefault(waiting.place, _WatchedTable())
        watched.waiters += 1
        self.waiters += 1
        if watched.task is None:
            watched.task = asyncio.create_task(self._watch(waiting))
        return watched

    def _leave(self, place: str, watched: _WatchedTable) -> None:
        watched.waiters -= 1
        self.waiters -= 1
        if watched.waiters == 0 and watched.task is not None:
            watched.task.cancel()
            self._tables.pop(place, None)

    async def _watch(self, waiting: WaitingClient) -> None:
        place, seen = waiting.place, waiting.first.state
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                now = await run_in_threadpool(waiting.state)
            except LakeError as error:
                _log.warning("cannot look at %s: %s", place, error, extra={"event": "watch_failed"})
                now = ""  # those who wait look by themselves and get the error
            if now != seen:
                seen = now
                self._wake(place)

    def _wake(self, place: str) -> None:
        watched = self._tables.get(place)
        if watched is not None:
            watched.changed.set()
            watched.changed = asyncio.Event()
