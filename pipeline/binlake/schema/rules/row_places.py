"""Where rows stand among statements: a snapshot row by the binlog place at which it was read.

The ordering value of a snapshot row holds only the second of its reading, so that any streamed change of its key beats
it. A connector also names the binlog place that a snapshot row reflects (Debezium 3.4, measured: one place for all rows
of the first snapshot, the place of the moment for incremental ones). Incoming rows carry it (``__place``). A stored row
does not: a table's commits record from which places the snapshot rows of which seconds were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.changes import FILE_BITS, POSITION_BITS, UNKNOWN_PLACE
from binlake.decode.order import EARLIEST_SNAPSHOT_S

_I64 = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]
#: The runs that a table records; older ones are united, which makes their places less exact.
_MOST_RUNS = 200


def has_binlog_place(order: int) -> bool:
    """Whether an ordering value is a binlog position, and not a snapshot's time or a Kafka offset."""
    return bool((order >> POSITION_BITS) & ((1 << FILE_BITS) - 1))


def has_no_binlog_place(orders: _I64) -> _Mask:
    """Where the ordering values, int64 of n, are no binlog positions: bool of n."""
    unplaced: _Mask = _file(orders) == 0
    return unplaced


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """The moments of n rows, arrays int64 of n.

    ``orders``: ordering values. ``earliest``, ``latest``: each row shows the table as of a binlog place in between, in
    the form of an ordering value; UNKNOWN_PLACE where it is not known.
    """

    orders: _I64
    earliest: _I64
    latest: _I64

    @staticmethod
    def incoming(rows: pa.Table) -> RowPlaces:
        """Of rows with META_FIELDS."""
        places = np.asarray(rows.column("__place").to_numpy(), dtype=np.int64)
        return RowPlaces(np.asarray(rows.column("__order").to_numpy(), dtype=np.int64), places, places)

    @staticmethod
    def unknown(orders: _I64) -> RowPlaces:
        """Of rows with these ordering values about which nothing else is known."""
        places = np.full(len(orders), UNKNOWN_PLACE, dtype=np.int64)
        return RowPlaces(orders, places, places)

    def take(self, at: npt.NDArray[np.int64]) -> RowPlaces:
        """The rows at these indices."""
        return RowPlaces(self.orders[at], self.earliest[at], self.latest[at])

    def where(self, mask: _Mask) -> RowPlaces:
        """The rows for which the mask holds; this object itself if it holds for all."""
        return self if mask.all() else RowPlaces(self.orders[mask], self.earliest[mask], self.latest[mask])

    def before(self, order: int, seconds: int | None) -> tuple[_Mask, _Mask]:
        """Two masks of n: rows from before a statement, and rows of which it cannot be said.

        Args:
            order: the statement's ordering value.
            seconds: its time since the Unix epoch, which decides where a snapshot row's place is not known; None if
                it is not known.
        """
        earlier = self.orders < order
        if not has_binlog_place(order):  # ordered by Kafka offsets: all rows are, then
            return earlier, np.zeros(len(self.orders), dtype=bool)
        unsure = earlier & (_file(self.orders) == 0) & (_epoch(self.orders) == order >> (FILE_BITS + POSITION_BITS))
        # a snapshot that was read at the place where the statement begins does not show its effect
        placed = unsure & (self.latest != UNKNOWN_PLACE) & ((self.latest <= order) | (self.earliest > order))
        times = self.orders & ((1 << POSITION_BITS) - 1)
        timed = unsure & ~placed & (times >= EARLIEST_SNAPSHOT_S) & (seconds is not None) & (times != (seconds or 0))
        came_before = np.where(placed, self.latest <= order, times < (seconds or 0))
        return np.where(placed | timed, came_before, earlier & ~unsure), unsure & ~placed & ~timed


def _file(orders: _I64) -> _I64:
    return (orders >> POSITION_BITS) & ((1 << FILE_BITS) - 1)


def _epoch(orders: _I64) -> _I64:
    return orders >> (FILE_BITS + POSITION_BITS)


#: The snapshot rows with ordering values from the first to the second number were read at places from the third to the
#: fourth.
Run = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class SnapshotPlaces:
    """The binlog places at which the snapshot rows of a table were read. ``runs``: ascending, without overlap."""

    runs: tuple[Run, ...] = field(default=())

    @staticmethod
    def of(rows: RowPlaces) -> SnapshotPlaces:
        """The places of incoming rows; streamed rows are left out."""
        known = (_file(rows.orders) == 0) & (rows.latest != UNKNOWN_PLACE)
        known &= (rows.orders & ((1 << POSITION_BITS) - 1)) >= EARLIEST_SNAPSHOT_S
        if not known.any():
            return NO_SNAPSHOTS
        orders, places = rows.orders[known], rows.latest[known]
        ranked = np.lexsort((places, orders))
        orders, places = orders[ranked], places[ranked]
        starts = np.flatnonzero(np.diff(orders, prepend=orders[0] - 1))
        ends = np.append(starts[1:], len(orders)) - 1
        firsts, lows, highs = orders[starts].tolist(), places[starts].tolist(), places[ends].tolist()
        return SnapshotPlaces(_united(zip(firsts, firsts, lows, highs, strict=True)))

    def merged(self, other: SnapshotPlaces) -> SnapshotPlaces:
        """The places of both; this object itself if the other adds nothing."""
        runs = _united(sorted((*self.runs, *other.runs)))
        return self if runs == self.runs else SnapshotPlaces(runs)

    def stored(self, orders: _I64) -> RowPlaces:
        """The places of stored rows with these ordering values."""
        if not self.runs:
            return RowPlaces.unknown(orders)
        firsts, lasts, lows, highs = (np.array(column, dtype=np.int64) for column in zip(*self.runs, strict=True))
        run_indices = np.searchsorted(firsts, orders, side="right") - 1
        known = (run_indices >= 0) & (orders <= lasts[run_indices])
        return RowPlaces(
            orders,
            np.where(known, lows[run_indices], UNKNOWN_PLACE),
            np.where(known, highs[run_indices], UNKNOWN_PLACE),
        )

    def to_json(self) -> list[Run]:
        """Returns the runs that commits record, as a list."""
        return list(self.runs)

    @staticmethod
    def from_json(said: Iterable[Sequence[int]]) -> SnapshotPlaces:
        """The reverse of ``to_json``. Raises ValueError, TypeError for other data."""
        return SnapshotPlaces(tuple((int(a), int(b), int(c), int(d)) for a, b, c, d in said))


NO_SNAPSHOTS = SnapshotPlaces()


def _united(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Ascending runs without overlap: those that overlap, or follow one another with one and the same place, are
    united; of too many, the older half is united by pairs."""
    united_runs: list[Run] = []
    for run in runs:
        if united_runs and (run[0] <= united_runs[-1][1] or (united_runs[-1][2:] == run[2:] and run[2] == run[3])):
            united_runs[-1] = _union(united_runs[-1], run)
        else:
            united_runs.append(run)
    while len(united_runs) > _MOST_RUNS:
        old, new = united_runs[: _MOST_RUNS // 2], united_runs[_MOST_RUNS // 2 :]
        united_runs = [_union(*pair) for pair in zip(old[::2], old[1::2], strict=True)] + new
    return tuple(united_runs)


def _union(one: Run, other: Run) -> Run:
    return one[0], max(one[1], other[1]), min(one[2], other[2]), max(one[3], other[3])
