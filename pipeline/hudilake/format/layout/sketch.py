"""A sample of the rows of a partition, taken while they pass: every row has the same chance to be in it.

A *partition* is what one task reads: a file slice. How many rows it has is known at its end, together with its sample.
The rows that are taken depend on the seed and on their places in the partition, not on the batches in which they come.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.compiled import DOUBLE, DOUBLES, LONG, LONGS, NOTHING, ULONGS, compiled
from hudilake.format.layout.direct import comparable
from hudilake.format.layout.order import Order

#: So many rows of all partitions together are wanted in samples: a bound is then at most about 1 % of them away.
SAMPLE_ROWS: Final = 65_536
#: Partitions are sampled with so many times their equal share, because they are not equally large.
OVERSAMPLING: Final = 2
#: The least rows of the sample of a partition.
LEAST_ROWS: Final = 32
#: Texts are compared by so many bytes; samples and bounds stay small.
TEXT_BYTES: Final = 512

#: Rows that are drawn at once.
_DRAWN: Final = 65_536

_Longs = npt.NDArray[np.int64]
_Ulongs = npt.NDArray[np.uint64]
_Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sketch:
    """What is known of the values in a partition. Picklable.

    Args:
        rows: how many rows it has.
        sample: values of some of its rows, by the order's columns: uint64 or large_binary, as ``comparable`` makes
            them.
    """

    rows: int
    sample: pa.Table

    @property
    def weight(self) -> float:
        """How many rows of the partition a row of the sample stands for; 0 if there is none."""
        return self.rows / self.sample.num_rows if self.sample.num_rows else 0.0


def sample_size(partitions: int) -> int:
    """How many rows of each of so many partitions are sampled at first."""
    return max(LEAST_ROWS, -(-OVERSAMPLING * SAMPLE_ROWS // max(partitions, 1)))


def sketch(order: Order, batches: Iterable[pa.Table], seed: int, size: int = SAMPLE_ROWS) -> Sketch:
    """Sample a partition.

    Args:
        order: whose columns are sampled, and whose seed counts.
        batches: the partition's rows with the order's columns, in any pieces.
        seed: the partition's own; for example its number in the plan.
        size: the most rows of the sample; from ``sample_size``, or from ``heavy``.

    Raises UnsupportedError for a column whose type has no order.
    """
    reservoir = _Reservoir(size, order.seed, seed)
    for batch in batches:
        reservoir.add(batch.select(order.columns))
    return Sketch(reservoir.seen, reservoir.sample(order.columns))


def heavy(sketches: list[Sketch]) -> dict[int, int]:
    """The partitions whose samples are too small for their rows, by number, each with the size of a sample that fits.

    Sample these again. A row of a large partition would otherwise stand for many more rows than one of a small
    partition, and bounds among its values would be inexact.
    """
    rows = max(SAMPLE_ROWS, sum(one.rows for one in sketches))
    shares = {number: -(-one.rows * SAMPLE_ROWS // rows) for number, one in enumerate(sketches)}
    return {number: share for number, share in shares.items() if share > sketches[number].sample.num_rows}


class _Reservoir:
    """Some of the rows that were added, each with the same chance.

    The method is Algorithm L of K.-H. Li, "Reservoir-sampling algorithms of time complexity O(n(1+log(N/n)))" (1994):
    it draws how many rows are skipped, and looks at no row that is not taken.
    """

    def __init__(self, size: int, *seeds: int) -> None:
        self._size = size
        digest = hashlib.blake2b(repr(seeds).encode(), digest_size=8).digest()
        self._random = np.array([int.from_bytes(digest, "little")], dtype=np.uint64)
        self._threshold = np.zeros(1, dtype=np.float64)
        #: The number of the next row that is taken, once the sample is full.
        self._next = np.array([size - 1], dtype=np.int64)
        _skip(self._random, self._threshold, self._next, size)
        self._kept: list[pa.Table] = []
        self._kept_rows = 0
        #: Where each row of the sample is in the rows that were kept.
        self._at = np.empty(0, dtype=np.int64)
        self.seen = 0

    def add(self, batch: pa.Table) -> None:
        """Take some rows of a batch."""
        first = min(self._size - len(self._at), batch.num_rows)
        drawn_slots, drawn_rows = self._drawn(self.seen + batch.num_rows)
        slots = np.concatenate((np.arange(len(self._at), len(self._at) + first), drawn_slots))
        rows = np.concatenate((np.arange(first), drawn_rows - self.seen))
        self.seen += batch.num_rows
        if not len(rows):
            return
        self._at = np.concatenate((self._at, np.zeros(first, dtype=np.int64)))
        self._at[slots] = self._kept_rows + np.arange(len(slots))  # the last one counts if a place is taken twice
        self._kept.append(_comparables(batch.take(pa.array(rows))))
        self._kept_rows += len(rows)
        if self._kept_rows > 2 * self._size:
            self._forget_replaced()

    def sample(self, columns: tuple[str, ...]) -> pa.Table:
        """The rows that are taken by now."""
        if not self._kept:
            return pa.table({name: pa.array([], pa.uint64()) for name in columns})
        self._forget_replaced()
        return self._kept[0]

    def _drawn(self, end: int) -> tuple[_Longs, _Longs]:
        """Places in the sample, and the numbers of the rows before ``end`` that go there."""
        slots, rows = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        while self._next[0] < end:
            some_slots, some_rows = np.empty(_DRAWN, dtype=np.int64), np.empty(_DRAWN, dtype=np.int64)
            count = _draw(self._random, self._threshold, self._next, self._size, end, some_slots, some_rows)
            slots.append(some_slots[:count])
            rows.append(some_rows[:count])
        return np.concatenate(slots), np.concatenate(rows)

    def _forget_replaced(self) -> None:
        kept = pa.concat_tables(self._kept).combine_chunks().take(pa.array(self._at))
        self._kept, self._kept_rows = [kept], len(self._at)
        self._at = np.arange(len(self._at), dtype=np.int64)


def _comparables(rows: pa.Table) -> pa.Table:
    columns = [
        pa.chunked_array(
            [comparable(chunk, TEXT_BYTES) for chunk in column.chunks] or [comparable(pa.array([], column.type))]
        )
        for column in rows.columns
    ]
    return pa.Table.from_arrays(columns, names=rows.column_names)


@compiled(DOUBLE(ULONGS))
def _uniform(random: _Ulongs) -> float:
    """A number between 0 and 1, neither of them: splitmix64, whose state is ``random``."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    value = random[0]
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    value ^= value >> np.uint64(31)
    return (float(value >> np.uint64(11)) + 0.5) * 2.0**-53


@compiled(NOTHING(ULONGS, DOUBLES, LONGS, LONG))
def _skip(random: _Ulongs, threshold: _Doubles, after: _Longs, size: int) -> None:
    """Go on to the next row that is taken. ``threshold``: the logarithm of the greatest of ``size`` uniform numbers."""
    threshold[0] += math.log(_uniform(random)) / size
    skipped = math.log(_uniform(random)) / math.log1p(-math.exp(threshold[0]))
    after[0] += 1 + int(min(skipped, 2.0**61))


@compiled(LONG(ULONGS, DOUBLES, LONGS, LONG, LONG, LONGS, LONGS))
def _draw(random: _Ulongs, threshold: _Doubles, after: _Longs, size: int, end: int, slots: _Longs, rows: _Longs) -> int:
    """The rows before ``end`` that are taken, at most as many as ``slots`` holds. Returns how many."""
    count = 0
    while after[0] < end and count < len(slots):
        slots[count], rows[count] = int(_uniform(random) * size), after[0]
        count += 1
        _skip(random, threshold, after, size)
    return count
