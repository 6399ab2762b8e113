"""xxHash's 32-bit hash with seed 0, for whole Arrow columns at once (``XXH32`` of the xxHash specification)."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.compiled import BYTES, LONG, LONGS, NOTHING, ULONG, ULONGS, compiled

# A 32-bit word is the lower half of an unsigned long, because numba widens the products of 32-bit words.
_WORD: Final = np.uint64(0xFFFFFFFF)
_P1, _P2, _P3 = np.uint64(2654435761), np.uint64(2246822519), np.uint64(3266489917)
_P4, _P5 = np.uint64(668265263), np.uint64(374761393)
#: P1 + P2 and -P1 modulo 2**32: where the first and the last of the four lanes start.
_FIRST, _LAST = np.uint64(606290984), np.uint64(1640531535)
_BITS: Final = np.uint64(32)
_STRIPE: Final = 16
_LANE: Final = 4
_Longs = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
Uint32s = npt.NDArray[np.uint32]


def xxhash32(texts: pa.Array) -> Uint32s:
    """The hash of the UTF-8 bytes of each text, uint32 of n.

    Args:
        texts: string or large_string array of n values; null hashes like the empty text.
    """
    body, offsets = utf8_of(texts)
    hashes = np.empty(len(texts), dtype=np.uint64)
    _hash_all(body, offsets, hashes)
    return hashes.astype(np.uint32)


def utf8_of(texts: pa.Array) -> tuple[_Bytes, _Longs]:
    """The UTF-8 bytes of n texts for compiled functions, uint8, not writable and never empty, and the offsets of the
    texts in them, int64 of n + 1.

    Args:
        texts: string, large_string or binary array of n values, those of a binary array as they are; a null has no
            bytes.
    """
    large = texts.cast(pa.large_binary())
    offsets = np.frombuffer(large.buffers()[1], dtype=np.int64)[large.offset : large.offset + len(large) + 1]
    data = large.buffers()[2]
    body = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.zeros(1, dtype=np.uint8)
    body.flags.writeable = False
    return body, offsets.copy()


@compiled(ULONG(BYTES, LONG))
def _word(data: _Bytes, at: int) -> np.uint64:
    """Four bytes, little-endian."""
    value = np.uint64(0)
    for number in range(4):
        value |= np.uint64(data[at + number]) << np.uint64(8 * number)
    return value


@compiled(ULONG(ULONG, ULONG))
def _rotated(value: np.uint64, bits: np.uint64) -> np.uint64:
    """The lower 32 bits of ``value``, rotated to the left."""
    value &= _WORD
    return ((value << bits) | (value >> (_BITS - bits))) & _WORD


@compiled(ULONG(ULONG, ULONG))
def _lane(state: np.uint64, word: np.uint64) -> np.uint64:
    return _rotated(state + word * _P2, np.uint64(13)) * _P1 & _WORD


@compiled(ULONG(BYTES, LONG, LONG))
def _stripes(data: _Bytes, at: int, end: int) -> np.uint64:
    """The hash of whole stripes of four words, at least one."""
    first, second, third, last = _FIRST, _P2, np.uint64(0), _LAST
    while end - at >= _STRIPE:
        first, second = _lane(first, _word(data, at)), _lane(second, _word(data, at + 4))
        third, last = _lane(third, _word(data, at + 8)), _lane(last, _word(data, at + 12))
        at += _STRIPE
    whole = _rotated(first, np.uint64(1)) + _rotated(second, np.uint64(7))
    return whole + _rotated(third, np.uint64(12)) + _rotated(last, np.uint64(18))


@compiled(NOTHING(BYTES, LONGS, ULONGS))
def _hash_all(data: _Bytes, offsets: _Longs, found: npt.NDArray[np.uint64]) -> None:
    for row in range(len(found)):
        offset, end = offsets[row], offsets[row + 1]
        length = end - offset
        value = _stripes(data, offset, end) if length >= _STRIPE else _P5
        value = (value + np.uint64(length)) & _WORD
        offset += length // _STRIPE * _STRIPE
        while end - offset >= _LANE:
            value = _rotated(value + _word(data, offset) * _P3, np.uint64(17)) * _P4 & _WORD
            offset += _LANE
        while offset < end:
            value = _rotated(value + np.uint64(data[offset]) * _P5, np.uint64(11)) * _P1 & _WORD
            offset += 1
        value = (value ^ (value >> np.uint64(15))) * _P2 & _WORD
        value = (value ^ (value >> np.uint64(13))) * _P3 & _WORD
        found[row] = value ^ (value >> np.uint64(16))
