"""The inner loops over HFile entries, compiled by numba: entries laid out in a block, found in it, and keys matched."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hudilake.compiled import BYTES, LONG, LONGS, NOTHING, OUT_BYTES, compiled

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

#: Bytes of ``layout.ENTRY_HEAD`` and ``layout.KEY_TAIL``.
_HEAD, _TAIL = 10, 10


@compiled(LONG(BYTES, LONGS, LONGS, LONGS, LONGS))
def find_entries(data: Bytes, key_starts: Longs, key_sizes: Longs, value_starts: Longs, value_sizes: Longs) -> int:
    """Where the keys and values of a data block's entries are.

    Args:
        data: the block's bytes.
        key_starts, key_sizes, value_starts, value_sizes: int64 arrays to fill, long enough for any such block.

    Returns the number of entries, -1 for a damaged block.
    """
    end, offset, count = len(data), 0, 0
    while offset < end:
        if offset + _HEAD > end or count == len(key_starts):
            return -1
        key_size = value_size = 0
        for i in range(4):
            key_size = key_size << 8 | data[offset + i]
            value_size = value_size << 8 | data[offset + 4 + i]
        row_size = data[offset + 8] << 8 | data[offset + 9]
        start = offset + 8 + key_size
        stop = start + value_size
        if stop >= end or offset + _HEAD + row_size > start:
            return -1
        key_starts[count], key_sizes[count] = offset + _HEAD, row_size
        value_starts[count], value_sizes[count] = start, value_size
        first = data[stop]
        signed = first - 256 if first > 127 else first
        offset = stop + (1 if signed >= -112 else (-119 - signed if signed < -120 else -111 - signed))
        count += 1
    return count


@compiled(NOTHING(BYTES, LONGS, LONGS, OUT_BYTES))
def gather(data: Bytes, starts: Longs, sizes: Longs, out: Bytes) -> None:
    """Copy n pieces of bytes, one after the other."""
    offset = 0
    for i in range(len(starts)):
        start = starts[i]
        for j in range(sizes[i]):
            out[offset + j] = data[start + j]
        offset += sizes[i]


@compiled(NOTHING(BYTES, LONGS, BYTES, LONGS, LONGS, OUT_BYTES))
def write_entries(
    keys: Bytes, key_offsets: Longs, values: Bytes, value_offsets: Longs, codes: Longs, out: Bytes
) -> None:
    """Lay out the n entries of a data block.

    Args:
        keys, key_offsets: the keys' bytes, and int64 array of n + 1.
        values, value_offsets: the bytes of m distinct values, and int64 array of m + 1.
        codes: int64 array of n, the number of each entry's value.
        out: as long as the entries.
    """
    offset = 0
    for i in range(len(codes)):
        row = key_offsets[i + 1] - key_offsets[i]
        first, last = value_offsets[codes[i]], value_offsets[codes[i] + 1]
        size = row + 2 + _TAIL
        for j in range(4):
            out[offset + j] = size >> (24 - 8 * j) & 0xFF
            out[offset + 4 + j] = (last - first) >> (24 - 8 * j) & 0xFF
        out[offset + 8], out[offset + 9] = row >> 8, row & 0xFF
        offset += _HEAD
        for j in range(row):
            out[offset + j] = keys[key_offsets[i] + j]
        offset += row
        out[offset], out[offset + 1] = 0, 0x7F
        for j in range(7):
            out[offset + 2 + j] = 0xFF
        out[offset + 9] = 4
        offset += _TAIL
        for j in range(last - first):
            out[offset + j] = values[first + j]
        offset += last - first
        out[offset] = 0
        offset += 1


@compiled(LONG(BYTES, LONG, LONG, BYTES, LONG, LONG))
def _compare(one: Bytes, one_start: int, one_end: int, other: Bytes, other_start: int, other_end: int) -> int:
    size = min(one_end - one_start, other_end - other_start)
    for i in range(size):
        difference = int(one[one_start + i]) - int(other[other_start + i])
        if difference:
            return difference
    return (one_end - one_start) - (other_end - other_start)


@compiled(NOTHING(BYTES, LONGS, BYTES, LONGS, LONGS))
def match(wanted: Bytes, wanted_offsets: Longs, keys: Bytes, offsets: Longs, places: Longs) -> None:
    """The index of each of n wanted keys among m keys, -1 where it is not among them.

    Args:
        wanted, wanted_offsets: bytes, and int64 array of n + 1; ascending by bytes.
        keys, offsets: bytes, and int64 array of m + 1; strictly ascending by bytes.
        places: int64 array of n to fill.
    """
    count, low = len(offsets) - 1, 0
    for i in range(len(wanted_offsets) - 1):
        start, end = wanted_offsets[i], wanted_offsets[i + 1]
        step, high = 1, low
        while high < count and _compare(keys, offsets[high], offsets[high + 1], wanted, start, end) < 0:
            low = high + 1
            high += step
            step *= 2
        high = min(high, count)
        while low < high:
            middle = (low + high) >> 1
            if _compare(keys, offsets[middle], offsets[middle + 1], wanted, start, end) < 0:
                low = middle + 1
            else:
                high = middle
        is_equal = low < count and _compare(keys, offsets[low], offsets[low + 1], wanted, start, end) == 0
        places[i] = low if is_equal else -1


@compiled(LONG(BYTES, LONGS))
def first_disorder(keys: Bytes, offsets: Longs) -> int:
    """The index of the first key that is not greater than the key before it; -1 if there is none."""
    for i in range(1, len(offsets) - 1):
        if _compare(keys, offsets[i - 1], offsets[i], keys, offsets[i], offsets[i + 1]) >= 0:
            return i
    return -1


@compiled(NOTHING(BYTES, LONGS, BYTES, LONGS, LONGS))
def lower_bounds(wanted: Bytes, wanted_offsets: Longs, keys: Bytes, offsets: Longs, places: Longs) -> None:
    """For each of n wanted keys, how many of m keys are less. Arguments as ``match``."""
    count = len(offsets) - 1
    for i in range(len(wanted_offsets) - 1):
        low, high = 0, count
        while low < high:
            middle = (low + high) >> 1
            if (
                _compare(keys, offsets[middle], offsets[middle + 1], wanted, wanted_offsets[i], wanted_offsets[i + 1])
                < 0
            ):
                low = middle + 1
            else:
                high = middle
        places[i] = low
