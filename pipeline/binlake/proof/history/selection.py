"""Which changes of the source are to be undone: transactions by their ids, or a range of positions or of times."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from binlake.decode.changes import FILE_BITS, POSITION_BITS, ChangeBatch, Mask, RawRecords
from binlake.decode.formats.trace import SNAPSHOT_ROW
from binlake.decode.order import OrderKind, OrderPlace
from binlake.proof.history.changes import TraceOf
from binlake.source.offsets import OffsetRange

#: What ``source.snapshot`` says in a row of an incremental snapshot.
_INCREMENTAL = b"incremental"
#: How many records at the beginning of a chunk are looked at in any case.
_FIRST = 5


@dataclass(frozen=True)
class ChangeSelection:
    """Conditions that a change must all meet; None or empty for no condition.

    Args:
        transactions: ids of transactions, or GTIDs.
        first, last: the ordering values of the first and the last position, both inclusive.
        since_ms, until_ms: the source's time in ms since the epoch, the end exclusive.
    """

    transactions: frozenset[str] = frozenset()
    first: int | None = None
    last: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is no condition at all."""
        return self == ChangeSelection()

    @property
    def needs_times(self) -> bool:
        """Whether the source's times matter."""
        return self.since_ms is not None or self.until_ms is not None

    def takes(self, order: int, source_ms: int, names: Collection[str]) -> bool:
        """Whether a change meets the conditions. A row of the initial snapshot, which is read at no
        position, never does."""
        return (
            OrderPlace.of(order).kind is not OrderKind.SNAPSHOT
            and (not self.transactions or not self.transactions.isdisjoint(names))
            and (self.first is None or order >= self.first)
            and (self.last is None or order <= self.last)
            and (self.since_ms is None or source_ms >= self.since_ms)
            and (self.until_ms is None or source_ms < self.until_ms)
        )

    def may_be_in(self, records: RawRecords) -> list[int]:
        """The indices of records that may hold a selected change or a row of an incremental snapshot, judged by their
        bytes alone: a message of any format holds the id of its transaction as text."""
        ids = [name.encode() for name in self.transactions]
        if not ids:
            return list(range(len(records)))
        marks, numbered_values = [*ids, _INCREMENTAL], enumerate(records.values)
        return [index for index, value in numbered_values if value is not None and any(mark in value for mark in marks)]

    def __str__(self) -> str:
        parts = [f"transaction {name}" for name in sorted(self.transactions)]
        if self.first is not None or self.last is not None:
            first, last = (_place(self.first) or "the beginning", _place(self.last) or "the end")
            parts.append(f"positions {first} to {last}")
        if self.since_ms is not None or self.until_ms is not None:
            since, until = (_time(self.since_ms) or "the beginning", _time(self.until_ms) or "now")
            parts.append(f"times {since} to {until}")
        return ", ".join(parts)


def _place(order: int | None) -> str | None:
    return None if order is None else str(OrderPlace.of(order))


def _time(millis: int | None) -> str | None:
    return None if millis is None else f"{datetime.fromtimestamp(millis / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass
class Chooser:
    """Chooses the selected rows of change batches, and notes which transactions lie partly outside of the selection.

    A range of positions or times may cut a transaction in two; half a transaction is never undone. ``lowest``: of each
    topic partition the least binlog position (as an ordering value) and the least source time that were seen.
    ``untimed``: how many changes have no source time although times are selected.
    """

    selection: ChangeSelection
    inside: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)
    lowest: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    untimed: int = 0

    def narrowed(self, records: RawRecords) -> RawRecords:
        """The records of a chunk that may hold selected changes, and the first few, which show where it begins."""
        indices = self.selection.may_be_in(records)
        if len(indices) == len(records):
            return records
        return records.select(sorted({*indices, *range(min(_FIRST, len(records)))}))

    @property
    def cut(self) -> set[str]:
        """The transactions that are selected in part."""
        return self.inside & self.outside

    def is_after(self, gone: OffsetRange, first_order: int) -> bool:
        """Whether the selection lies wholly after records that are gone from the beginning of a partition.

        A partition is in the order of the binlog, and a transaction is in one piece there. So what is gone lies before
        the least position that is still there. ``first_order``: the least ordering value of the selected changes.
        """
        seen = self.lowest.get((gone.topic, gone.partition))
        if seen is None:
            return False
        order, millis = seen
        selection = self.selection
        return (
            (selection.first is not None and order < selection.first)
            or (selection.since_ms is not None and 0 < millis < selection.since_ms)
            or (bool(selection.transactions) and order < first_order)
        )

    def _note_lowest(self, batch: ChangeBatch) -> None:
        """Note the least position and time of a change batch."""
        rows = batch.rows
        orders, millis = (np.asarray(rows.column(name).to_numpy()) for name in ("__order", "__source_ms"))
        streamed = (orders >> POSITION_BITS) & ((1 << FILE_BITS) - 1) > 0
        if streamed.any():
            place = batch.topic, int(rows.column("__partition")[0].as_py())
            mine = int(orders[streamed].min()), int(millis[streamed].min())
            held = self.lowest.get(place, mine)
            self.lowest[place] = min(held[0], mine[0]), min(held[1], mine[1])

    def rows(self, batch: ChangeBatch, trace: TraceOf) -> Mask:
        """The selected rows of a change batch, as ``changes.Choose``, and the rows of incremental snapshots.

        The rows of a snapshot belong to no transaction. They tell that a row was read again and not changed.
        """
        self._note_lowest(batch)
        columns = (batch.rows.column(name).to_pylist() for name in ("__order", "__source_ms", "__offset"))
        selected = np.zeros(len(batch.rows), dtype=bool)
        for index, (order, millis, offset) in enumerate(zip(*columns, strict=True)):
            said = trace(offset)
            if said.op == SNAPSHOT_ROW:
                selected[index] = OrderPlace.of(order).kind is OrderKind.BINLOG
                continue
            self.untimed += self.selection.needs_times and not millis
            selected[index] = self.selection.takes(order, millis, said.names)
            transaction = said.transaction or said.gtid
            if transaction is not None:
                (self.inside if selected[index] else self.outside).add(transaction)
        return selected
