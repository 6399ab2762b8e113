"""The place of points on a curve through a space of any number of dimensions: z-order and Hilbert.

A place is a string of columns x bits bits. It fills words of 64 bits from the highest bit of the first one on.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from hudilake.compiled import LONG, NOTHING, ULONG_ROWS, compiled

Ulongs = npt.NDArray[np.uint64]
_WORD_BITS: Final = 64


def z_order(numbers: Ulongs, bits: int) -> Ulongs:
    """The bits of all columns interleaved, the highest first, the first column's before the next one's.

    Args:
        numbers: columns x n.
        bits: how many lower bits of a number are used, 1 to 64; the others are 0.

    Returns words x n, as many words as the bits need.
    """
    columns, rows = numbers.shape
    places = np.empty((-(-columns * bits // _WORD_BITS), rows), dtype=np.uint64)
    _interleave(np.ascontiguousarray(numbers), bits, places)
    return places


def hilbert(numbers: Ulongs, bits: int) -> Ulongs:
    """The places of points on the Hilbert curve: neighbours on it differ by 1 in one column.

    Args and return value as those of ``z_order``. The method is that of J. Skilling, "Programming the Hilbert curve"
    (AIP Conference Proceedings 707, 2004).
    """
    axes = np.array(numbers, order="C")
    _hilbert_axes(axes, bits)
    return z_order(axes, bits)


@compiled(NOTHING(ULONG_ROWS, LONG, ULONG_ROWS))
def _interleave(numbers: Ulongs, bits: int, places: Ulongs) -> None:
    columns, rows = numbers.shape
    for row in range(rows):
        word, free, value = 0, _WORD_BITS, np.uint64(0)
        for level in range(bits - 1, -1, -1):
            for column in range(columns):
                free -= 1
                value |= ((numbers[column, row] >> np.uint64(level)) & np.uint64(1)) << np.uint64(free)
                if free == 0:
                    places[word, row] = value
                    word, free, value = word + 1, _WORD_BITS, np.uint64(0)
        if free < _WORD_BITS:
            places[word, row] = value


@compiled(NOTHING(ULONG_ROWS, LONG))
def _hilbert_axes(axes: Ulongs, bits: int) -> None:
    """Points are replaced by numbers whose interleaved bits are the places."""
    columns, rows = axes.shape
    for row in range(rows):
        # From the highest level down: turn and mirror the cube of the level below, as the curve enters it.
        for level in range(bits - 1, 0, -1):
            lower = (np.uint64(1) << np.uint64(level)) - np.uint64(1)
            for column in range(columns):
                # Mirrored if the bit is set, otherwise swapped with the first column; without a jump.
                mirror = np.uint64(0) - ((axes[column, row] >> np.uint64(level)) & np.uint64(1))
                swapped = (axes[0, row] ^ axes[column, row]) & lower & ~mirror
                axes[0, row] ^= swapped ^ (lower & mirror)
                axes[column, row] ^= swapped
        # The numbers are now a Gray code across the columns; it is decoded.
        for column in range(1, columns):
            axes[column, row] ^= axes[column - 1, row]
        flip = np.uint64(0)
        for level in range(bits - 1, 0, -1):
            lower = (np.uint64(1) << np.uint64(level)) - np.uint64(1)
            flip ^= lower & (np.uint64(0) - ((axes[columns - 1, row] >> np.uint64(level)) & np.uint64(1)))
        for column in range(columns):
            axes[column, row] ^= flip
