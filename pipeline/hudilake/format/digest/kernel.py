"""The inner loops of row digests, compiled by numba: cells mixed into the digests of their rows, digests summed.

A digest has two halves of 64 bits. Each cell is mixed with the seed of its column and added to both halves of its row,
so columns come in any order; null adds nothing. ``finish`` mixes what was added, so that sums of rows are no sums of
cells: values that are swapped between two rows change the sum.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from hudilake.compiled import BYTES, IN_ULONGS, LONGS, NOTHING, ULONG, ULONGS, compiled

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Ulongs = npt.NDArray[np.uint64]

# Odd numbers with bits in no order: the first digits of the square roots of 2, 3, 5, 7 and 11.
_A, _B = np.uint64(0x6A09E667F3BCC909), np.uint64(0xBB67AE8584CAA73B)
_C, _D, _E = np.uint64(0x3C6EF372FE94F82B), np.uint64(0xA54FF53A5F1D36F1), np.uint64(0x510E527FADE682D1)
_29, _31, _32 = np.uint64(29), np.uint64(31), np.uint64(32)
_8, _16, _24, _40, _48, _56 = (np.uint64(bits) for bits in (8, 16, 24, 40, 48, 56))


@njit(nogil=True, inline="always")
def _mixed(word: np.uint64) -> np.uint64:
    word = (word ^ (word >> _32)) * _A
    word = (word ^ (word >> _29)) * _B
    return word ^ (word >> _32)


@njit(nogil=True, inline="always")
def _eight(data: Bytes, start: int) -> np.uint64:
    return (
        np.uint64(data[start])
        | np.uint64(data[start + 1]) << _8
        | np.uint64(data[start + 2]) << _16
        | np.uint64(data[start + 3]) << _24
        | np.uint64(data[start + 4]) << _32
        | np.uint64(data[start + 5]) << _40
        | np.uint64(data[start + 6]) << _48
        | np.uint64(data[start + 7]) << _56
    )


@compiled(NOTHING(IN_ULONGS, BYTES, ULONG, ULONGS, ULONGS))
def add_words(words: Ulongs, valid: Bytes, seed: int, low: Ulongs, high: Ulongs) -> None:
    """Add a column of n words to n rows. ``valid``: n flags, or none if no cell is null."""
    every = len(valid) == 0
    for row in range(len(words)):
        if every or valid[row]:
            mixed = _mixed((words[row] ^ seed) * _C + seed)
            low[row] += mixed
            high[row] += (mixed ^ (mixed >> _31)) * _D


@compiled(NOTHING(BYTES, LONGS, BYTES, ULONG, ULONGS, ULONGS))
def add_bytes(data: Bytes, bounds: Longs, valid: Bytes, seed: int, low: Ulongs, high: Ulongs) -> None:
    """Add a column of n byte strings to n rows. ``bounds``: n + 1: where each begins in ``data``, and the last's end.
    ``valid`` as ``add_words``."""
    every = len(valid) == 0
    for row in range(len(bounds) - 1):
        if every or valid[row]:
            start, end = bounds[row], bounds[row + 1]
            state = seed ^ (np.uint64(end - start) * _E)
            while end - start >= 8:
                state = (state ^ _eight(data, start)) * _A
                state ^= state >> _29
                start += 8
            rest = np.uint64(0)
            while start < end:
                rest = rest << _8 | np.uint64(data[start])
                start += 1
            mixed = _mixed((state ^ rest) * _C + seed)
            low[row] += mixed
            high[row] += (mixed ^ (mixed >> _31)) * _D


@compiled(NOTHING(ULONGS, ULONGS))
def finish(low: Ulongs, high: Ulongs) -> None:
    """Make digests of what was added to n rows."""
    for row in range(len(low)):
        one, two = _mixed(low[row] + _E), _mixed(high[row] + _C)
        low[row] = _mixed(one ^ two * _D)
        high[row] = _mixed(two ^ one * _A)
