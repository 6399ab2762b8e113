"""The numbers of the ranges into which sorted bounds divide values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.compiled import BYTES, LONG, LONGS, NOTHING, compiled
from pipeline.hudi.definition.xxhash32 import utf8_of

_Longs = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]


def ranges_of(values: pa.Array, bounds: pa.Array) -> _Longs:
    """How many bounds are not above each value, int64 of n; anything where a value is null.

    Args:
        values: n values: uint64 or large_binary, as ``comparable`` makes them.
        bounds: of the same type, ascending, without nulls and duplicates.
    """
    if not len(bounds):
        return np.zeros(len(values), dtype=np.int64)
    if values.type == pa.uint64():
        numbers, marks = (np.asarray(every.to_numpy(), dtype=np.uint64) for every in (values.fill_null(0), bounds))
        return np.searchsorted(marks, numbers, side="right").astype(np.int64, copy=False)
    found = np.empty(len(values), dtype=np.int64)
    _search(*utf8_of(values), *utf8_of(bounds), found)
    return found


@compiled(LONG(BYTES, LONG, LONG, BYTES, LONG, LONG, LONG))
def _shared(left: _Bytes, left_at: int, left_end: int, right: _Bytes, right_at: int, right_end: int, known: int) -> int:
    """How many first bytes are equal, ``known`` of which are known to be."""
    most = min(left_end - left_at, right_end - right_at)
    count = known
    while count < most and left[left_at + count] == right[right_at + count]:
        count += 1
    return count


@compiled(NOTHING(BYTES, LONGS, BYTES, LONGS, LONGS))
def _search(data: _Bytes, offsets: _Longs, bounds: _Bytes, bound_offsets: _Longs, found: _Longs) -> None:
    """A binary search for each value. The bytes that a value shares with both ends of a stretch of bounds, it shares
    with all bounds between them: they are not compared again."""
    count = len(bound_offsets) - 1
    for row in range(len(found)):
        at, end = offsets[row], offsets[row + 1]
        low, high = 0, count  # the bounds before low are not above the value; those from high on are
        low_shared, high_shared = 0, 0
        while low < high:
            middle = (low + high) >> 1
            bound_at, bound_end = bound_offsets[middle], bound_offsets[middle + 1]
            shared = _shared(data, at, end, bounds, bound_at, bound_end, min(low_shared, high_shared))
            if bound_at + shared == bound_end or (at + shared < end and bounds[bound_at + shared] < data[at + shared]):
                low, low_shared = middle + 1, shared
            else:
                high, high_shared = middle, shared
        found[row] = low
