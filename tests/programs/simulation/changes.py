"""The changes of a history, and what each kind of table must hold after them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from binlake.decode.order import binlog_order
from tests.binlake.stream.topic_log import event
from tests.programs.simulation.shapes import Rules, engine_of
from tests.programs.simulation.steps import HOME

FILE: Final = "mysql-bin.000003"
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Change:
    """What a record is to its table: the newest position of a key wins.

    Args:
        owner: None for a delete.
        region: of the row; that which a delete takes.
        left: the row that it changes or deletes, as owner and region; None if there was none.
    """

    table: str
    key: int
    pos: int
    owner: str | None
    region: str = HOME
    left: tuple[str, str] | None = None

    @property
    def moves(self) -> bool:
        """Whether the row goes to another partition."""
        return self.left is not None and self.left[1] != self.region

    @property
    def order(self) -> int:
        """The ordering value of its event."""
        return binlog_order(0, FILE, self.pos)

    def event(self) -> dict[str, Any]:
        """The connector's envelope."""
        before = None if self.left is None else self._row(*self.left)
        if self.owner is None:
            return event(self.table, "d", self.pos, before or self._row("", self.region))
        return event(self.table, "u" if before else "c", self.pos, self._row(self.owner, self.region), before)

    def _row(self, owner: str, region: str) -> dict[str, Any]:
        return {"id": self.key, "owner": owner, "balance": "AfQ=", "region": region}


def wanted(rules: Rules, delivered: Sequence[Change]) -> Rows:
    """The rows of a table, sorted, as id, owner and region, after these records of its topics. Those of an aggregate
    have the number of rows of their region in place of the id."""
    upserts = [change for change in delivered if change.owner is not None]
    engine = engine_of(rules)
    if engine == "append":
        rows: Iterable[tuple[Any, ...]] = ((c.key, c.owner, c.region) for c in upserts)
    elif engine == "first_row":
        inserts = sorted((c for c in upserts if c.left is None), key=lambda c: c.pos, reverse=True)
        rows = ((c.key, c.owner, c.region) for c in {c.key: c for c in inserts}.values())
    elif engine == "aggregate":
        last = {c.region: c.owner for c in sorted(upserts, key=lambda c: c.pos)}
        living = [c.region for c in _newest(delivered).values() if c.owner is not None]
        rows = ((living.count(region), last[region], region) for region in set(living))
    else:
        rows = ((c.key, c.owner, c.region) for c in _newest(delivered).values() if c.owner is not None)
    return sorted(rows)


def versions(delivered: Sequence[Change]) -> Rows:
    """Of a history table: id, owner, start, end and whether it is current."""
    found: Rows = []
    for key in {change.key for change in delivered}:
        events = sorted({c.pos: c for c in delivered if c.key == key}.values(), key=lambda c: c.pos)
        for change, following in pairwise([*events, None]):
            if change is not None and change.owner is not None:
                end = following.order if following is not None else None
                found.append((key, change.owner, change.order, end, following is None))
    return sorted(found, key=lambda row: row[:3])


def _newest(delivered: Sequence[Change]) -> Mapping[int, Change]:
    return {change.key: change for change in sorted(delivered, key=lambda change: change.pos)}
