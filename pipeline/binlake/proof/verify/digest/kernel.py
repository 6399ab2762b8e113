"""The inner loops, compiled by numba: row packets cut into cells, cells laid out as canonical rows, rows hashed.

All loops are in one module because numba compiles a function again when the function's own module has changed, but not
when a module that it calls has changed. The hash is MurmurHash3 x64 128 (Austin Appleby, public domain), seed 0; tests
compare it with ``mmh3``, which hashes one Python object a call.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from hudilake.compiled import BYTES, LONG, LONG_ROWS, LONGS, NOTHING, OUT_BYTES, ULONGS, compiled

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Ulongs = npt.NDArray[np.uint64]

#: Bytes before each cell of a canonical row: its length, or all ones for null.
CELL_HEAD = 8
_NULL_CELL = 0xFB
#: First bytes of a length of 2, 3 and 8 bytes (MySQL's protocol, "length-encoded integer").
_TWO, _THREE, _EIGHT = 0xFC, 0xFD, 0xFE
_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_ADD1, _ADD2, _FIVE = np.uint64(0x52DCE729), np.uint64(0x38495AB5), np.uint64(5)
_MIX1, _MIX2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_33 = np.uint64(33)


@compiled(LONG(BYTES, LONGS, LONG_ROWS, LONG_ROWS))
def cut_packets(data: Bytes, bounds: Longs, starts: Longs, lengths: Longs) -> int:
    """Find the cells of n row packets of c cells each, in MySQL's text protocol.

    Args:
        data: the packets, one after the other.
        bounds: int64 array of n + 1: where each packet begins, and the end of the last one.
        starts, lengths: int64 arrays of (c, n) to fill; a length of -1 stands for null.

    Returns the number of packets that were cut: less than n if the next one is not a row of c cells.
    """
    for row in range(len(bounds) - 1):
        offset, end = bounds[row], bounds[row + 1]
        for column in range(starts.shape[0]):
            if offset >= end:
                return row
            first = data[offset]
            offset += 1
            if first == _NULL_CELL:
                starts[column, row], lengths[column, row] = offset, -1
                continue
            size = np.int64(first)
            if first >= _TWO:
                width = 2 if first == _TWO else 3 if first == _THREE else 8
                if first > _EIGHT or offset + width > end:
                    return row
                size = np.int64(0)
                for i in range(width):
                    size |= np.int64(data[offset + i]) << (8 * i)
                offset += width
            if size < 0 or size > end - offset:
                return row
            starts[column, row], lengths[column, row] = offset, size
            offset += size
        if offset != end:
            return row
    return len(bounds) - 1


@compiled(NOTHING(BYTES, LONGS, LONGS, OUT_BYTES))
def copy_cells(data: Bytes, starts: Longs, lengths: Longs, out: Bytes) -> None:
    """Copy the cells of one column into ``out``, one after the other; null cells take no place."""
    offset = 0
    for row in range(len(starts)):
        for i in range(lengths[row]):
            out[offset + i] = data[starts[row] + i]
        offset += max(lengths[row], 0)


@compiled(NOTHING(BYTES, LONGS, LONGS, OUT_BYTES, LONGS))
def append_cells(data: Bytes, starts: Longs, lengths: Longs, out: Bytes, ends: Longs) -> None:
    """Append one cell to each of n canonical rows: eight bytes with its length, then its bytes.

    ``ends``: where each row ends so far in ``out``; is moved on.
    """
    for row in range(len(starts)):
        offset, length = ends[row], lengths[row]
        for i in range(8):
            out[offset + i] = (length >> (8 * i)) & 0xFF
        offset += 8
        for i in range(length):
            out[offset + i] = data[starts[row] + i]
        ends[row] = offset + max(length, 0)


@njit(nogil=True, inline="always")
def _word(data: Bytes, at: int, count: int) -> np.uint64:
    word = np.uint64(0)
    for i in range(count):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return word


@njit(nogil=True, inline="always")
def _rotated(word: np.uint64, by: int) -> np.uint64:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@njit(nogil=True, inline="always")
def _mixed(word: np.uint64) -> np.uint64:
    word = (word ^ (word >> _33)) * _MIX1
    word = (word ^ (word >> _33)) * _MIX2
    return word ^ (word >> _33)


@compiled(NOTHING(BYTES, LONGS, ULONGS, ULONGS))
def hash_rows(data: Bytes, bounds: Longs, low: Ulongs, high: Ulongs) -> None:
    """MurmurHash3 x64 128 of n byte strings that lie one after the other.

    ``bounds``: int64 array of n + 1. ``low``, ``high``: uint64 arrays of n to fill.
    """
    for row in range(len(bounds) - 1):
        offset, length = bounds[row], bounds[row + 1] - bounds[row]
        one, two = np.uint64(0), np.uint64(0)
        for _ in range(length // 16):
            one ^= _rotated(_word(data, offset, 8) * _C1, 31) * _C2
            one = (_rotated(one, 27) + two) * _FIVE + _ADD1
            two ^= _rotated(_word(data, offset + 8, 8) * _C2, 33) * _C1
            two = (_rotated(two, 31) + one) * _FIVE + _ADD2
            offset += 16
        rest = length % 16
        if rest > 8:
            two ^= _rotated(_word(data, offset + 8, rest - 8) * _C2, 33) * _C1
        if rest > 0:
            one ^= _rotated(_word(data, offset, min(rest, 8)) * _C1, 31) * _C2
        one ^= np.uint64(length)
        two ^= np.uint64(length)
        one += two
        two += one
        one, two = _mixed(one), _mixed(two)
        one += two
        two += one
        low[row], high[row] = one, two


@compiled(NOTHING(LONGS, ULONGS, ULONGS, LONGS, ULONGS, ULONGS))
def add_to_ranges(place: Longs, low: Ulongs, high: Ulongs, counts: Longs, sums: Ulongs, high_sums: Ulongs) -> None:
    """Add n digests to the sums of their ranges (modulo 2**64 for each half): the order of rows does not matter.

    ``place``: int64 array of n, the range of each row.
    """
    for row in range(len(place)):
        range_index = place[row]
        counts[range_index] += 1
        sums[range_index] += low[row]
        high_sums[range_index] += high[row]
