"""Columns of base64 or hex text -> bytes, and bytes -> decimals and bits, whole columns at a time.

Every function takes a string (or binary) array and returns an array of the same length with the same nulls. It raises
ValueError when any value is invalid; the caller searches for the invalid value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_U8 = npt.NDArray[np.uint8]
_I64 = npt.NDArray[np.int64]

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_PAD = ord("=")
_INVALID = 0x8000


def _base64_pairs() -> npt.NDArray[np.uint16]:
    """Two characters (little-endian uint16) -> 12 bits, or _INVALID. Padding counts as zero bits."""
    bits = np.full(256, -1, dtype=np.int64)
    bits[np.frombuffer(_ALPHABET, dtype=np.uint8)] = np.arange(64)
    first, second = bits[np.arange(65536) & 0xFF], bits[np.arange(65536) >> 8]
    padded = (np.arange(65536) >> 8) == _PAD
    value = np.where((first >= 0) & (second >= 0), (first << 6) | second, _INVALID)
    value = np.where((first >= 0) & padded, first << 6, value)
    value[_PAD << 8 | _PAD] = 0
    return value.astype(np.uint16)


def _hex_pairs() -> npt.NDArray[np.uint16]:
    digits = np.full(256, -1, dtype=np.int64)
    for text in (b"0123456789abcdef", b"0123456789ABCDEF"):
        digits[np.frombuffer(text, dtype=np.uint8)] = np.arange(16)
    first, second = digits[np.arange(65536) & 0xFF], digits[np.arange(65536) >> 8]
    return np.where((first >= 0) & (second >= 0), (first << 4) | second, _INVALID).astype(np.uint16)


_BASE64_PAIRS = _base64_pairs()
_HEX_PAIRS = _hex_pairs()
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def decode_base64(texts: pa.Array, *, url_safe: bool = False) -> pa.Array:
    """Padded base64 text -> binary."""
    data, bounds = bytes_and_bounds(texts)
    if url_safe:
        data = np.frombuffer(data.tobytes().translate(_URL_SAFE), dtype=np.uint8)
    lengths = np.diff(bounds)
    if (lengths & 3).any():
        raise ValueError("base64 text whose length is no multiple of four")
    ends = bounds[1:][lengths > 0]
    pads = np.zeros(len(lengths), dtype=np.int64)
    pads[lengths > 0] = (data[ends - 1] == _PAD).astype(np.int64) + (data[ends - 2] == _PAD)
    if np.count_nonzero(data == _PAD) != pads.sum():
        raise ValueError("base64 padding inside a value")
    decoded = _three_bytes(_looked_up(data, _BASE64_PAIRS, "base64"))
    kept = np.ones(len(decoded), dtype=bool)
    block_ends = bounds[1:] // 4 * 3
    kept[block_ends[pads >= 1] - 1] = False
    kept[block_ends[pads == 2] - 2] = False
    return _binary(texts, decoded[kept], lengths // 4 * 3 - pads)


def decode_latin1(texts: pa.Array) -> pa.Array:
    """Text whose characters are bytes (ISO-8859-1) -> binary."""
    texts.validate(full=True)
    data, bounds = bytes_and_bounds(texts)
    if (data >= 0xC4).any():
        raise ValueError("a character beyond ISO-8859-1")
    kept = (data & 0xC0) != 0x80
    out = data.copy()
    leads = np.flatnonzero(data >= 0xC0)
    out[leads] = ((data[leads] & 0x03) << 6) | (data[leads + 1] & 0x3F)
    before = np.concatenate([[0], np.cumsum(kept)])
    return _binary(texts, out[kept], np.diff(before[bounds]))


def decode_hex(texts: pa.Array) -> pa.Array:
    """Hexadecimal text, either case -> binary."""
    data, bounds = bytes_and_bounds(texts)
    lengths = np.diff(bounds)
    if (lengths & 1).any():
        raise ValueError("hexadecimal text of odd length")
    return _binary(texts, _looked_up(data, _HEX_PAIRS, "hexadecimal").astype(np.uint8), lengths // 2)


def decimals_from_twos_complement(numbers: pa.Array, precision: int, scale: int) -> pa.Array:
    """Big-endian two's-complement unscaled numbers (binary) -> decimal128, or decimal256 above 38 digits.

    The result is not yet checked against ``precision``; ``validate(full=True)`` checks it.
    """
    data, bounds = bytes_and_bounds(numbers)
    lengths = np.diff(bounds)
    words = 2 if precision <= 38 else 4
    longest = int(lengths.max(initial=0))
    valid = ~_null_mask(numbers)
    if longest > 8 * words or (lengths[valid] == 0).any():
        raise ValueError(f"a number of {longest} bytes or of none for {precision} digits")
    out = np.zeros((len(lengths), words), dtype=np.int64)
    for word in range(words):
        out[:, word] = _word(data, bounds, word)
    kind = pa.decimal128(precision, scale) if words == 2 else pa.decimal256(precision, scale)
    return pa.Array.from_buffers(kind, len(lengths), [_validity(numbers), pa.py_buffer(out)])


def decimals_from_uint64(wrapped: pa.Array) -> pa.Array:
    """int64 that represents an unsigned number modulo 2**64 -> decimal128(20, 0)."""
    out = np.zeros((len(wrapped), 2), dtype=np.int64)
    out[:, 0] = wrapped.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.Array.from_buffers(pa.decimal128(20, 0), len(wrapped), [_validity(wrapped), pa.py_buffer(out)])


def big_endian_bits(little_endian: pa.Array, width: int) -> pa.Array:
    """Little-endian bytes of any length -> big-endian bytes of exactly ``width`` bits, rounded up to bytes."""
    data, bounds = bytes_and_bounds(little_endian)
    lengths = np.diff(bounds)
    size = (width + 7) // 8
    out = np.zeros((len(lengths), size), dtype=np.uint8)
    for i in range(int(lengths.max(initial=0))):
        here = lengths > i
        value = data[bounds[:-1][here] + i]
        if i < size:
            out[here, size - 1 - i] = value
        elif value.any():
            raise ValueError(f"more than {width} bits")
    if width % 8 and (out[:, 0] >> (width % 8)).any():
        raise ValueError(f"more than {width} bits")
    valid = ~_null_mask(little_endian)
    return _binary(little_endian, out[valid].reshape(-1), np.where(valid, size, 0))


def _word(data: _U8, bounds: _I64, word: int) -> _I64:
    """Word ``word`` (64 bits, 0 = least significant) of every number, sign-extended."""
    starts, ends = bounds[:-1], bounds[1:] - 8 * word
    size = np.clip(ends - starts, 0, 8)
    value = np.zeros(len(starts), dtype=np.uint64)
    for i in range(int(size.max(initial=0))):
        here = size > i
        value[here] |= data[ends[here] - 1 - i].astype(np.uint64) << np.uint64(8 * i)
    short = size < 8
    negative = np.zeros(len(starts), dtype=bool)
    some = bounds[1:] > starts
    negative[some] = data[starts[some]] >= 0x80
    fill = short & negative
    value[fill] |= np.uint64(0xFFFFFFFFFFFFFFFF) << (np.uint64(8) * size[fill].astype(np.uint64))
    return value.view(np.int64)


def _looked_up(data: _U8, table: npt.NDArray[np.uint16], what: str) -> npt.NDArray[np.uint16]:
    values = table[np.ascontiguousarray(data).view(np.dtype("<u2"))]
    if (values & _INVALID).any():
        raise ValueError(f"a character that is not {what}")
    return values


def _three_bytes(pairs: npt.NDArray[np.uint16]) -> _U8:
    """Two times 12 bits -> 3 bytes, for the whole column."""
    high, low = pairs[0::2], pairs[1::2]
    out = np.empty((len(high), 3), dtype=np.uint8)
    out[:, 0] = high >> 4
    out[:, 1] = ((high & 0xF) << 4) | (low >> 8)
    out[:, 2] = low & 0xFF
    return out.reshape(-1)


def bytes_and_bounds(array: pa.Array) -> tuple[_U8, _I64]:
    """The bytes of the n values of a string or binary array, and their n + 1 bounds; null has none."""
    if array.null_count:
        array = array.fill_null("" if pa.types.is_string(array.type) else b"")
    if not len(array):
        return np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    bounds = np.frombuffer(array.buffers()[1], dtype=np.int32, count=len(array) + 1, offset=4 * array.offset)
    wide = bounds.astype(np.int64)
    held = array.buffers()[2]
    if held is None:
        return np.empty(0, dtype=np.uint8), wide
    return np.frombuffer(held, dtype=np.uint8)[wide[0] : wide[-1]], wide - wide[0]


def _null_mask(array: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return mask


def _validity(array: pa.Array) -> pa.Buffer | None:
    return pa.array(~_null_mask(array)).buffers()[1] if array.null_count else None


def _binary(like: pa.Array, data: _U8, lengths: _I64) -> pa.Array:
    bounds = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=bounds[1:])
    buffers = [_validity(like), pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)
