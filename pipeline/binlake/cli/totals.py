"""What a display shows: sums over all batches so far, a table each."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from binlake.stream.monitoring.progress import ProgressEvent, TableProgress

_RECENT = 100


@dataclass
class TableTotals:
    """One table since the start. Latency and freshness are in milliseconds, of commits only."""

    table: str
    events_read: int = 0
    applied: int = 0
    superseded: int = 0
    filtered: int = 0
    quarantined: int = 0
    already_applied: int = 0
    commits: int = 0
    bytes_written: int = 0
    commit_latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    freshness_newest_ms: int | None = None
    freshness_oldest_ms: int | None = None
    error: str | None = None
    warning: str | None = None

    def add(self, part: TableProgress) -> None:
        """Take in the table's part of a batch."""
        self.events_read += part.events_read
        self.applied += part.applied
        self.superseded += part.superseded
        self.filtered += part.filtered
        self.quarantined += part.quarantined
        self.already_applied += part.already_applied
        self.bytes_written += part.bytes_written
        self.error, self.warning = part.error, part.warning
        if part.commit_instant is not None:
            self.commits += 1
            if part.commit_latency_ms is not None:
                self.commit_latencies_ms.append(part.commit_latency_ms)
            self.freshness_newest_ms, self.freshness_oldest_ms = part.freshness_newest_ms, part.freshness_oldest_ms

    @property
    def commit_latency_ms(self) -> float | None:
        """The median of the last commits."""
        return median(self.commit_latencies_ms) if self.commit_latencies_ms else None


@dataclass
class Totals:
    """All tables since the start."""

    tables: dict[str, TableTotals] = field(default_factory=dict)
    batches: int = 0
    events_read: int = 0
    last: ProgressEvent | None = None

    def add(self, event: ProgressEvent) -> None:
        """Take in a finished batch."""
        self.batches += 1
        self.events_read += event.events_read
        self.last = event
        for part in event.tables:
            self.tables.setdefault(part.table, TableTotals(part.table)).add(part)
