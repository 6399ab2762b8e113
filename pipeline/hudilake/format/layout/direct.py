"""Values as numbers in their own order: uint64 for each value of a column, whatever its Arrow type.

A number tells two values apart as far as 64 bits do: texts by their first 8 bytes, decimals of more than 18 digits by
their first 64 bits. The order of floating-point numbers is that of Spark and of Java's ``Double.compare``, but -0.0
equals 0.0: NaN is the greatest.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from hudilake.compiled import BYTES, LONGS, NOTHING, ULONGS, compiled
from hudilake.errors import UnsupportedError
from hudilake.format.definition.xxhash32 import utf8_of

Ulongs = npt.NDArray[np.uint64]
#: A decimal of so many digits fits into a signed long.
LONG_DIGITS: Final = 18
_WORD_BITS: Final = 64
_WORD_BYTES: Final = 8
_SIGN: Final = np.uint64(1 << 63)
_ONE: Final = np.uint64(1)


def direct(column: pa.Array | pa.ChunkedArray) -> Ulongs:
    """A number for each value; a lower value never has a higher number.

    Args:
        column: n values of any type but a nested one.

    Returns uint64 of n. Null is 0, every other value is more than 0.

    Raises UnsupportedError for a type that has no order here.
    """
    if isinstance(column, pa.ChunkedArray):
        return np.concatenate([np.empty(0, dtype=np.uint64), *(direct(chunk) for chunk in column.chunks)])
    values = flat(column)
    numbers = _numbers(values)
    return np.where(nulls_of(values), np.uint64(0), np.maximum(numbers, _ONE))


def flat(values: pa.Array) -> pa.Array:
    """Values as they are; those of a dictionary are looked up."""
    return values.dictionary_decode() if types.is_dictionary(values.type) else values


def nulls_of(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Which values are null, bool of n."""
    return np.asarray(pc.is_null(values).to_numpy(zero_copy_only=False), dtype=np.bool_)


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are compared byte by byte."""
    return any(
        of(kind)
        for of in (
            types.is_string,
            types.is_large_string,
            types.is_string_view,
            types.is_binary,
            types.is_large_binary,
            types.is_binary_view,
            types.is_fixed_size_binary,
        )
    )


def decimal_words(values: pa.Array) -> Ulongs:
    """The unscaled values of decimals: uint64 of n x words, the lowest word first; anything where a value is null."""
    kind = values.type
    if kind.byte_width < 2 * _WORD_BYTES:
        values = values.cast(pa.decimal128(kind.precision, kind.scale))
    words = values.type.byte_width // _WORD_BYTES
    if not len(values):
        return np.empty((0, words), dtype=np.uint64)
    every = np.frombuffer(values.buffers()[1], dtype=np.uint64)
    return every[values.offset * words : (values.offset + len(values)) * words].reshape(-1, words)


def _numbers(values: pa.Array) -> Ulongs:
    """Returns uint64 of n, ordered like the values, anything where a value is null. Errors as ``direct``."""
    kind = values.type
    if types.is_null(kind):
        return np.zeros(len(values), dtype=np.uint64)
    if types.is_uint64(kind):
        return np.asarray(values.fill_null(0).to_numpy(), dtype=np.uint64)
    if types.is_floating(kind):
        return _of_doubles(np.asarray(values.cast(pa.float64()).fill_null(0).to_numpy(), dtype=np.float64))
    if types.is_decimal(kind):
        return _of_decimals(values)
    if is_text(kind):
        return _of_texts(values)
    if types.is_integer(kind) or types.is_boolean(kind) or (types.is_temporal(kind) and not types.is_interval(kind)):
        if types.is_date32(kind) or types.is_time32(kind):
            values = values.cast(pa.int32())
        longs = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return np.asarray(longs, dtype=np.int64).view(np.uint64) ^ _SIGN
    raise UnsupportedError(
        f"rows cannot be ordered by values of the type {kind}", do_next="name other columns in order_by"
    )


def _of_doubles(values: npt.NDArray[np.float64]) -> Ulongs:
    """The bits of a positive number with the sign set, those of a negative number turned over."""
    values = np.where(np.isnan(values), np.nan, values) + 0.0  # one NaN, no -0.0
    bits = values.view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _of_decimals(values: pa.Array) -> Ulongs:
    """The highest 64 bits that values of this precision need."""
    words = decimal_words(values)
    digits = values.type.precision
    needed = 1 + int(10**digits - 1).bit_length() if digits > LONG_DIGITS else _WORD_BITS
    word, bits = divmod(max(needed - _WORD_BITS, 0), _WORD_BITS)
    low = words[:, word]
    if bits:
        low = (low >> np.uint64(bits)) | (words[:, word + 1] << np.uint64(_WORD_BITS - bits))
    return low ^ _SIGN


def _of_texts(values: pa.Array) -> Ulongs:
    body, offsets = utf8_of(values)
    words = np.empty(len(values), dtype=np.uint64)
    _first_bytes(body, offsets, words)
    return words


@compiled(NOTHING(BYTES, LONGS, ULONGS))
def _first_bytes(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], found: Ulongs) -> None:
    """The first 8 bytes of texts, the first one highest; a shorter text is followed by zeros."""
    for row in range(len(found)):
        start, end = offsets[row], min(offsets[row] + _WORD_BYTES, offsets[row + 1])
        value = np.uint64(0)
        for place in range(start, end):
            value |= np.uint64(data[place]) << np.uint64(8 * (_WORD_BYTES - 1 - (place - start)))
        found[row] = value


# Values as uint64 or bytes that compare as the values do, however long they are.


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
