"""The merge rule of EVENT_TIME_ORDERING, in whole columns, for readers and compactions.

The rule has two steps. First the log blocks are merged: per key the greatest ordering value wins, of equal ones the
later; a delete without an ordering value removes everything before it. Then the winner is compared with the base file's
row: it wins unless its ordering value is smaller. (Hudi 1.2.0, ``BufferedRecordMergerFactory``: the two steps differ
from one pass only where deletes have no ordering value.)

Partial rows after the winner of whole rows and deletes change its columns, each in the order of the log; without a
whole row in the log they change the base file's row. Both readers do so if no partial row has a greater ordering value
than a later event of its key, or a smaller one than an earlier event. Other logs are refused: the readers differ there
(measured: Hudi Spark 1.2.0, hudi-rs 0.5.0).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import UnsupportedError
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.log_rows import Changes, Flags, LogRows, Longs, without_row

#: The ordering value of nulls and of deletes without one.
LEAST = np.iinfo(np.int64).min


@dataclass(frozen=True)
class MergedLog:
    """What the log does to its keys: the winners, and the rows that their ``row`` counts."""

    winners: LogWinners
    rows: LogRows


@dataclass(frozen=True)
class LogWinners:
    """The winner of each of the log's n keys, in no promised order: key, ordering value, whether it is a delete without
    an ordering value, index of its row (-1 for a delete), number of its block. Where partial rows have changed the
    winner, ordering value and block are those of the last of them."""

    keys: pa.Array
    ordering: Longs
    unconditional: Flags
    row: Longs
    block: Longs

    def take(self, places: Longs) -> LogWinners:
        """The winners at these indexes, in that order."""
        return LogWinners(
            self.keys.take(pa.array(places)),
            self.ordering[places],
            self.unconditional[places],
            self.row[places],
            self.block[places],
        )

    def slice(self, low: int, high: int) -> LogWinners:
        """The winners from ``low`` to ``high`` (exclusive)."""
        return LogWinners(
            self.keys.slice(low, high - low),
            self.ordering[low:high],
            self.unconditional[low:high],
            self.row[low:high],
            self.block[low:high],
        )

    def against(self, base: pa.Table, ordering_field: str) -> tuple[Longs, Flags]:
        """Step two, for some rows of the base file.

        Args:
            base: m rows with the record key and the ordering column.
            ordering_field: as the events' own.

        Returns (for each base row the index of the winner of its key, or -1; whether that winner wins).
        """
        indexes = pc.index_in(base.column(RECORD_KEY_FIELD), value_set=self.keys)
        met = np.asarray(pc.fill_null(indexes, -1).to_numpy(), dtype=np.int64)
        wins = met >= 0
        rows = np.flatnonzero(wins)
        if ordering_field and len(rows):
            base_ordering = ordering_values(base.select([ordering_field]).take(pa.array(rows)), ordering_field)
            wins[rows] = (self.ordering[met[rows]] >= base_ordering) | self.unconditional[met[rows]]
        return met, wins


@dataclass(frozen=True)
class Events:
    """n rows and deletes in the order they were written.

    ``codes``: a number for each distinct key. ``row``: the index of a whole row among all whole rows, of a partial row
    in its table, -1 for a delete. ``partial``: the number of a partial row's table, -1 for others. ``block``: the
    number of the block.
    """

    keys: pa.Array
    codes: Longs
    ordering: Longs
    unconditional: Flags
    row: Longs
    partial: Longs
    block: Longs

    def winners(self) -> LogWinners:
        """Step one for events without partial rows."""
        chosen = self._newest(self._not_wiped())
        return self._at(chosen, self.row[chosen])

    def changed_winners(self, rows: int) -> tuple[LogWinners, Changes]:
        """Step one for events with partial rows.

        Args:
            rows: the number of whole rows.

        Returns (the winners, what to fold into the rows that they count). Raises UnsupportedError for partial rows out
        of order, CorruptDataError for a partial row after the delete of its key.
        """
        kept = self._not_wiped()
        partials = kept[self.partial[kept] >= 0]
        self._check_order(kept, partials)
        chosen = self._newest(kept[self.partial[kept] < 0])
        whole = np.full(int(self.codes.max()) + 1, -1, dtype=np.int64)
        whole[self.codes[chosen]] = chosen
        partials = partials[partials > whole[self.codes[partials]]]
        newest = whole.copy()
        np.maximum.at(newest, self.codes[partials], partials)
        deleted = (whole >= 0) & (self.row[whole] < 0)
        if len(stray := partials[deleted[self.codes[partials]]]):
            raise without_row(self.keys[int(stray[0])].as_py())
        row = np.where(deleted, -1, np.cumsum(~deleted) - 1)
        first = np.where(whole >= 0, self.row[whole], -1)[~deleted]
        changes = Changes(first, rows, row[self.codes[partials]], self.partial[partials], self.row[partials])
        return self._at(newest, row), changes

    def _at(self, chosen: Longs, row: Longs) -> LogWinners:
        keys = self.keys.take(pa.array(chosen))
        return LogWinners(keys, self.ordering[chosen], self.unconditional[chosen], row, self.block[chosen])

    def _not_wiped(self) -> Longs:
        """The indexes of the events that no delete without an ordering value follows, ascending."""
        events = np.arange(len(self.codes), dtype=np.int64)
        if not self.unconditional.any():
            return events
        wiped_until = np.full(int(self.codes.max()) + 1, -1, dtype=np.int64)
        np.maximum.at(wiped_until, self.codes[self.unconditional], events[self.unconditional])
        return events[events >= wiped_until[self.codes]]

    def _newest(self, events: Longs) -> Longs:
        """Of these events the index of each key's winner, in no promised order."""
        by_key = events[np.lexsort((self.ordering[events], self.codes[events]))]
        last = np.ones(len(by_key), dtype=np.bool_)
        last[:-1] = self.codes[by_key[1:]] != self.codes[by_key[:-1]]
        return by_key[last]

    def _check_order(self, events: Longs, partials: Longs) -> None:
        concerned = np.zeros(int(self.codes.max()) + 1, dtype=np.bool_)
        concerned[self.codes[partials]] = True
        events = events[concerned[self.codes[events]]]
        events = events[np.argsort(self.codes[events], kind="stable")]
        values, rank = np.unique(self.ordering[events], return_inverse=True)
        order = self.codes[events] * len(values) + rank  # ascends with the key, and in a key with the ordering value
        greatest, least = np.maximum.accumulate(order), np.minimum.accumulate(order[::-1])[::-1]
        wrong = (self.partial[events] >= 0) & ((greatest != order) | (least != order))
        if wrong.any():
            key = self.keys[int(events[np.flatnonzero(wrong)[0]])].as_py()
            raise UnsupportedError(
                f"log files have partial rows of record key {key!r} in another order than their ordering values, which "
                "readers merge in different ways",
                do_next="compact the table with Hudi, then read it",
            )


def ordering_values(table: pa.Table, ordering_field: str) -> Longs:
    """The ordering value of each row as a long, null as the least; zeros where the later commit always wins."""
    if not ordering_field:
        return np.zeros(table.num_rows, dtype=np.int64)
    column = table.column(ordering_field)
    if not (pa.types.is_signed_integer(column.type) or pa.types.is_temporal(column.type)):
        raise UnsupportedError(
            f"hoodie.table.ordering.fields is {ordering_field}, a column of type {column.type}",
            do_next="read the table with Hudi",
        )
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return np.asarray(pc.fill_null(column.cast(pa.int64()), LEAST).to_numpy(), dtype=np.int64)
