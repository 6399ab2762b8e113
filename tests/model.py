"""Plain Python models: a source that changes, and what a lake table must hold of the changes it was shown.

Nothing of the product is used here but the names of its types. Three things are told apart:

``Source``: what MySQL holds, and its binlog (``log``), in order.
``TableModel``: the lake table of a source table with a key: (partition path, record key) -> the newest change it was
shown, tombstones included, whatever the order of delivery. Once every change has been shown, its live rows are the
source's.
``KeylessModel``: the lake table of a source table without a key: a multiset of rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

Row = dict[str, Any]
#: A row's non-null values as something that can be counted.
Content = tuple[tuple[str, str], ...]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ESCAPED = {chr(c) for c in range(0x20)} | set("\x7f\"#%'*/:=?\\{[]^")


@dataclass(frozen=True)
class Shape:
    """How a table is laid out: key columns (none for a keyless one), and a partition column with a transform."""

    key: tuple[str, ...]
    partition: str | None = None
    transform: str = "identity"
    partition_name: str = ""
    hive_style: bool = True

    def record_key(self, row: Row) -> str:
        """The record key of a row of a table with a key."""
        if len(self.key) == 1:
            return key_text(row[self.key[0]])
        return ",".join(f"{name}:{key_text(row[name]) or '__empty__'}" for name in self.key)

    def partition_value(self, row: Row) -> object:
        """The value of the partition field."""
        value = row[self.partition] if self.partition else None
        if value is None or self.transform == "identity":
            return value
        return value.strftime(
            {"day": "%Y-%m-%d", "hour": "%Y-%m-%d-%H", "month": "%Y-%m", "year": "%Y"}[self.transform]
        )

    def path(self, row: Row) -> str:
        """The partition path of a row."""
        if self.partition is None:
            return ""
        value = self.partition_value(row)
        text = "__HIVE_DEFAULT_PARTITION__" if value in (None, "") else key_text(value)
        escaped = "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in text)
        return f"{self.partition_name}={escaped}" if self.hive_style else escaped

    def lake_row(self, row: Row) -> Row:
        """The row with the partition field that a transform adds."""
        if self.partition is None or self.transform == "identity":
            return dict(row)
        return {**row, self.partition_name: self.partition_value(row)}


def key_text(value: object) -> str:
    """A value as record keys and partition paths spell it."""
    if isinstance(value, datetime):
        return str((value - _EPOCH) // timedelta(microseconds=1))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@dataclass(frozen=True)
class Change:
    """One event of the binlog: ``after`` None for a delete, ``before`` None for an insert, both None for a TRUNCATE.

    ``order``: the ordering value; ``row``: the row's number inside its event.
    """

    order: int
    row: int
    before: Row | None
    after: Row | None

    @property
    def is_truncate(self) -> bool:
        """Whether it empties the table."""
        return self.before is None and self.after is None


@dataclass(frozen=True)
class Delivered:
    """A change as a Kafka record."""

    change: Change
    partition: int
    offset: int


@dataclass
class Source:
    """A source table: its rows, and everything that happened to it."""

    shape: Shape
    log: list[Change] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def apply(self, changes: Sequence[Change]) -> None:
        """Make changes happen, in order."""
        for change in changes:
            if change.is_truncate:
                self.rows.clear()
            if change.before is not None:
                self.rows.remove(change.before)
            if change.after is not None:
                self.rows.append(change.after)
            self.log.append(change)


@dataclass(frozen=True)
class Entry:
    """The newest change that a place of the lake table has seen; ``row`` None for a tombstone."""

    order: int
    row: Row | None


Place = tuple[str, str]


def merged(commits: Iterable[Mapping[Place, Entry]]) -> dict[Place, Entry]:
    """What commits leave at each place: the greatest ordering value wins, of equal ones the later commit."""
    result: dict[Place, Entry] = {}
    for written in commits:
        for place, entry in written.items():
            if place not in result or result[place].order <= entry.order:
                result[place] = entry
    return result


@dataclass
class TableModel:
    """What the lake table holds after the commits it was given. ``is_global``: a key has one row in the whole table."""

    shape: Shape
    is_global: bool = False
    entries: dict[Place, Entry] = field(default_factory=dict)
    truncated: int = -1
    commits: list[dict[Place, Entry]] = field(default_factory=list)

    def commit(self, batch: Iterable[Delivered]) -> None:
        """One commit: the newest change of each place in the batch, against what the place holds.

        Of equal ordering values in one batch the later record of the Kafka partition wins, and inside one record the
        row; between commits the later commit wins. Both say the same: events of one position come again in their order.
        """
        records = list(batch)
        truncated = max((d.change.order for d in records if d.change.is_truncate), default=-1)
        gone = [place for place, e in self.entries.items() if e.row is not None and e.order <= truncated]
        self.truncated = max(self.truncated, truncated)
        newest: dict[Place, tuple[tuple[int, int, int], Row | None]] = {}
        for record in records:
            for place, row in self._effects(record.change):
                rank = (record.change.order, record.offset, record.change.row)
                if place not in newest or newest[place][0] <= rank:
                    newest[place] = rank, row
        written = {place: Entry(truncated, None) for place in gone}
        written |= {place: Entry(rank[0], row) for place, (rank, row) in newest.items()}
        self.commits.append(written)
        self.entries = merged([self.entries, written])

    def _effects(self, change: Change) -> list[tuple[Place, Row | None]]:
        """What a change does where: a row that leaves its place leaves a tombstone there."""
        if change.order <= self.truncated:
            return []
        effects: list[tuple[Place, Row | None]] = []
        if change.after is not None:
            effects.append((self._place(change.after), change.after))
        if change.before is not None and (change.after is None or self._place(change.before) != effects[0][0]):
            effects.append((self._place(change.before), None))
        return effects

    def _place(self, row: Row) -> Place:
        return "" if self.is_global else self.shape.path(row), self.shape.record_key(row)

    def rows(self, since: int = 0) -> list[Row]:
        """The live rows as the lake shows them, with key, path and ordering value.

        Args:
            since: leave this many commits aside, as an incremental read does: a row that one of them has outdated or
                deleted already is shown where it comes again, for the read does not look at them.
        """
        entries = merged(self.commits[since:]) if since else self.entries
        return [
            {
                **self.shape.lake_row(e.row),
                "_binlake_order": e.order,
                "_hoodie_record_key": key,
                "_hoodie_partition_path": self.shape.path(e.row),
            }
            for (_, key), e in entries.items()
            if e.row is not None
        ]


def content(row: Row) -> Content:
    """A row's content."""
    return tuple(sorted((name, repr(value)) for name, value in row.items() if value is not None))


