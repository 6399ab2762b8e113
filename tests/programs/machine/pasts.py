"""What the lake table of a source table must show: the newest delivered event of each key, restated by later DDL.

DDL changes rows without a row event. A row event from before a statement, whenever it is delivered, shows what the
statement made of its row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Rows = dict[int, Row]
#: Changes a row as a statement does.
Step = Callable[[Row], object]


@dataclass(frozen=True)
class Event:
    """A row event, a TRUNCATE (``key`` None), or a row of a foreign commit.

    Args:
        pos: its place in the source's log.
        key, row: the key and the row after it; None for a deleted one.
        instant: the foreign commit that wrote it; "" if it came through the stream.
    """

    pos: int
    key: int | None = None
    row: Row | None = None
    instant: str = ""


@dataclass
class Lake:
    """The lake table of one source table, by the name that the source table had first.

    Args:
        columns: those of the source.
        delivered: the events that the table has, in any order.
        steps: the statements, by their places.
        pasts: instants -> what was shown then, by column.
        held: the instants of savepoints.
        other_types: the instants when a column had another type: hudi-rs reads them under the types of now, and fails
            (measured).
    """

    columns: list[str]
    delivered: list[Event] = field(default_factory=list)
    steps: list[tuple[int, Step]] = field(default_factory=list)
    pasts: dict[str, Rows] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    other_types: set[str] = field(default_factory=set)

    def rows(self) -> Rows:
        """The rows by key, in the source's columns."""
        truncated = max((e.pos for e in self.delivered if e.key is None), default=-1)
        newest: dict[int, Event] = {}
        for event in self.delivered:
            known = newest.get(event.key) if event.key is not None else None
            if event.key is not None and event.pos > truncated and (known is None or known.pos <= event.pos):
                newest[event.key] = event
        return {key: self._restated(e, e.row) for key, e in sorted(newest.items()) if e.row is not None}

    def _restated(self, event: Event, row: Row) -> Row:
        now = dict(row)
        for pos, step in self.steps:
            if pos > event.pos:
                step(now)
        return {name: now.get(name) for name in self.columns}

    def note(self, instant: str) -> None:
        """The table shows its rows of now as of an instant."""
        self.pasts[instant] = self.rows()

    def forget(self, promised: set[str]) -> None:
        """Only these pasts are promised from now on, and those that savepoints hold."""
        self.pasts = {i: rows for i, rows in self.pasts.items() if i in promised or i in self.held}

    def take_back(self, instant: str) -> None:
        """The table was restored: what later commits brought from elsewhere than the stream is gone."""
        self.delivered = [e for e in self.delivered if e.instant <= instant]
        self.pasts = {i: rows for i, rows in self.pasts.items() if i <= instant}
