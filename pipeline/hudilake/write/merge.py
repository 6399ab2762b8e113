"""A file group's rows: the log's winners are merged with the base file, one stretch of rows at a time.

Where base files are sorted by record key, log rows are inserted in order while the base file is read. Base files of
other writers, and those that are laid out in an order of other columns, are merged in any order: their rows then go
aside (``ordered``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.digest.content_sum import NOTHING, ContentSum
from hudilake.format.files.change_log import MergeChanges
from hudilake.format.files.log_events import LogEvents
from hudilake.format.files.log_merge import LogWinners
from hudilake.format.files.log_rows import Flags, Longs
from hudilake.write.aside import AsideRows

#: Rows of a row group that are merged at once; the number bounds the copied data.
STRETCH_ROWS = 65_536


class NotSortedError(Exception):
    """The base file's keys do not ascend. Start again with ``ordered.merge_in_order``."""


@dataclass
class Counts:
    """Counts of the merged rows of the base file and the log, for the commit. ``dropped``: live rows that a compaction
    left out (``retention``)."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    dropped: int = 0


class SortedLog:
    """The log's winners in key order with their rows. The merge records which of them lose to the base file (``lost``),
    have a key that is new in it (``inserted``), or delete a row of it (``deleted``).

    Args:
        events: the log's events; their rows are moved out.
    """

    def __init__(self, events: LogEvents) -> None:
        log = events.merged()
        self.instants = events.instants
        self.ordering_field = events.ordering_field
        winners = log.winners.take(np.asarray(pc.sort_indices(log.winners.keys).to_numpy(), dtype=np.int64))
        #: In key order.
        self.rows = log.rows.take(winners.row[winners.row >= 0]).combined()
        del log
        #: The number of rows before each winner, and after the last: their indexes in ``rows``.
        self._rows_before = np.concatenate(([0], np.cumsum(winners.row >= 0)))
        self.winners = LogWinners(
            winners.keys,
            winners.ordering,
            winners.unconditional,
            np.where(winners.row >= 0, self._rows_before[:-1], -1),
            winners.block,
        )
        self._keys = np.asarray(winners.keys.to_numpy(zero_copy_only=False), dtype=object)
        self.lost, self.inserted, self.deleted = (np.zeros(len(self._keys), dtype=np.bool_) for _ in range(3))
        self.counts = Counts()
        #: The rows that the merge adds less those that it takes away, if that is asked for; else None.
        self.difference: ContentSum | None = None
        #: The rows that the merge changes, if that is asked for; else None.
        self.changes: MergeChanges | None = None
        #: The number of winners that are merged, from the first on.
        self.passed = 0

    def __len__(self) -> int:
        return len(self._keys)

    def forget(self) -> None:
        """Reset the records of the merge: the base file is read again."""
        for flags in (self.lost, self.inserted, self.deleted):
            flags[:] = False
        self.counts, self.passed = Counts(), 0
        if self.difference is not None:
            self.difference = NOTHING
        if self.changes is not None:
            self.changes.forget()

    def up_to(self, key: str) -> int:
        """The number of winners with keys up to that one (inclusive)."""
        return bisect_right(self._keys, key)

    @property
    def expected_inserts(self) -> int:
        """How many new keys the whole merge may find, as far as it shows by now."""
        left = len(self) - self.passed
        return self.counts.inserts + (left * self.counts.inserts // self.passed if self.passed else 0)

    @property
    def changes_base(self) -> bool:
        """Whether the merge has changed any row."""
        return bool(self.counts.inserts or self.counts.updates or self.counts.deletes)

    def merged(self, base: pa.Table, low: int, high: int, *, sorted_keys: bool) -> tuple[pa.Table, Flags]:
        """Some rows of the base file with the winners from ``low`` to ``high``.

        ``sorted_keys``: insert the rows of keys that are not in ``base`` in key order; otherwise they are left out.
        Returns the rows, and which of those winners have no row in ``base``.
        """
        if low == high:
            return base, np.empty(0, dtype=np.bool_)
        part = self.winners.slice(low, high)
        met, wins = part.against(base, self.ordering_field)
        meets = met >= 0
        self.lost[low + met[meets & ~wins]] = True
        alone = np.ones(high - low, dtype=np.bool_)
        alone[met[meets]] = False
        first, last = self._rows_before[low], self._rows_before[high]
        source = np.arange(base.num_rows, dtype=np.int64)
        owner = source.copy()
        hit = np.flatnonzero(wins)
        log_rows = part.row[met[hit]]
        source[hit] = np.where(log_rows >= 0, base.num_rows + log_rows - first, -1)
        self.counts.updates += int((log_rows >= 0).sum())
        self.counts.deletes += int((log_rows < 0).sum())
        self.deleted[low + met[hit[log_rows < 0]]] = True
        fresh = np.flatnonzero(alone & (part.row >= 0)) if sorted_keys else np.empty(0, dtype=np.int64)
        if len(fresh):
            keys = np.asarray(base.column(RECORD_KEY_FIELD).to_numpy(zero_copy_only=False), dtype=object)
            insert_positions = np.searchsorted(keys, self._keys[low:high][fresh])
            source = np.insert(source, insert_positions, base.num_rows + part.row[fresh] - first)
            owner = np.insert(owner, insert_positions, -1)
            self.counts.inserts += len(fresh)
            self.inserted[low + fresh] = True
        kept = source >= 0
        rows = self.rows.between(first, last).with_base(base, source[kept], owner[kept])
        fresh_places = np.flatnonzero(source[kept] >= base.num_rows)
        if self.difference is not None:
            self.difference += ContentSum.of_some(rows, fresh_places) - ContentSum.of_some(base, hit)
        if self.changes is not None:
            self.changes.note(base, rows, owner[kept], fresh_places, hit[log_rows < 0])
        return rows, alone

    def fresh_rows(self, alone: Flags | None = None, low: int = 0) -> pa.Table:
        """The rows of the winners from ``low`` on, in key order; ``alone``: only of those winners."""
        winners = low + np.arange(len(self) - low) if alone is None else np.flatnonzero(alone)
        winners = winners[self.winners.row[winners] >= 0]
        places = self.winners.row[winners]
        self.rows.check_whole(places)
        self.inserted[winners] = True
        self.counts.inserts += len(places)
        if alone is not None:
            rows = self.rows.table.take(pa.array(places))
        else:
            rows = self.rows.table.slice(self._rows_before[low])
        if self.difference is not None:
            self.difference += ContentSum.of_rows(rows)
        if self.changes is not None:
            self.changes.inserted(rows)
        return rows


def merge_sorted(base: Iterable[pa.Table], log: SortedLog) -> Iterator[pa.Table]:
    """The live rows in key order.

    Args:
        base: the base file's rows, in the log's columns, row group by row group.
        log: the winners to merge.

    Raises NotSortedError at the first key of the base file that does not ascend; discard the rows given until then.
    """
    low, last = 0, ""
    for rows in _stretches(base):
        keys = rows.column(RECORD_KEY_FIELD)
        if not _ascends(keys, last):
            raise NotSortedError
        last = keys[-1].as_py()
        high = log.up_to(last)
        merged, _ = log.merged(rows, low, high, sorted_keys=True)
        low = log.passed = high
        yield merged
    rest = log.fresh_rows(low=low)
    log.passed = len(log)
    yield from _stretches([rest])


def merge_any(base: Iterable[pa.Table], log: SortedLog) -> Iterator[pa.Table]:
    """The live rows in any order, for a base file in any order. Arguments as ``merge_sorted``."""
    alone = np.ones(len(log), dtype=np.bool_)
    for rows in _stretches(base):
        merged, unmet = log.merged(rows, 0, len(log), sorted_keys=False)
        alone &= unmet
        yield merged
    yield from _stretches([log.fresh_rows(alone)])
    log.passed = len(log)


def gathered(aside: Path, order: Longs, at_once: tuple[int, int]) -> Iterator[pa.Table]:
    """The rows of a file (Arrow IPC) in a given order.

    Args:
        aside: its path on local disk.
        order: the numbers of its rows, as they are wanted.
        at_once: the largest number of rows, and about the largest number of bytes, gathered at once.
    """
    bytes_a_row = aside.stat().st_size // max(len(order), 1) + 1
    step = max(1, min(STRETCH_ROWS, at_once[0], at_once[1] // bytes_a_row))
    with AsideRows.open([aside]) as rows:
        for offset in range(0, len(order), step):
            yield rows.take(order[offset : offset + step])


def _stretches(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    for table in tables:
        for offset in range(0, table.num_rows, STRETCH_ROWS):
            yield table.slice(offset, STRETCH_ROWS)


def _ascends(keys: pa.ChunkedArray, last: str) -> bool:
    """Whether keys ascend, the first of them after ``last`` or equal to it."""
    if keys[0].as_py() < last:
        return False
    return bool(pc.all(pc.less_equal(keys.slice(0, len(keys) - 1), keys.slice(1))).as_py() is not False)
