"""The only door to wall time and to new random ids."""

from __future__ import annotations

import threading
import time
import uuid
from datetime import UTC, datetime
from functools import lru_cache


def now_ms() -> int:
    """Wall time in milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def monotonic_s() -> float:
    """Seconds on a clock that never goes back; for durations only."""
    return time.monotonic()


def new_uuid() -> str:
    """A new random id."""
    return str(uuid.uuid4())  # noqa: TID251 - this module is the door


def format_instant(epoch_ms: int) -> str:
    """Milliseconds since the epoch -> a Hudi instant, 17 digits ``yyyyMMddHHmmssSSS`` in UTC."""
    return f"{_digits_of_second(epoch_ms // 1000)}{epoch_ms % 1000:03d}"


@lru_cache(maxsize=1024)  # the tables of a batch are committed in the same few seconds
def _digits_of_second(epoch_s: int) -> str:
    return f"{datetime.fromtimestamp(epoch_s, tz=UTC):%Y%m%d%H%M%S}"


@lru_cache(maxsize=4096)  # a commit takes the same few times apart again and again
def parse_instant(instant: str) -> int:
    """A Hudi instant of 14 or 17 digits -> milliseconds since the epoch. Raises ValueError for anything else."""
    return _second_of_digits(instant[:14]) * 1000 + int(instant[14:17] or 0)


@lru_cache(maxsize=1024)
def _second_of_digits(digits: str) -> int:
    return int(datetime.strptime(digits + "+0000", "%Y%m%d%H%M%S%z").timestamp())


class InstantClock:
    """Gives instants that only grow, whatever the wall clock does: now, or just after the last one.

    Delta commits begin without the table's lock, and everything else takes its time under it. So that both never take
    the same millisecond, two instants of which readers and timelines cannot tell apart everywhere, delta commits begin
    at even ones and everything else happens at odd ones.
    """

    def __init__(self, last: str | None = None) -> None:
        self._last_ms = parse_instant(last) if last else 0
        self._lock = threading.Lock()

    def observe(self, instant: str) -> None:
        """Never give an instant at or before this one again."""
        with self._lock:
            self._last_ms = max(self._last_ms, parse_instant(instant))

    def next(self) -> str:
        """The next instant, for what is done under the table's lock."""
        return self._next(1)

    def next_begin(self) -> str:
        """The next instant, for a delta commit to begin at."""
        return self._next(0)

    def _next(self, parity: int) -> str:
        with self._lock:
            earliest = max(now_ms(), self._last_ms + 1)
            self._last_ms = earliest + (earliest + parity) % 2
            return format_instant(self._last_ms)
