"""Where values begin and end in the compact protocol, compiled by numba: a footer is skimmed, not read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hudilake.compiled import BYTES, LONG, LONG_ROWS, LONGS, compiled
from hudilake.format.files.pages.compact import BINARY, BYTE, DEPTH, DOUBLE, FALSE, LIST, SET, STRUCT

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]


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
    left = np.zeros(DEPTH, dtype=np.int64)  # of each list that is open the items to come; -1 for a struct
    kinds = np.zeros(DEPTH, dtype=np.int64)
    depth = 0
    while True:
        if kind in (STRUCT, LIST, SET):
            if depth == DEPTH:
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
