"""One change of a row at its place in the lake, and records that are none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from binlake.decode.changes import SourceTable
from binlake.decode.formats.trace import Trace

#: A row of the lake: value columns under their lake names.
Row = Mapping[str, Any]


@dataclass(frozen=True)
class RowChange:
    """One change of a row at its place in the lake.

    Args:
        source: the lake table.
        path, key: partition path and record key.
        before: the row before the change; None if there was none, or if ``whole`` is false.
        after: the row after it; None if it was deleted.
        whole: whether the message shows the row as it was before, with every column.
        order, row: ordering value, and the row's number in its event or message.
        topic, partition, offset: the record.
        source_ms: the source's time in ms since the epoch; 0 if unknown.
        trace: transaction and operation.
        removed: whether a later statement about its partition has removed the row.
    """

    source: SourceTable
    path: str
    key: str
    before: Row | None
    after: Row | None
    whole: bool
    order: int
    row: int
    topic: str
    partition: int
    offset: int
    source_ms: int
    trace: Trace
    removed: bool = False

    @property
    def identity(self) -> Identity:
        """The same for a change of a row and its redelivery: place and content. The place alone is not enough:
        MariaDB 11.4 gives all events of a transaction one position, and rows count from 0 in each."""
        return self.order, self.row, _content(self.before), _content(self.after)


#: What tells a change of a row from its other changes.
Identity = tuple[int, int, str, str]


def _content(row: Row | None) -> str:
    return "" if row is None else repr(sorted(row.items()))


def in_order(changes: Iterable[RowChange]) -> list[RowChange]:
    """Changes of one row as they happened, by the rule of the stream (``binlake.rows.upsert.collapse``).

    The order is ordering value, Kafka offset, row; where changes of one ordering value are in several partitions, the
    row comes before the offset.
    """
    by_order: dict[int, list[RowChange]] = defaultdict(list)
    for change in changes:
        by_order[change.order].append(change)
    ordered: list[RowChange] = []
    for order in sorted(by_order):
        mine = by_order[order]
        if len({(change.topic, change.partition) for change in mine}) == 1:
            ordered += sorted(mine, key=lambda change: (change.offset, change.row))
        else:
            ordered += sorted(mine, key=lambda change: (change.row, change.offset))
    return ordered


@dataclass(frozen=True)
class NoRow:
    """A record that is no change of a single row: a TRUNCATE, a bad record, or a row of a table without a key.

    Args:
        source: the lake table.
        why: the reason, as text.
        order: the ordering value; None for a record without one.
        topic, partition, offset: the record.
        trace: transaction and operation.
    """

    source: SourceTable
    why: str
    order: int | None
    topic: str
    partition: int
    offset: int
    trace: Trace

    @property
    def is_truncate(self) -> bool:
        """Whether it is a TRUNCATE."""
        return self.why == TRUNCATE

    @property
    def name(self) -> str:
        """``topic/partition:offset``."""
        return f"{self.topic}/{self.partition}:{self.offset}"


TRUNCATE = "TRUNCATE"
KEYLESS = "the table has no key"
