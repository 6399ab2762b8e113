"""Thrift's compact protocol, as far as the metadata of Parquet files needs it.

A struct is a dict from field id to (wire type, value). Values are int, float, bool, bytes, ``Items`` (lists) and
structs, so that a struct that was read can be changed and written again with all of its fields.
(https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.compiled import BYTES, LONG, LONG_ROWS, LONGS, compiled
from pipeline.hudi.files.varint import read_varint, read_zigzag, write_varint

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
_SET = 10
#: The deepest nesting that is read.
_DEPTH = 32

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
    if depth > _DEPTH:
        raise ValueError("its metadata is nested too deeply")
    found: Struct = {}
    field = 0
    while (head := data[at]) != 0:
        at += 1
        kind, step = head & 15, head >> 4
        if step:
            field += step
        else:
            field, at = read_zigzag(data, at)
        if kind in (TRUE, FALSE):
            found[field] = kind, kind == TRUE
        else:
            value, at = _read(data, at, kind, depth)
            found[field] = kind, value
    return found, at + 1


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
    if kind in (LIST, _SET):
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


@compiled(LONG(BYTES, LONG))
def _after_varint(data: Bytes, at: int) -> int:
    """The offset after a varint; -1 for damaged bytes."""
    for i in range(at, min(at + 10, len(data))):
        if data[i] < 128:
            return i + 1
    return -1


@compiled(LONG(BYTES, LONG, LONG))
def _varint(data: Bytes, at: int, end: int) -> int:
    """The number in a varint of these offsets."""
    number = 0
    for i in range(min(end - at, 9)):
        number |= (int(data[at + i]) & 127) << (7 * i)
    return number


@compiled(LONG(BYTES, LONG, LONG))
def _after_plain(data: Bytes, at: int, kind: int) -> int:
    """The offset after a number or a string; -1 for damaged bytes."""
    if kind == BYTE:
        return at + 1
    if kind == DOUBLE:
        return at + 8
    end = _after_varint(data, at)
    if end < 0 or kind < BINARY:
        return end
    size = _varint(data, at, end)
    return end + size if 0 <= size <= len(data) - end else -1


@compiled(LONG(BYTES, LONG, LONGS))
def _open_list(data: Bytes, at: int, opened: Longs) -> int:
    """The offset after the head of a list; its count and wire type go to ``opened``. -1 for damaged bytes."""
    if at >= len(data):
        return -1
    opened[0], opened[1] = data[at] >> 4, data[at] & 15
    if opened[0] < 15:
        return at + 1
    end = _after_varint(data, at + 1)
    if end > 0:
        opened[0] = _varint(data, at + 1, end)
    return end


@compiled(LONG(BYTES, LONG, LONGS))
def _open_field(data: Bytes, at: int, opened: Longs) -> int:
    """The offset after the head of a field; its step (0: a field number follows the head) and wire type go to
    ``opened``, wire type 0 at the end of the struct. -1 for damaged bytes."""
    if at >= len(data):
        return -1
    opened[0], opened[1] = data[at] >> 4, data[at] & 15
    return at + 1 if opened[0] or not opened[1] else _after_varint(data, at + 1)


@compiled(LONG(BYTES, LONG, LONG))
def end_of(data: Bytes, at: int, kind: int) -> int:
    """The offset after the value of a wire type that begins at an offset; -1 for damaged bytes."""
    opened = np.zeros(2, dtype=np.int64)
    left = np.zeros(_DEPTH, dtype=np.int64)  # of each list that is open the items to come; -1 for a struct
    kinds = np.zeros(_DEPTH, dtype=np.int64)
    depth = 0
    while True:
        if kind in (STRUCT, LIST, _SET):
            if depth == _DEPTH:
                return -1
            left[depth] = -1
            if kind != STRUCT:
                at = _open_list(data, at, opened)
                left[depth], kinds[depth] = opened
            depth += 1
        elif BYTE <= kind <= BINARY:
            at = _after_plain(data, at, kind)
        else:
            return -1
        kind = 0
        while kind <= FALSE:  # the next value of what is open
            if at < 0 or at > len(data):
                return -1
            if depth == 0:
                return at
            if left[depth - 1] == 0:
                depth -= 1
            elif left[depth - 1] > 0:
                left[depth - 1] -= 1
                kind = kinds[depth - 1]
                at += kind <= FALSE
            else:
                at = _open_field(data, at, opened)
                kind = opened[1]
                depth -= kind == 0


@compiled(LONG(BYTES, LONG, LONG_ROWS))
def fields_of(data: Bytes, at: int, out: npt.NDArray[np.int64]) -> int:
    """The fields of the struct at an offset.

    Args:
        data: the bytes.
        at: the offset.
        out: int64 array of (k, 3) to fill: field id (of fewer than 64), wire type, offset of the value.

    Returns the number of fields, -1 for damaged bytes or more than k fields.
    """
    count = field = 0
    while True:
        if at >= len(data):
            return -1
        head = int(data[at])
        at += 1
        if head == 0:
            return count
        if head >> 4:
            field += head >> 4
        else:
            if at >= len(data) or data[at] > 127:
                return -1
            field = int(data[at]) >> 1
            at += 1
        kind = head & 15
        if count == len(out):
            return -1
        out[count, 0], out[count, 1], out[count, 2] = field, kind, at
        count += 1
        if kind > 2:
            at = end_of(data, at, int(kind))
            if at < 0:
                return -1


@compiled(LONG(BYTES, LONG, LONGS))
def items_of(data: Bytes, at: int, out: Longs) -> int:
    """The items of a list of structs.

    Args:
        data: the bytes.
        at: the offset after the list's head.
        out: int64 array of one item a struct, to fill with their offsets.

    Returns the offset after the list, -1 for damaged bytes.
    """
    for i in range(len(out)):
        out[i] = at
        at = end_of(data, at, 12)
        if at < 0:
            return -1
    return at
