"""The inner loop of the Avro reader, compiled by numba: it walks records by the steps of their writer's schema.

A record that does not end where its message ends, or has anything else that is not expected, is left to the general
decoder, so the loop does not explain faults. Avro's binary encoding: the Avro specification, "Binary Encoding".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, types

from binlake.decode.templates.kernel import NO_SLOT, WORDS
from binlake.decode.templates.value_kernel import ABSENT, BINARY, DOUBLE, FALSE, FLOAT, INT, NESTED, NULL, TEXT, TRUE
from hudilake.compiled import BYTES, LONGS, compiled

_Bytes = npt.NDArray[np.uint8]
_Longs = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

#: Steps: (step, slot, arg, more). READ_FIXED: ``arg`` bytes. READ_ENUM: one of ``more`` symbols, from ``arg`` on of the
#: symbols. UNION: of null and a value, ``arg`` is the branch of null; behind null the walk goes on at step ``more``.
#: ONLY: a union of one branch. BEGIN: a nested record begins, whose slot becomes NESTED. MARK: store the place in row
#: ``slot`` of the marks.
READ_INT, READ_LONG, READ_BOOLEAN, READ_FLOAT, READ_DOUBLE, READ_TEXT, READ_BYTES, READ_FIXED, READ_ENUM = range(9)
UNION, ONLY, BEGIN, MARK = range(9, 13)

BAD = -1
_CONTINUED, _SEVEN_BITS, _LAST_SHIFT, _LAST_BYTE = 0x80, 0x7F, 63, 1
_HIGH_BITS = 0x8080808080808080
_FLOAT_BITS, FLOAT_SPECIAL, DOUBLE_SPECIAL = 0xFFFFFFFF, 0x7F800000, 0x7FF0000000000000
_INT_BYTES, _INT_LIMIT = 5, 2**31
_WORD = 8


@njit(nogil=True)
def zigzag(text: _Bytes, cursor: int, end: int) -> tuple[int, int]:
    """The zigzag number of 64 bits at ``cursor``, and the place behind it; BAD as the place if there is none."""
    value, shift = np.uint64(0), 0
    while cursor < end and shift <= _LAST_SHIFT:
        byte = text[cursor]
        cursor += 1
        if shift == _LAST_SHIFT and byte > _LAST_BYTE:
            break
        value |= np.uint64(byte & _SEVEN_BITS) << np.uint64(shift)
        if byte < _CONTINUED:
            half = np.int64(value >> np.uint64(1))
            return int(-half - 1 if value & np.uint64(1) else half), cursor
        shift += 7
    return 0, BAD


@njit(nogil=True)
def zigzag_int(text: _Bytes, cursor: int, end: int) -> tuple[int, int]:
    """The zigzag number of 32 bits in at most 5 bytes, as Java's reader has it; BAD as the place if there is none."""
    number, behind = zigzag(text, cursor, end)
    if behind - cursor > _INT_BYTES or not -_INT_LIMIT <= number < _INT_LIMIT:
        return 0, BAD
    return number, behind


@njit(nogil=True)
def _tail(text: _Bytes, cursor: int, end: int) -> bool:
    return cursor < end and 0x80 <= text[cursor] < 0xC0


@njit(nogil=True)
def is_utf8(text: _Bytes, words: _Words, cursor: int, end: int) -> bool:
    """Whether bytes are UTF-8 as Python's strict decoder takes it: nothing overlong, no surrogates (RFC 3629)."""
    while cursor + _WORD <= end and words[cursor] & np.uint64(_HIGH_BITS) == 0:
        cursor += _WORD
    while cursor < end:
        byte = text[cursor]
        if byte < 0x80:
            cursor += 1
        elif 0xC2 <= byte < 0xE0:
            if not _tail(text, cursor + 1, end):
                return False
            cursor += 2
        elif 0xE0 <= byte < 0xF0:
            if not (_tail(text, cursor + 1, end) and _tail(text, cursor + 2, end)):
                return False
            second = text[cursor + 1]
            if (byte == 0xE0 and second < 0xA0) or (byte == 0xED and second >= 0xA0):
                return False
            cursor += 3
        elif 0xF0 <= byte < 0xF5:
            if not (_tail(text, cursor + 1, end) and _tail(text, cursor + 2, end) and _tail(text, cursor + 3, end)):
                return False
            second = text[cursor + 1]
            if (byte == 0xF0 and second < 0x90) or (byte == 0xF4 and second >= 0x90):
                return False
            cursor += 4
        else:
            return False
    return True