@dataclass
class KeylessModel:
    """The multiset of rows after the changes it was shown, each counted once however often it was delivered.

    A streamed change is known by its place in the binlog, a snapshot's row (all of them at one place) by its record.
    What went before it came is owed: it takes the next row of its content that was added before it, and none that was
    added later, which the source still has.
    """

    shape: Shape
    seen: set[tuple[int, int, bool]] = field(default_factory=set)
    live: defaultdict[Content, list[int]] = field(default_factory=lambda: defaultdict(list))
    owed: defaultdict[Content, list[int]] = field(default_factory=lambda: defaultdict(list))
    newest: dict[Content, int] = field(default_factory=dict)
    samples: dict[Content, Row] = field(default_factory=dict)
    truncated: int = -1

    def commit(self, batch: Iterable[Delivered]) -> None:
        """One commit."""
        records = sorted(batch, key=lambda d: (d.change.order, d.change.row, d.offset))
        self.truncated = max([self.truncated, *(d.change.order for d in records if d.change.is_truncate)])
        for record in records:
            self._see(record, record.change.before, came=False)
            self._see(record, record.change.after, came=True)
        for orders in (*self.live.values(), *self.owed.values()):
            orders[:] = [order for order in orders if order > self.truncated]

    def _see(self, record: Delivered, row: Row | None, *, came: bool) -> None:
        change = record.change
        streamed = change.order >> 32 & 0xFFFFF
        mark = (change.order, change.row, came) if streamed else (-1 - record.partition, record.offset, True)
        if row is None or mark in self.seen:
            return
        self.seen.add(mark)
        key, order = content(row), change.order
        self.samples[key] = row
        if came:
            waiting = [owed for owed in self.owed[key] if order <= owed]
            if waiting:
                self.owed[key].remove(min(waiting))
            else:
                self.live[key].append(order)
            return
        if self.live[key]:  # rows of equal content are one like another
            self.live[key].remove(min(self.live[key]))
        else:  # an earlier delete may have taken the row that this one was meant for, and left its own
            self.owed[key].append(max(order, self.newest.get(key, -1)))
        self.newest[key] = max(order, self.newest.get(key, -1))

    def rows(self) -> list[Row]:
        """The live rows."""
        return [self.shape.lake_row(self.samples[key]) for key, orders in self.live.items() for _ in orders]
