"""DECIMAL as the binlog stores it, and MySQL's binary JSON, which may hold it, as text.

MariaDB keeps JSON as text and needs none of the latter.

The form: MySQL's source documentation, "JSON binary storage format" (json_binary.h). Numbers keep their digits, members
their order in the document (which is MySQL's own: by length and bytes). Values without a JSON type of their own (dates,
decimals) become what MySQL prints: decimals as numbers, the others as text.
"""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from collections.abc import Callable
from typing import Final

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL = range(5)
_STRING, _OPAQUE = 0x0C, 0x0F
_LITERALS: Final = {0: "null", 1: "true", 2: "false"}
_NUMBERS: Final = {
    0x05: struct.Struct("<h"),
    0x06: struct.Struct("<H"),
    0x07: struct.Struct("<i"),
    0x08: struct.Struct("<I"),
    0x09: struct.Struct("<q"),
    0x0A: struct.Struct("<Q"),
    0x0B: struct.Struct("<d"),
}
#: Types whose value stands in the entry itself, in small and in large documents.
_INLINE_SMALL: Final = frozenset({_LITERAL, 0x05, 0x06})
_INLINE_LARGE: Final = frozenset({_LITERAL, 0x05, 0x06, 0x07, 0x08})
_DECIMAL, _DATE, _TIME, _DATETIME, _TIMESTAMP = 246, 10, 11, 12, 7
_MOST_NESTING: Final = 100
#: How many bytes the first digits of a DECIMAL take, which fill no group of nine.
_GROUP_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
#: (bytes, place of the value) -> (JSON text of the value, place after it).
ReadCell = Callable[[bytes, int], tuple[str, int]]


def decimal_cell(precision: int, scale: int) -> ReadCell:
    """Groups of nine digits in four bytes, the first bit turned round, all bits of a negative number turned round."""
    whole = precision - scale
    sizes = [(_GROUP_BYTES[whole % 9], whole % 9), *[(4, 9)] * (whole // 9)]
    fractions = [*[(4, 9)] * (scale // 9), (_GROUP_BYTES[scale % 9], scale % 9)]
    before = sum(size for size, _ in sizes)
    total = before + sum(size for size, _ in fractions)
    mask = (1 << 8 * total) - 1

    def digits(data: bytes, start: int, groups: list[tuple[int, int]]) -> str:
        parts = []
        for size, width in groups:
            if size:
                parts.append(f"{int.from_bytes(data[start : start + size], 'big'):0{width}d}")
                start += size
        return "".join(parts)

    def read(data: bytes, start: int) -> tuple[str, int]:
        number = int.from_bytes(data[start : start + total], "big") ^ (1 << 8 * total - 1)
        negative = not data[start] & 0x80
        cell = (number ^ mask if negative else number).to_bytes(total, "big")
        text = digits(cell, 0, sizes).lstrip("0") or "0"
        if scale:
            text += "." + digits(cell, before, fractions)
        return ("-" if negative else "") + text, start + total

    return read


def json_text(data: bytes) -> str:
    """The document; "null" for no bytes, as a server writes it. Raises ValueError, struct.error, IndexError."""
    return _value(data[0], data, 1, 0) if data else "null"


def _value(kind: int, data: bytes, start: int, depth: int) -> str:
    if depth > _MOST_NESTING:
        raise ValueError("JSON that is nested too deeply")
    if kind in (_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY):
        return _container(kind, data, start, depth)
    if kind == _LITERAL:
        return _LITERALS[data[start]]
    if kind in _NUMBERS:
        return repr(_NUMBERS[kind].unpack_from(data, start)[0])
    if kind == _STRING:
        size, first = _length(data, start)
        return json.dumps(data[first : first + size].decode(), ensure_ascii=False)
    if kind == _OPAQUE:
        size, first = _length(data, start + 1)
        return _opaque(data[start], data[first : first + size])
    raise ValueError(f"a JSON value of the unknown type {kind}")


def _container(kind: int, data: bytes, start: int, depth: int) -> str:
    large = kind in (_LARGE_OBJECT, _LARGE_ARRAY)
    is_object = kind in (_SMALL_OBJECT, _LARGE_OBJECT)
    width = 4 if large else 2
    number = _unsigned(width)
    count, first = number(data, start), start + 2 * width
    keys = []
    if is_object:
        for entry in range(first, first + count * (width + 2), width + 2):
            key_start = start + number(data, entry)
            size = int.from_bytes(data[entry + width : entry + width + 2], "little")
            keys.append(data[key_start : key_start + size].decode())
        first += count * (width + 2)
    inline = _INLINE_LARGE if large else _INLINE_SMALL
    values = []
    for entry in range(first, first + count * (width + 1), width + 1):
        inner = data[entry]
        place = entry + 1 if inner in inline else start + number(data, entry + 1)
        values.append(_value(inner, data, place, depth + 1))
    if is_object:
        members = (f"{json.dumps(key, ensure_ascii=False)}: {value}" for key, value in zip(keys, values, strict=True))
        return "{" + ", ".join(members) + "}"
    return "[" + ", ".join(values) + "]"


def _unsigned(width: int) -> Callable[[bytes, int], int]:
    return lambda data, start: int.from_bytes(data[start : start + width], "little")


def _length(data: bytes, start: int) -> tuple[int, int]:
    """A length of seven bits a byte, and the place after it."""
    size = shift = 0
    while True:
        byte = data[start]
        size |= (byte & 0x7F) << shift
        start, shift = start + 1, shift + 7
        if byte < 0x80:
            return size, start


def _opaque(kind: int, data: bytes) -> str:
    if kind == _DECIMAL:
        return decimal_cell(data[0], data[1])(data, 2)[0]
    if kind in (_DATE, _TIME, _DATETIME, _TIMESTAMP):
        return f'"{_moment(kind, int.from_bytes(data, "little", signed=True))}"'
    return json.dumps(f"base64:type{kind}:{b64encode(data).decode()}")


def _moment(kind: int, packed: int) -> str:
    """A packed time as MySQL prints it in JSON: with six digits of a second."""
    amount = abs(packed)
    micros, whole = amount & 0xFFFFFF, amount >> 24
    clock = whole & 0x1FFFF
    if kind == _TIME:
        sign = "-" if packed < 0 else ""
        return f"{sign}{whole >> 12 & 1023:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}.{micros:06d}"
    year, month = divmod(whole >> 22, 13)
    day = f"{year:04d}-{month:02d}-{whole >> 17 & 31:02d}"
    return day if kind == _DATE else f"{day} {clock >> 12:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}.{micros:06d}"
