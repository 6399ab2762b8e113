"""Progress of a stream for people (live table or plain lines) and for programs (JSON lines), and its sums by table."""

from __future__ import annotations

import json
import threading
from collections import deque
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol, Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from binlake.cli.text import CellColumn, duration, fill, fitting, lag_words, number, one_line, size
from binlake.source.binlog.topic import is_binlog
from binlake.stream.monitoring.progress import ProgressEvent, TableProgress
from hudilake.clock import monotonic_s
from hudilake.wording import counted

#: Where names are long, the last ones go.
_COLUMNS: tuple[CellColumn[TableTotals], ...] = (
    CellColumn("read", lambda t: number(t.events_read), narrow=True),
    CellColumn("latency", lambda t: t.error or t.warning or duration(t.commit_latency_ms), narrow=True, wraps=True),
    CellColumn("applied", lambda t: number(t.applied), narrow=True),
    CellColumn("superseded", lambda t: number(t.superseded), narrow=True),
    CellColumn("filtered", lambda t: number(t.filtered)),
    CellColumn("quarantined", lambda t: number(t.quarantined), narrow=True),
    CellColumn("seen before", lambda t: number(t.already_applied)),
    CellColumn("commits", lambda t: number(t.commits)),
    CellColumn("freshness", lambda t: duration(t.freshness_newest_ms), narrow=True),
    CellColumn("written", lambda t: size(t.bytes_written)),
)
_FRAME_LINES = 8


class Display(Protocol):
    """Where progress goes; a context manager around the run."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def update(self, event: ProgressEvent) -> None:
        """Show a finished batch. Called from the stream's thread."""
        ...


class LiveDisplay(AbstractContextManager["LiveDisplay"]):
    """A table on the terminal that is redrawn in place."""

    def __init__(self, name: str, console: Console) -> None:
        self._name = name
        self._console = console
        self._totals = Totals()
        self._lock = threading.Lock()
        self._started_s = monotonic_s()
        self._live = Live(console=console, get_renderable=self.render, refresh_per_second=4, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def update(self, event: ProgressEvent) -> None:
        """Show a finished batch."""
        for notice in (*event.notices, *event.ddl):
            self._console.print(one_line(f"NOTICE: {notice}"), markup=False, highlight=False, soft_wrap=True)
        with self._lock:
            self._totals.add(event)

    def render(self) -> RenderableType:
        """The picture of the moment."""
        with self._lock:
            return self._picture()

    def _picture(self) -> Table:
        totals = self._totals
        room = max(1, self._console.height - _FRAME_LINES)
        busiest = sorted(totals.tables.values(), key=lambda t: (t.error is None, -t.events_read))[:room]
        columns = fitting(_COLUMNS, [row.table for row in busiest], busiest, self._console.width)
        table = Table(title=self._title(), caption=self._caption(), title_justify="left", caption_justify="left")
        rows = sorted(busiest, key=lambda t: t.table)
        fill(table, columns, [(row.table, row, "red" if row.error else None) for row in rows], self._console.width)
        if len(totals.tables) > room:
            table.add_row(f"and {len(totals.tables) - room} more")
        return table

    def _title(self) -> Text:
        seconds = max(monotonic_s() - self._started_s, 0.001)
        read = self._totals.events_read
        running = f"{duration(seconds * 1000)}, {counted(read, 'event')}, {number(int(read / seconds))}/s"
        return Text(f"binlake {self._name}: {counted(self._totals.batches, 'batch')} in {running}")

    def _caption(self) -> Text:
        event = self._totals.last
        return Text(_batch_line(event) if event else "no batch has finished yet")


class PlainDisplay(AbstractContextManager["PlainDisplay"]):
    """Lines of text: one for a batch and one for each table it touched."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, event: ProgressEvent) -> None:
        """Print a finished batch."""
        notices = [f"  NOTICE: {notice}" for notice in (*event.notices, *event.ddl)]
        lines = [_batch_line(event), *notices, *(_table_line(t) for t in event.tables)]
        self._console.print("\n".join(map(one_line, lines)), markup=False, highlight=False, soft_wrap=True)


class JsonDisplay(AbstractContextManager["JsonDisplay"]):
    """One JSON object a line for every batch, as ``ProgressEvent.to_json`` gives it."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, event: ProgressEvent) -> None:
        """Print a finished batch."""
        line = json.dumps(event.to_json(), separators=(",", ":"))
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        self._console.file.flush()


def make_display(name: str, console: Console, *, live: bool, as_json: bool) -> Display:
    """The display asked for; plain lines where the console is no terminal."""
    if as_json:
        return JsonDisplay(console)
    return LiveDisplay(name, console) if live and console.is_terminal else PlainDisplay(console)


def _batch_line(event: ProgressEvent) -> str:
    stages = ", ".join(f"{name} {duration(ms)}" for name, ms in event.stage_ms.items())
    took = f"{duration(event.latency_ms)} ({stages})" if stages else duration(event.latency_ms)
    stray = f", {number(event.quarantined)} quarantined without a table" if event.quarantined else ""
    lag = lag_words(event.lag, in_bytes=any(is_binlog(one.topic) for one in event.partitions))
    return f"batch {event.batch_id}: {counted(event.events_read, 'event')} in {took}, {lag}{stray}"


def _table_line(part: TableProgress) -> str:
    counts = (
        f"read {part.events_read}, applied {part.applied}, superseded {part.superseded}, filtered {part.filtered}, "
        f"quarantined {part.quarantined}, seen before {part.already_applied}"
    )
    if (derived := part.derived) is not None:
        counts = (
            f"derived {derived.rows} rows: written {derived.upserts}, deleted {derived.deletes}, "
            f"quarantined {derived.faults}"
        )
    if part.error is not None:
        return f"  {part.table}: {counts}; FAILED: {part.error}"
    if part.commit_instant is None:
        return f"  {part.table}: {counts}; no commit"
    fresh = f"freshness {duration(part.freshness_newest_ms)} to {duration(part.freshness_oldest_ms)}"
    commit = f"commit {part.commit_instant} after {duration(part.commit_latency_ms)}, {size(part.bytes_written)}"
    compacted = f"; compaction {part.compaction_instant}" if part.compaction_instant is not None else ""
    clustered = f"; clustering {part.clustering_instant}" if part.clustering_instant is not None else ""
    warning = f"; WARNING: {part.warning}" if part.warning is not None else ""
    return f"  {part.table}: {counts}; {commit}, {fresh}{compacted}{clustered}{warning}"


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
