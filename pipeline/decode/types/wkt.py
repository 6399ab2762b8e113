"""Well-known text of a geometry -> the bytes the lake keeps (SRID in 4 little-endian bytes, then well-known binary)."""

from __future__ import annotations

import re
import struct

_TOKEN = re.compile(r"\s*([A-Za-z]+|[(),]|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")
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
    """The bytes of one geometry, with SRID 0, for the text has none. Raises ValueError if it is no flat geometry."""
    tokens = _Tokens(text)
    shape = _geometry(tokens, 0)
    if tokens.next is not None:
        raise ValueError("more than one geometry")
    return _NO_SRID + shape


class _Tokens:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.next: str | None = None
        self.take()

    def take(self) -> str:
        """The token in front; the one behind it is ``next`` then."""
        taken = self.next
        found = _TOKEN.match(self._text, self._at)
        if found is None and self._text[self._at :].strip():
            raise ValueError("no well-known text")
        self.next = found.group(1) if found else None
        self._at = found.end() if found else len(self._text)
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
