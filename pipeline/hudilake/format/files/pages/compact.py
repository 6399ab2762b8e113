"""Thrift's compact protocol, as far as the metadata of Parquet files needs it.

A struct is a dict from field id to (wire type, value). Values are int, float, bool, bytes, ``Items`` (lists) and
structs, so that a struct that was read can be changed and written again with all of its fields.
(https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, TypeAlias

from hudilake.format.files.varint import read_varint, read_zigzag, write_varint

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
SET = 10
#: The deepest nesting that is read.
DEPTH = 32

#: Field id -> (wire type, value).
Struct: TypeAlias = dict[int, tuple[int, Any]]


@dataclass(frozen=True)
class Items:
    """A list: the wire type of its items, and the items."""

    kind: int
    values: list[Any]


def read_struct(data: bytes, at: int, depth: int = 0) -> tuple[Struct, int]:
    """(the struct at an offset, the offset after it).

    Raises IndexError if the data end before the struct, ValueError for what is no struct of Parquet.
    """
    if depth > DEPTH:
        raise ValueError("its metadata is nested too deeply")
    fields: Struct = {}
    field = 0
    while (head := data[at]) != 0:
        at += 1
        kind, step = head & 15, head >> 4
        if step:
            field += step
        else:
            field, at = read_zigzag(data, at)
        if kind in (TRUE, FALSE):
            fields[field] = kind, kind == TRUE
        else:
            value, at = _read(data, at, kind, depth)
            fields[field] = kind, value
    return fields, at + 1


def _read(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (I16, I32, I64):
        return read_zigzag(data, at)
    if kind == BINARY:
        size, at = read_varint(data, at)
        if at + size > len(data):
            raise IndexError("the bytes end before a string")
        return bytes(data[at : at + size]), at + size
    if kind == STRUCT:
        return read_struct(data, at, depth + 1)
    if kind in (LIST, SET):
        return _read_items(data, at, depth + 1)
    if kind == BYTE:
        return data[at], at + 1
    if kind == DOUBLE:
        if at + 8 > len(data):
            raise IndexError("the bytes end before a number")
        return struct.unpack_from("<d", data, at)[0], at + 8
    raise ValueError(f"wire type {kind} is not in Parquet's metadata")


def _read_items(data: bytes, at: int, depth: int) -> tuple[Items, int]:
    head = data[at]
    at += 1
    kind, count = head & 15, head >> 4
    if count == 15:
        count, at = read_varint(data, at)
    if count > len(data) - at:
        raise IndexError("the bytes end before a list")
    if kind in (TRUE, FALSE):
        return Items(kind, [byte == TRUE for byte in data[at : at + count]]), at + count
    values = []
    for _ in range(count):
        value, at = _read(data, at, kind, depth)
        values.append(value)
    return Items(kind, values), at


def write_struct(value: Struct) -> bytes:
    """The bytes of a struct."""
    out = bytearray()
    last = 0
    for field in sorted(value):
        kind, inner = value[field]
        step, last = field - last, field
        if 0 < step < 16:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            out += _zigzag(field)
        if kind not in (TRUE, FALSE):
            out += _written(kind, inner)
    out.append(0)
    return bytes(out)


def _written(kind: int, value: Any) -> bytes:  # noqa: ANN401 - a value of the wire type
    if kind in (I16, I32, I64):
        return _zigzag(value)
    if kind == BINARY:
        return write_varint(len(value)) + value  # type: ignore[no-any-return]
    if kind == STRUCT:
        return write_struct(value)
    if kind == BYTE:
        return bytes([value])
    if kind == DOUBLE:
        return struct.pack("<d", value)
    count = len(value.values)
    head = bytes([min(count, 15) << 4 | value.kind]) + (write_varint(count) if count >= 15 else b"")
    if value.kind in (TRUE, FALSE):
        return head + bytes(TRUE if item else FALSE for item in value.values)
    return head + b"".join(_written(value.kind, item) for item in value.values)


def _zigzag(number: int) -> bytes:
    return write_varint(number << 1 if number >= 0 else -number * 2 - 1)
