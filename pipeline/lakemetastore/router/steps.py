"""Steps over the bytes of Thrift's binary protocol, compiled: see `walker`.

Registers and stack are arrays, so that a walk goes on where the bytes ended. Whole values are passed over at once
(`_behind`); what is cut by the end of the bytes, and structs with names, are walked over step by step.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hudilake.compiled import BYTES, LONG, LONG_ROWS, LONGS, compiled

#: Structs and containers within each other. The stack has as many levels again, as room for `_behind`.
DEPTH: Final = 64
#: Places in the registers: how deep, bytes to pass, type of the value that begins, its child, names found, position.
LEVEL, PASS, VALUE, _CHILD, FOUND, AT = range(6)
#: Columns of a level of the stack: what it is, values left, type of the next, type of the one after, child.
_KIND, _LEFT, _TYPE, _OTHER_TYPE, LEVEL_CHILD = range(5)
_STRUCT, _LIST, _MAP = range(3)
MALFORMED: Final = -1
FULL: Final = -2
_MORE: Final = -3


@compiled(LONG(LONG))
def _fixed_size(kind: int) -> int:
    """Bytes of a value whose type has a fixed size; 0 for others."""
    if kind == 2 or kind == 3:
        return 1
    if kind == 6:
        return 2
    if kind == 8:
        return 4
    if kind == 4 or kind == 10:
        return 8
    if kind == 16:
        return 16
    return 0


@compiled(LONG(BYTES, LONG))
def _int(data: np.ndarray, at: int) -> int:
    value = (int(data[at]) << 24) | (int(data[at + 1]) << 16) | (int(data[at + 2]) << 8) | int(data[at + 3])
    return value - (1 << 32) if value >= (1 << 31) else value


@compiled(LONG(BYTES, LONG, LONG))
def _behind_plain(data: np.ndarray, at: int, size: int) -> int:
    """The position behind a value of a fixed size, or behind a string (size 0), that is wholly there; or -1."""
    if size == 0:
        if at + 4 > len(data):
            return -1
        size = 4 + _int(data, at)
        if size < 4:
            return -1
    return at + size if at + size <= len(data) else -1


@compiled(LONG(BYTES, LONG, LONG, LONG_ROWS))
def _behind(data: np.ndarray, at: int, kind: int, outer: np.ndarray) -> int:
    """The position behind a value that is wholly there; -1 for any other, which is walked over step by step.

    ``outer`` is room for the levels around the innermost one: values left (-1: a struct), and the types of every other.
    """
    level, left, even, odd = 0, 0, 0, 0
    while True:
        size = _fixed_size(kind)
        if size > 0 or kind == 11:
            at = _behind_plain(data, at, size)
        else:
            head = 0 if kind == 12 else 6 if kind == 13 else 5
            if kind < 12 or kind > 15 or level == outer.shape[0] or at + head > len(data):
                return -1
            outer[level, 0], outer[level, 1], outer[level, 2] = left, even, odd
            level += 1
            left = -1
            if kind != 12:
                left = _int(data, at + head - 4) * (2 if kind == 13 else 1)
                even, odd = int(data[at]), int(data[at + 1 if kind == 13 else at])
                if left < 0:
                    return -1
            at += head
        if at < 0:
            return -1
        while level > 0 and (left == 0 or (left < 0 and at < len(data) and data[at] == 0)):
            at += 1 if left < 0 else 0
            level -= 1
            left, even, odd = outer[level, 0], outer[level, 1], outer[level, 2]
        if level == 0:
            return at
        if left < 0:
            if at + 3 > len(data):
                return -1
            kind = int(data[at])
            at += 3
        else:
            kind = even if left % 2 == 0 else odd
            left -= 1


@compiled(LONG(BYTES, LONG, LONG, LONG_ROWS, LONG_ROWS))
def _behind_fields(data: np.ndarray, at: int, row: int, children: np.ndarray, outer: np.ndarray) -> int:
    """The position behind the next fields of a struct that are wholly there and have no names."""
    while at + 3 <= len(data) and data[at] != 0:
        number = (int(data[at + 1]) << 8) | int(data[at + 2])
        if row >= 0 and number < children.shape[1] and children[row, number] != -1:
            return at
        end = _behind(data, at + 3, int(data[at]), outer)
        if end < 0:
            return at
        at = end
    return at


@compiled(LONG(BYTES, LONG, LONGS, LONG_ROWS))
def _behind_elements(data: np.ndarray, at: int, level: np.ndarray, outer: np.ndarray) -> int:
    """The position behind the next elements of a container that are wholly there and have no names."""
    while level[_LEFT] > 0:
        end = _behind(data, at, level[_TYPE], outer)
        if end < 0:
            return at
        at = end
        level[_LEFT] -= 1
        if level[_KIND] == _MAP:
            kind = level[_TYPE]
            level[_TYPE] = level[_OTHER_TYPE]
            level[_OTHER_TYPE] = kind
    return at


@compiled(LONG(BYTES, LONG, LONGS, LONG_ROWS, LONG_ROWS))
def _next_value(data: np.ndarray, at: int, registers: np.ndarray, stack: np.ndarray, children: np.ndarray) -> int:
    """Which value comes next in the innermost struct or container, or that it is at its end."""
    top = registers[LEVEL] - 1
    if stack[top, _KIND] != _STRUCT:
        if stack[top, LEVEL_CHILD] == -1:
            at = _behind_elements(data, at, stack[top], stack[DEPTH:])
        if stack[top, _LEFT] == 0:
            registers[LEVEL] = top
            return at
        stack[top, _LEFT] -= 1
        kind = stack[top, _TYPE]
        registers[VALUE] = kind
        registers[_CHILD] = stack[top, LEVEL_CHILD]
        if stack[top, _KIND] == _MAP:
            stack[top, _TYPE] = stack[top, _OTHER_TYPE]
            stack[top, _OTHER_TYPE] = kind
        return at
    at = _behind_fields(data, at, stack[top, LEVEL_CHILD], children, stack[DEPTH:])
    if at < len(data) and data[at] == 0:
        registers[LEVEL] = top
        return at + 1
    if at + 3 > len(data):
        registers[AT] = at
        return _MORE
    number = (int(data[at + 1]) << 8) | int(data[at + 2])
    row = stack[top, LEVEL_CHILD]
    registers[VALUE] = int(data[at])
    registers[_CHILD] = children[row, number] if row >= 0 and number < children.shape[1] else -1
    return at + 3


@compiled(LONG(BYTES, LONG, LONGS, LONG_ROWS))
def _begin_string(data: np.ndarray, at: int, registers: np.ndarray, found: np.ndarray) -> int:
    if at + 4 > len(data):
        return _MORE
    length = _int(data, at)
    if length < 0:
        return MALFORMED
    if registers[_CHILD] < -1:
        count = registers[FOUND]
        if count == found.shape[0]:
            return FULL
        found[count, 0] = at + 4
        found[count, 1] = length
        found[count, 2] = registers[_CHILD]
        registers[FOUND] = count + 1
    registers[PASS] = length
    registers[VALUE] = 0
    return at + 4


@compiled(LONG(BYTES, LONG, LONGS, LONG_ROWS))
def _begin_container(data: np.ndarray, at: int, registers: np.ndarray, stack: np.ndarray) -> int:
    """A struct, list, set or map begins: a further level of the stack."""
    kind, level = registers[VALUE], registers[LEVEL]
    if level == DEPTH or kind < 12 or kind > 15:
        return MALFORMED
    head = 0 if kind == 12 else 6 if kind == 13 else 5
    if at + head > len(data):
        return _MORE
    stack[level, _KIND] = _STRUCT
    stack[level, LEVEL_CHILD] = registers[_CHILD]
    registers[VALUE] = 0
    registers[LEVEL] = level + 1
    if kind == 12:
        return at
    count = _int(data, at + head - 4)
    if count < 0:
        return MALFORMED
    size = _fixed_size(int(data[at]))
    if kind != 13 and size > 0:
        registers[PASS] = size * count
        registers[LEVEL] = level
        return at + head
    stack[level, _KIND] = _MAP if kind == 13 else _LIST
    stack[level, _LEFT] = 2 * count if kind == 13 else count
    stack[level, _TYPE] = int(data[at])
    stack[level, _OTHER_TYPE] = int(data[at + 1 if kind == 13 else at])
    return at + head


@compiled(LONG(BYTES, LONG, LONGS, LONG_ROWS, LONG_ROWS, LONG_ROWS))
def walk(
    data: np.ndarray, at: int, registers: np.ndarray, stack: np.ndarray, children: np.ndarray, found: np.ndarray
) -> int:
    """Go on from ``at``. Returns the position behind the last byte that was understood (the struct ends there if the
    level is 0), or MALFORMED, or FULL: ``found`` has no room; the position is in the registers then."""
    while True:
        if registers[PASS] > 0:
            step = min(registers[PASS], len(data) - at)
            at += step
            registers[PASS] -= step
            if registers[PASS] > 0:
                return at
        registers[AT] = at
        value = registers[VALUE]
        if value == 0:
            if registers[LEVEL] == 0:
                return at
            moved = _next_value(data, at, registers, stack, children)
        elif _fixed_size(value) > 0:
            registers[PASS] = _fixed_size(value)
            registers[VALUE] = 0
            moved = at
        elif value == 11:
            moved = _begin_string(data, at, registers, found)
        else:
            moved = _begin_container(data, at, registers, stack)
        if moved == _MORE:
            return int(registers[AT])
        if moved < 0:
            return moved
        at = moved
