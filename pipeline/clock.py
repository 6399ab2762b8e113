"""The only door to wall time and to new random ids."""

from __future__ import annotations

import threading
import time
import uuid
from datetime import UTC, datetime


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
    moment = datetime.fromtimestamp(epoch_ms // 1000, tz=UTC)
    return f"{moment:%Y%m%d%H%M%S}{epoch_ms % 1000:03d}"


def parse_instant(instant: str) -> int:
    """A Hudi instant of 14 or 17 digits -> milliseconds since the epoch. Raises ValueError for anything else."""
    moment = datetime.strptime(instant[:14] + "+0000", "%Y%m%d%H%M%S%z")
    return int(moment.timestamp()) * 1000 + int(instant[14:17] or 0)


class InstantClock:
    """Gives instants that only grow: ``max(now, last + 1 ms)``, whatever the wall clock does."""

    def __init__(self, last: str | None = None) -> None:
        self._last_ms = parse_instant(last) if last else 0
        self._lock = threading.Lock()

    def observe(self, instant: str) -> None:
        """Never give an instant at or before this one again."""
        with self._lock:
            self._last_ms = max(self._last_ms, parse_instant(instant))

    def next(self) -> str:
        """The next instant."""
        with self._lock:
            self._last_ms = max(now_ms(), self._last_ms + 1)
            return format_instant(self._last_ms)
