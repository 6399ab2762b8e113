"""Values as uint64 or bytes that compare as the values do, however long they are."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from hudilake.format.layout.direct import LONG_DIGITS, Ulongs, decimal_words, direct, flat, is_text, nulls_of

_SIGN: Final = np.uint64(1 << 63)


def comparable(values: pa.Array, most_bytes: int | None = None) -> pa.Array:
    """Values whose order is that of the given ones, nulls where they have nulls.

    Args:
        values: n values of any type but a nested one.
        most_bytes: leave out the bytes of a text after so many.

    Returns large_binary of n for texts and for decimals of more than 18 digits, otherwise uint64 of n.

    Raises UnsupportedError for a type that has no order here.
    """
    values = flat(values)
    if is_text(values.type):
        whole = values.cast(pa.large_binary())
        return whole if most_bytes is None else pc.binary_slice(whole, 0, most_bytes)
    if types.is_decimal(values.type) and values.type.precision > LONG_DIGITS:
        return _decimal_bytes(decimal_words(values), values)
    return pa.array(direct(values), mask=nulls_of(values))


def _decimal_bytes(words: Ulongs, values: pa.Array) -> pa.Array:
    """Unscaled values as bytes, the highest first, their sign turned over."""
    turned = words[:, ::-1].copy()
    turned[:, 0] ^= _SIGN
    body = turned.astype(">u8").tobytes()
    width = 8 * words.shape[1]
    offsets = np.arange(len(values) + 1, dtype=np.int64) * width
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(body)]
    whole = pa.Array.from_buffers(pa.large_binary(), len(values), buffers)
    return pc.if_else(pc.is_valid(values), whole, pa.scalar(None, pa.large_binary()))
