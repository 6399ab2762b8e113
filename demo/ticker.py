"""The progress of the demo as lines, about one per second, independent of the speed of the batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from binlake.cli.display import Totals
from binlake.cli.text import duration, number
from binlake.stream.monitoring.progress import ProgressEvent
from hudilake.clock import monotonic_s
from hudilake.wording import counted

_EVERY_S = 1.0


class Ticker(AbstractContextManager["Ticker"]):
    """Prints sums over all batches; an error of a batch has its own line, at once.

    Args:
        say: prints a line.
        clock: returns seconds.
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = monotonic_s) -> None:
        self._say = say
        self._clock = clock
        self._totals = Totals()
        self._lock = threading.Lock()
        self._started_s = clock()
        self._said_s = -_EVERY_S
        self._said_batches = 0

    def __exit__(self, *_: object) -> None:
        """Print the sums if the last line did not include all batches."""
        if self._said_batches < self._totals.batches:
            self._say(self._line())

    def update(self, event: ProgressEvent) -> None:
        """Add a finished batch. Called from another thread than the one that prints the other lines."""
        with self._lock:
            self._totals.add(event)
            for trouble in _troubles(event):
                self._say(trouble)
            if self._clock() - self._said_s >= _EVERY_S:
                self._said_s, self._said_batches = self._clock(), self._totals.batches
                self._say(self._line())

    def _line(self) -> str:
        totals, last = self._totals, self._totals.last
        applied = sum(t.applied for t in totals.tables.values())
        seconds = f"{self._clock() - self._started_s:4.0f} s"
        batch = f", last batch {duration(last.latency_ms)}, lag {number(last.lag)}" if last else ""
        return (
            f"{seconds}: {number(totals.events_read)} events read, {number(applied)} rows applied to "
            f"{counted(len(totals.tables), 'table')} in {counted(totals.batches, 'batch')}{batch}"
        )


def _troubles(event: ProgressEvent) -> Iterator[str]:
    yield from (f"NOTICE: {notice}" for notice in event.notices)
    yield from (f"NOTICE: {ddl}" for ddl in event.ddl if ddl.error is not None)
    for table in event.tables:
        if table.error is not None:
            yield f"FAILED: {table.table}: {table.error}"
        if table.warning is not None:
            yield f"WARNING: {table.table}: {table.warning}"
