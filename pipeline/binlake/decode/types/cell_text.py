"""The text form of row keys and qualifiers of HBase-like stores.

It is HBase's own (``Bytes.toStringBinary``): printable ASCII as it is, other bytes as ``\\xHH``. Commas are ``\\x2C``
too, so that the record key of a cell (``row:...,family:...``) can be read in one way only. Two texts mean an empty
value and null in Hudi's record keys; a value of such bytes begins with ``\\x5F``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.types.encoded_bytes import bytes_and_bounds

_U8 = npt.NDArray[np.uint8]
_I64 = npt.NDArray[np.int64]

_PLAIN: Final = np.array([0x20 <= byte <= 0x7E and byte not in b"\\," for byte in range(256)])
_HEX_DIGITS: Final = np.frombuffer(b"0123456789ABCDEF", dtype=np.uint8)
_NO_DIGIT: Final = 16
_DIGITS: Final = np.full(256, _NO_DIGIT, dtype=np.uint8)
_DIGITS[_HEX_DIGITS] = np.arange(16)
_BACKSLASH, _X, _UNDERSCORE = ord("\\"), ord("x"), ord("_")
_ESCAPE_BYTES: Final = 4
#: Texts that Hudi writes into record keys for an empty value and for null, and the same as bytes of a store.
_KEY_PARTS: Final = ("__empty__", "__null__")
_ESCAPED_PARTS: Final = tuple("\\x5F" + text[1:] for text in _KEY_PARTS)


def text_of(values: pa.Array) -> pa.Array:
    """The text form of n values: binary array -> string array of n; null stays null."""
    data, bounds = bytes_and_bounds(values)
    special = ~_PLAIN[data]
    if special.any():
        starts = _sums(np.where(special, _ESCAPE_BYTES, 1))
        out = np.empty(int(starts[-1]), dtype=np.uint8)
        out[starts[:-1][~special]] = data[~special]
        escape_starts, escaped = starts[:-1][special], data[special]
        for place, part in enumerate((_BACKSLASH, _X, _HEX_DIGITS[escaped >> 4], _HEX_DIGITS[escaped & 0xF])):
            out[escape_starts + place] = part
        data, bounds = out, starts[bounds]
    texts = _array(pa.string(), data, bounds, values)
    for text, instead in zip(_KEY_PARTS, _ESCAPED_PARTS, strict=True):
        texts = pc.if_else(pc.equal(texts, text), instead, texts)
    return texts


def bytes_of(texts: pa.Array) -> pa.Array:
    """The values of n text forms: string array -> binary array of n; null stays null.

    Raises ValueError for a text that ``text_of`` does not write.
    """
    data, bounds = bytes_and_bounds(texts)
    escape_starts = np.flatnonzero(data == _BACKSLASH)
    if (~_PLAIN[np.delete(data, escape_starts)]).any() or pc.any(pc.is_in(texts, pa.array(_KEY_PARTS))).as_py():
        raise ValueError("a text with characters that its form escapes")
    if len(escape_starts):
        value = _escaped(texts, data, bounds, escape_starts)
        kept = np.ones(len(data), dtype=bool)
        for place in range(1, _ESCAPE_BYTES):
            kept[escape_starts + place] = False
        out = data.copy()
        out[escape_starts] = value
        data, bounds = out[kept], _sums(kept)[bounds]
    return _array(pa.binary(), data, bounds, texts)


def _escaped(texts: pa.Array, data: _U8, bounds: _I64, at: _I64) -> _U8:
    """The bytes that escapes stand for. ``at``: where the escapes begin in ``data``."""
    ends = bounds[np.searchsorted(bounds, at, side="right")]
    if (at + _ESCAPE_BYTES > ends).any() or (data[at + 1] != _X).any():
        raise ValueError("a backslash that begins no \\xHH")
    high, low = _DIGITS[data[at + 2]], _DIGITS[data[at + 3]]
    if (high == _NO_DIGIT).any() or (low == _NO_DIGIT).any():
        raise ValueError("\\x without two hexadecimal digits")
    value = np.asarray(high << 4 | low, dtype=np.uint8)
    needless = _PLAIN[value]
    reserved = pc.is_in(texts, pa.array(_ESCAPED_PARTS)).to_numpy(zero_copy_only=False)
    firsts = bounds[:-1][reserved]
    if (needless & ~((value == _UNDERSCORE) & np.isin(at, firsts))).any():
        raise ValueError("an escape of a character that needs none")
    return value


def _sums(sizes: npt.NDArray[np.generic]) -> _I64:
    """0 and the running sums of n sizes, int64 array of n + 1."""
    sums = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=sums[1:])
    return sums


def _array(kind: pa.DataType, data: _U8, bounds: _I64, like: pa.Array) -> pa.Array:
    """An array of values by their bytes, with the nulls of another one. Raises ValueError beyond 2 GiB."""
    if bounds[-1] > np.iinfo(np.int32).max:
        raise ValueError("texts of more than 2 GiB in one array")
    valid = pa.array(like.is_valid().to_numpy(zero_copy_only=False)).buffers()[1] if like.null_count else None
    buffers = [valid, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(kind, len(like), buffers)
