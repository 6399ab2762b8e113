"""Ranges of the values of columns that hold about equally many rows, by samples; and the numbers of values by them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.compiled import DOUBLE, DOUBLES, LONG, LONGS, compiled
from hudilake.format.layout.direct import Ulongs, comparable, nulls_of
from hudilake.format.layout.order import Order
from hudilake.format.layout.search import ranges_of
from hudilake.format.layout.sketch import Sketch

#: The most ranges of a column.
_MOST_RANGES: Final = 8192
#: The bits of a value's number, so that four columns fit into one word; fewer if there are more columns.
_MOST_BITS: Final = 16
_LEAST_BITS: Final = 8
_WORD_BITS: Final = 64
#: How often the interval is halved that holds the weight of a range.
_HALVINGS: Final = 50

_Doubles = npt.NDArray[np.float64]
_Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OrderColumnBounds:
    """The ranges of a column. Picklable.

    Args:
        bounds: the least value of every range but the first, ascending: uint64 or large_binary, as ``comparable`` makes
            them.
        nulls: whether nulls are a range of their own, before all others.
        middles: where the middle of each range is if all rows are in their order, 0 to 1, ascending.
    """

    bounds: pa.Array
    nulls: bool
    middles: _Doubles

    @property
    def ranges(self) -> int:
        """How many there are, at least 1."""
        return len(self.middles)

    def ranges_of(self, values: pa.Array) -> _Longs:
        """Each value's range, from 0 on, int64 of n; that of null is 0.

        Args:
            values: n values.

        Raises UnsupportedError if values of this type have no order.
        """
        compared = comparable(values)
        if compared.type != self.bounds.type and len(self.bounds):
            raise ValueError(f"ranges of {self.bounds.type} do not divide values of the type {values.type}")
        range_numbers = ranges_of(compared, self.bounds) + self.nulls
        return np.where(nulls_of(compared), 0, range_numbers) if compared.null_count else range_numbers


@dataclass(frozen=True, slots=True)
class OrderBounds:
    """The ranges of an order's columns. Picklable.

    Args:
        columns: by name, in the order's order.
        bits: of a value's number.
    """

    columns: dict[str, OrderColumnBounds]
    bits: int

    def numbers(self, rows: pa.Table) -> Ulongs:
        """The numbers of values, uint64 of columns x n, of ``bits`` bits each.

        The ranges of every column are spread over all numbers (their fill factor), whether there are two or thousands,
        by the rows that they hold: the highest bit of a number divides the rows into halves, as far as ranges allow.
        A range with many rows differs from the others in few bits, and takes no bits from them.

        Args:
            rows: n rows with the columns.
        """
        numbers = np.empty((len(self.columns), rows.num_rows), dtype=np.uint64)
        for place, (name, column) in enumerate(self.columns.items()):
            spread = np.minimum(column.middles * (1 << self.bits), (1 << self.bits) - 1).astype(np.uint64)
            done = 0
            for chunk in rows.column(name).chunks:
                numbers[place, done : done + len(chunk)] = spread[column.ranges_of(chunk)]
                done += len(chunk)
        return numbers


def bounds_of(order: Order, sketches: Sequence[Sketch]) -> OrderBounds | None:
    """The ranges of an order's columns; None if the order does not number values by ranges.

    Args:
        order: the wanted one.
        sketches: of all partitions, those of heavy ones taken again.
    """
    if not order.sampled:
        return None
    taken = [one for one in sketches if one.sample.num_rows]
    weights = np.repeat([one.weight for one in taken], [one.sample.num_rows for one in taken])
    columns = {}
    for name in order.columns:
        chunks = [chunk for one in taken for chunk in one.sample.column(name).chunks]
        candidates = pa.chunked_array(chunks, chunks[0].type if chunks else pa.uint64())
        columns[name] = column_bounds(candidates, weights, _MOST_RANGES)
    return OrderBounds(columns, min(_MOST_BITS, max(_LEAST_BITS, _WORD_BITS // len(order.columns))))


def column_bounds(candidates: pa.ChunkedArray, weights: _Doubles, most: int) -> OrderColumnBounds:
    """Ranges that hold about equally many rows.

    A value that has more rows than its share is a range of its own, and so are nulls. The others are packed into ranges
    whose greatest weight is as small as possible.

    Args:
        candidates: the n values of a sample, as ``comparable`` makes them.
        weights: how many rows each of them stands for.
        most: the most ranges, at least 2.
    """
    valid = np.flatnonzero(np.asarray(pc.is_valid(candidates).to_numpy(), dtype=np.bool_))
    values = candidates.combine_chunks().take(pa.array(valid))
    order = pc.sort_indices(values)
    ordered = values.take(order)
    new = np.ones(len(ordered), dtype=np.bool_)
    new[1:] = np.asarray(pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False), dtype=np.bool_)
    starts = np.flatnonzero(new)
    null_weight = float(weights.sum() - weights[valid].sum())
    if not len(starts):
        return OrderColumnBounds(ordered, False, np.array([0.5]))
    nulls = len(valid) < len(candidates)
    held = np.add.reduceat(weights[valid][order.to_numpy()], starts)
    firsts = _packed(held, most - nulls)
    held = np.concatenate(([null_weight] if nulls else [], np.add.reduceat(held, firsts)))
    return OrderColumnBounds(ordered.take(pa.array(starts[firsts[1:]])), nulls, (held.cumsum() - held / 2) / held.sum())


def _packed(weights: _Doubles, most: int) -> _Longs:
    """The first value of each range, at most ``most``.

    Args:
        weights: of the values, in their order.
        most: at least 1.
    """
    firsts = np.empty(len(weights), dtype=np.int64)
    low, high = 0.0, float(weights.sum()) * 2
    if len(weights) <= most:
        high = low
    for _ in range(_HALVINGS if high else 0):
        middle = (low + high) / 2
        low, high = (low, middle) if _pack(weights, middle, firsts) <= most else (middle, high)
    return firsts[: _pack(weights, high, firsts)]


@compiled(LONG(DOUBLES, DOUBLE, LONGS))
def _pack(weights: _Doubles, room: float, firsts: _Longs) -> int:
    """Values go to a range as long as it has room. Returns how many ranges they need."""
    count, filled = 0, math.inf
    for value in range(len(weights)):
        if filled + weights[value] > room:
            firsts[count] = value
            count, filled = count + 1, 0.0
        filled += weights[value]
    return count