@compiled(
    types.int64(
        BYTES, WORDS, LONGS, LONGS, LONGS, types.int64[:, ::1], LONGS, LONGS,
        types.boolean[::1], types.int8[:, ::1], types.int64[:, ::1], types.int32[:, ::1], types.int64[:, ::1],
    )
)  # fmt: skip
def walk(
    text: _Bytes, words: _Words, rows: _Longs, starts: _Longs, ends: _Longs,
    steps: _Longs, symbols: _Longs, sizes: _Longs,
    matched: npt.NDArray[np.bool_], what: npt.NDArray[np.int8], value: _Longs, length: npt.NDArray[np.int32],
    marks: _Longs,
) -> int:  # fmt: skip
    """Read the records of the messages ``rows``, which lie at ``starts`` to ``ends`` of ``text``.

    ``words``: of ``text`` (see ``kernel.words_of``). ``steps``: (n, 4). ``symbols``, ``sizes``: where each symbol of an
    enum lies in ``text``. Filled for each message whose record is valid and whole: ``matched`` by row; ``what``,
    ``value`` and ``length`` by slot and row; ``marks`` by mark and row. The slots of other messages stay ABSENT.
    Returns how many are matched.
    """
    count = 0
    for row in rows:
        cursor, end, good, n = starts[row], ends[row], True, 0
        while n < len(steps):
            step, slot = steps[n, 0], steps[n, 1]
            n += 1
            if step <= READ_BYTES:
                if step <= READ_LONG or step >= READ_TEXT:
                    if cursor < end and text[cursor] < _CONTINUED:
                        number = int(text[cursor] >> 1) ^ -int(text[cursor] & 1)
                        cursor += 1
                    else:
                        if step == READ_INT:
                            number, cursor = zigzag_int(text, cursor, end)
                        else:
                            number, cursor = zigzag(text, cursor, end)
                        if cursor == BAD:
                            good = False
                            break
                    if step <= READ_LONG:
                        if slot != NO_SLOT:
                            what[slot, row], value[slot, row] = INT, number
                        continue
                    if number < 0 or number > end - cursor:
                        good = False
                        break
                    if step == READ_TEXT and not is_utf8(text, words, cursor, cursor + number):
                        good = False
                        break
                    if slot != NO_SLOT:
                        what[slot, row] = TEXT if step == READ_TEXT else BINARY
                        value[slot, row], length[slot, row] = cursor, number
                    cursor += number
                elif step == READ_BOOLEAN:
                    if cursor >= end or text[cursor] > 1:
                        good = False
                        break
                    if slot != NO_SLOT:
                        what[slot, row] = TRUE if text[cursor] else FALSE
                    cursor += 1
                else:
                    size = 8 if step == READ_DOUBLE else 4
                    if cursor + size > end:
                        good = False
                        break
                    bits, special = words[cursor], np.uint64(DOUBLE_SPECIAL)
                    if step == READ_FLOAT:
                        bits &= np.uint64(_FLOAT_BITS)
                        special = np.uint64(FLOAT_SPECIAL)
                    if bits & special == special:
                        good = False
                        break
                    if slot != NO_SLOT:
                        what[slot, row] = DOUBLE if step == READ_DOUBLE else FLOAT
                        value[slot, row] = np.int64(bits)
                    cursor += size
                continue
            arg = steps[n - 1, 2]
            if step in (UNION, ONLY):
                if cursor >= end or text[cursor] >= _CONTINUED or text[cursor] & 1:
                    good = False
                    break
                branch = text[cursor] >> 1
                cursor += 1
                if branch > 1 or (step == ONLY and branch != 0):
                    good = False
                    break
                if step == UNION and branch == arg:
                    if slot != NO_SLOT:
                        what[slot, row] = NULL
                    n = steps[n - 1, 3]
            elif step == BEGIN:
                if slot != NO_SLOT:
                    what[slot, row] = NESTED
            elif step == MARK:
                marks[slot, row] = cursor
            elif step == READ_FIXED:
                if cursor + arg > end:
                    good = False
                    break
                if slot != NO_SLOT:
                    what[slot, row], value[slot, row], length[slot, row] = BINARY, cursor, arg
                cursor += arg
            else:
                number, cursor = zigzag_int(text, cursor, end)
                if cursor == BAD or number < 0 or number >= steps[n - 1, 3]:
                    good = False
                    break
                if slot != NO_SLOT:
                    what[slot, row], value[slot, row], length[slot, row] = (
                        TEXT,
                        symbols[arg + number],
                        sizes[arg + number],
                    )
        good = good and cursor == end
        matched[row] = good
        if good:
            count += 1
        else:
            for slot in range(len(what)):
                what[slot, row], value[slot, row] = ABSENT, 0
            for mark in range(len(marks)):
                marks[mark, row] = 0
    return count
