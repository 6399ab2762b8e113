"""Well-known text of a geometry -> its bytes in the lake (SRID in 4 little-endian bytes, then well-known binary)."""

from __future__ import annotations

import re
import struct
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_TOKEN = re.compile(r"\s*([A-Za-z]+|[(),]|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")
_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_NO_NUMBER = r"(?:[A-Za-z]{2,}|[(),\s])+"
#: A column with more layouts than this is converted one geometry at a time.
_MOST_LAYOUTS = 64
_CODES = {
    "POINT": 1,
    "LINESTRING": 2,
    "POLYGON": 3,
    "MULTIPOINT": 4,
    "MULTILINESTRING": 5,
    "MULTIPOLYGON": 6,
    "GEOMETRYCOLLECTION": 7,
}
_PART_OF = {"MULTIPOINT": "POINT", "MULTILINESTRING": "LINESTRING", "MULTIPOLYGON": "POLYGON"}
_NO_SRID = b"\0\0\0\0"
_DEEPEST = 32


def ewkb(text: str) -> bytes:
    """The bytes of one geometry. SRID is 0: the text has none. Raises ValueError if it is not a flat geometry."""
    tokens = _Tokens(text)
    shape = _geometry(tokens, 0)
    if tokens.next is not None:
        raise ValueError("more than one geometry")
    return _NO_SRID + shape


def ewkb_column(texts: pa.Array) -> pa.Array:
    """As ``ewkb``, for a column of texts; nulls stay. Raises ValueError if any of them is not a flat geometry."""
    there = texts.drop_null()
    shapes = _by_layout(there)
    if shapes is None:
        shapes = pa.array(map(ewkb, there.to_pylist()), pa.binary())
    if not texts.null_count:
        return shapes
    places = np.cumsum(texts.is_valid().to_numpy(zero_copy_only=False)) - 1
    return shapes.take(pa.array(places, mask=texts.is_null().to_numpy(zero_copy_only=False)))


def _by_layout(texts: pa.Array) -> pa.Array | None:
    """Texts that differ only in their numbers, in bulk; None where the texts have too many layouts."""
    zeros = pc.replace_substring_regex(texts, _NUMBER, " 0 ").dictionary_encode()
    if not 0 < len(zeros.dictionary) <= _MOST_LAYOUTS:
        return None
    listed = pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, _NO_NUMBER, " "))
    split = pc.split_pattern(listed, " ")
    try:  # a text without numbers has one empty part
        numbers = pc.if_else(pc.equal(split.flatten(), ""), "0", split.flatten()).cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:  # a number that only Python's parser accepts
        return None
    firsts, codes = split.offsets.to_numpy(), zeros.indices.to_numpy()
    counts = np.where(pc.equal(listed, "").to_numpy(zero_copy_only=False), 0, np.diff(firsts))
    parts, order = [], []
    for code, text in enumerate(zeros.dictionary.to_pylist()):
        rows = np.flatnonzero(codes == code)
        plain, doubles = _layout(text)
        if (counts[rows] != len(doubles)).any():
            return None
        whole = np.tile(np.frombuffer(plain, dtype=np.uint8), (len(rows), 1))
        values = numbers[firsts[rows][:, None] + np.arange(len(doubles))].astype("<f8")
        whole[:, (doubles[:, None] + np.arange(8)).ravel()] = values.view(np.uint8)
        fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(len(plain)), len(rows), [None, pa.py_buffer(whole)])
        parts.append(fixed.cast(pa.binary()))
        order.append(rows)
    return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(order))))


@lru_cache(maxsize=1024)
def _layout(zeros: str) -> tuple[bytes, npt.NDArray[np.int64]]:
    """The bytes of a text whose numbers are all 0, and the positions of the numbers in them.

    Raises ValueError as ``ewkb``.
    """
    plain, other = (np.frombuffer(ewkb(text), dtype=np.uint8) for text in (zeros, zeros.replace("0", "1")))
    # the bytes of a double's 0 and 1 differ in the last two
    return plain.tobytes(), np.flatnonzero(plain != other)[1::2] - 7


class _Tokens:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.next: str | None = None
        self.take()

    def take(self) -> str:
        """The current token; the one after it becomes ``next``."""
        taken = self.next
        token_match = _TOKEN.match(self._text, self._at)
        if token_match is None and self._text[self._at :].strip():
            raise ValueError("no well-known text")
        self.next = token_match.group(1) if token_match else None
        self._at = token_match.end() if token_match else len(self._text)
        return taken or ""

    def expect(self, token: str) -> None:
        if self.take() != token:
            raise ValueError("no well-known text")


def _geometry(tokens: _Tokens, depth: int) -> bytes:
    name = tokens.take().upper()
    if name not in _CODES or depth > _DEEPEST:
        raise ValueError("no geometry of well-known text")
    return _body(tokens, name, depth)


def _body(tokens: _Tokens, name: str, depth: int) -> bytes:
    head = struct.pack("<BI", 1, _CODES[name])
    if name == "POINT":
        tokens.expect("(")
        point = _point(tokens)
        tokens.expect(")")
        return head + point
    if (tokens.next or "").upper() == "EMPTY":
        tokens.take()
        return head + struct.pack("<I", 0)
    parts = _list(tokens, name, depth)
    return head + struct.pack("<I", len(parts)) + b"".join(parts)


def _list(tokens: _Tokens, name: str, depth: int) -> list[bytes]:
    tokens.expect("(")
    parts = [_part(tokens, name, depth)]
    while tokens.next == ",":
        tokens.take()
        parts.append(_part(tokens, name, depth))
    tokens.expect(")")
    return parts


def _part(tokens: _Tokens, name: str, depth: int) -> bytes:
    if name == "LINESTRING":
        return _point(tokens)
    if name == "POLYGON":
        ring = _list(tokens, "LINESTRING", depth)
        return struct.pack("<I", len(ring)) + b"".join(ring)
    if name == "GEOMETRYCOLLECTION":
        return _geometry(tokens, depth + 1)
    if name == "MULTIPOINT" and tokens.next != "(":
        return struct.pack("<BI", 1, _CODES["POINT"]) + _point(tokens)
    return _body(tokens, _PART_OF[name], depth)


def _point(tokens: _Tokens) -> bytes:
    x, y = float(tokens.take()), float(tokens.take())
    if tokens.next not in (",", ")"):
        raise ValueError("a point of more than two dimensions")
    return struct.pack("<dd", x, y)
