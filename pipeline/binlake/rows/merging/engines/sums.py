"""Exact sums by key: whole numbers and decimals are added in limbs of 32 bits, so that an overflow is always seen."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from binlake.rows.upsert.collapse import Int64s

_LIMB: Final = 32
_MASK: Final = np.int64((1 << _LIMB) - 1)


def signed_sums(values: pa.ChunkedArray, signs: Int64s, starts: Int64s, onto: pa.ChunkedArray) -> pa.Array:
    """The sums of n values by key, added to what is known.

    Args:
        values: n of a LONG, decimal or double type; null adds nothing.
        signs: int64 of n, 1 or -1 (0 leaves a value out).
        starts: int64 of m, the first value of each key; at most 2**31 values are of one key.
        onto: m values of the same type; null is 0.

    Raises OverflowError where the type cannot hold a sum.
    """
    if pa.types.is_floating(values.type):
        parts = np.asarray(values.fill_null(0.0).to_numpy(), dtype=np.float64) * signs
        return pa.array(np.add.reduceat(parts, starts) + onto.fill_null(0.0).to_numpy(), values.type)
    limbs = np.add.reduceat(_limbs(values) * signs, starts, axis=1) + _limbs(onto)
    for index in range(len(limbs) - 1):
        limbs[index + 1] += limbs[index] >> _LIMB
        limbs[index] &= _MASK
    if (limbs[-1] != (limbs[-1] << _LIMB) >> _LIMB).any():
        raise OverflowError
    words = (limbs[1::2] << _LIMB) | limbs[::2]
    if len(words) == 1:
        return pa.array(words[0], values.type)
    data = pa.py_buffer(np.ascontiguousarray(words.T).tobytes())
    result = pa.Array.from_buffers(values.type, words.shape[1], [None, data])
    try:
        result.validate(full=True)  # more digits than the type has
    except pa.ArrowInvalid as error:
        raise OverflowError from error
    return result


def _limbs(values: pa.ChunkedArray) -> Int64s:
    """n numbers as limbs, int64 (limbs, n), the lowest first; the highest has the sign."""
    array = values.combine_chunks()
    if pa.types.is_decimal(array.type):
        data = np.frombuffer(array.buffers()[1], dtype=np.int64) if len(array) else np.empty(0, dtype=np.int64)
        words = data[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2).T
        words = np.where(np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_), words, 0)
    else:
        words = np.asarray(array.fill_null(0).to_numpy(), dtype=np.int64)[None, :]
    limbs = np.empty((2 * len(words), words.shape[1]), dtype=np.int64)
    limbs[::2], limbs[1::2] = words & _MASK, (words >> _LIMB) & _MASK
    limbs[-1] = words[-1] >> _LIMB
    return limbs
