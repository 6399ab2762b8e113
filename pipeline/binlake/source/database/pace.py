"""A limit of rows a second, so that a comparison does not slow the source down.

It stands alone: the run makes one for all its tables, and the reads of rows keep to it.
"""

from __future__ import annotations

import threading
import time

from hudilake.clock import monotonic_s


class Pace:
    """Lets ``rows_per_second`` rows pass on average since the first one; None lets all pass at once."""

    def __init__(self, rows_per_second: int | None) -> None:
        self._rate = rows_per_second
        self._began_s: float | None = None
        self._rows = 0
        self._lock = threading.Lock()

    def passed(self, rows: int) -> None:
        """Note rows that were read, and wait until so many are due. Several threads may call it."""
        if self._rate is None:
            return
        with self._lock:
            if self._began_s is None:
                self._began_s = monotonic_s()
            self._rows += rows
            ahead_s = self._rows / self._rate - (monotonic_s() - self._began_s)
        if ahead_s > 0:
            time.sleep(ahead_s)
