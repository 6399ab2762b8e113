"""The inner loop of the check of Avro records, compiled by numba: it walks one record by the steps of its schema."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from binlake.decode.templates.avro_check import (
    BLOCK,
    BOOLEAN,
    BYTES,
    CUT,
    DOUBLE,
    ENTER,
    ENUM,
    FIXED,
    JUMP,
    KEY,
    LONGER,
    NO_BOOLEAN,
    NO_BRANCH,
    NO_COUNT,
    NO_INT,
    NO_LENGTH,
    NO_LONG,
    NO_SIZE,
    NO_SYMBOL,
    NO_UTF8,
    NOT_FINITE,
    SOUND,
    UNION,
)
from binlake.decode.templates.avro_check import LONG as LONG_STEP
from binlake.decode.templates.avro_kernel import BAD, DOUBLE_SPECIAL, FLOAT_SPECIAL, is_utf8, zigzag, zigzag_int
from binlake.decode.templates.kernel import PADDING, WORDS, words_of
from hudilake.compiled import BYTES as IN_BYTES
from hudilake.compiled import LONG, LONG_ROWS, LONGS, compiled

_Bytes = npt.NDArray[np.uint8]
_Longs = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

#: Of an array or map that the walk is in: the items that are left of its block, the end of the block or _NONE, and
#: the number of the array or map.
_ITEMS, _END, _NUMBER = range(3)
_NONE = -1
#: Where the walk ends: the byte, the step, and how many keys of maps there were.
_BYTE, _STEP, _KEYS = range(3)
_NO_ROWS = np.zeros((0, 3), dtype=np.int64)


def answer(value: bytes, start: int, steps: _Longs, depth: int, *, keys: bool) -> tuple[int, int, int, _Longs]:
    """What the check says of the record from ``start`` to the end of a value, the byte and the step where it ended,
    and the keys of maps: (n, 3) of map, first byte, length. ``keys``: whether there may be any."""
    padded = value + PADDING
    ended = np.zeros(3, dtype=np.int64)
    entered = np.zeros((depth, 3), dtype=np.int64) if depth else _NO_ROWS
    spans = np.zeros((len(value), 3), dtype=np.int64) if keys else _NO_ROWS
    text = np.frombuffer(padded, dtype=np.uint8)
    verdict = check(text, words_of(padded), start, len(value), steps, entered, spans, ended)
    return verdict, int(ended[_BYTE]), int(ended[_STEP]), spans[: ended[_KEYS]]


@compiled(LONG(IN_BYTES, WORDS, LONG, LONG, LONG_ROWS, LONG_ROWS, LONG_ROWS, LONGS))
def check(
    text: _Bytes, words: _Words, start: int, end: int, steps: _Longs, entered: _Longs, keys: _Longs, ended: _Longs
) -> int:
    """Walk the record at ``start`` to ``end`` of ``text``. ``words``: of ``text`` (see ``kernel.words_of``).

    ``entered``: a row for each array and map that may be in one another. ``keys`` and ``ended`` are filled.
    """
    cursor, n, number, depth, blocks, spans = start, 0, 0, -1, 0, 0
    special_byte, special_step = _NONE, 0
    while n < len(steps):
        step, arg = steps[n, 0], steps[n, 1]
        ended[_BYTE], ended[_STEP] = cursor, n
        n += 1
        if step <= UNION:
            number, cursor = zigzag_int(text, cursor, end)
            if cursor == BAD:
                return NO_INT
            if step == ENUM and not 0 <= number < arg:
                return NO_SYMBOL
            if step == UNION:
                if not 0 <= number < arg:
                    return NO_BRANCH
                n += number
        elif step <= BYTES:
            number, cursor = zigzag(text, cursor, end)
            if cursor == BAD:
                return NO_LONG
            if step != LONG_STEP:
                if number < 0:
                    return NO_LENGTH
                if number > end - cursor:
                    return CUT
                if step != BYTES and not is_utf8(text, words, cursor, cursor + number):
                    return NO_UTF8
                if step == KEY:
                    keys[spans, 0], keys[spans, 1], keys[spans, 2] = entered[depth, _NUMBER], cursor, number
                    spans += 1
                    ended[_KEYS] = spans
                cursor += number
        elif step == JUMP:
            n = arg
        elif step == BOOLEAN:
            if cursor >= end:
                return CUT
            if text[cursor] > 1:
                return NO_BOOLEAN
            cursor += 1
        elif step == ENTER:
            depth += 1
            entered[depth, _ITEMS], entered[depth, _END], entered[depth, _NUMBER] = 0, _NONE, blocks
            blocks += 1
        elif step == BLOCK:
            if entered[depth, _ITEMS] == 0:
                if entered[depth, _END] not in (_NONE, cursor):
                    return NO_SIZE
                number, cursor = zigzag(text, cursor, end)
                if cursor == BAD:
                    return NO_LONG
                entered[depth, _END] = _NONE
                if number < 0:
                    size, cursor = zigzag(text, cursor, end)
                    if cursor == BAD:
                        return NO_LONG
                    if not 0 <= size <= end - cursor:
                        return NO_SIZE
                    entered[depth, _END] = cursor + size
                    number = -number  # the least number stays negative
                if not 0 <= number <= end - cursor:
                    return NO_COUNT
                entered[depth, _ITEMS] = number
            if entered[depth, _ITEMS] == 0:
                depth -= 1
                n = arg
            else:
                entered[depth, _ITEMS] -= 1
        else:
            size = arg if step == FIXED else 8 if step == DOUBLE else 4
            if size > end - cursor:
                return CUT
            if step != FIXED:
                special = DOUBLE_SPECIAL if step == DOUBLE else FLOAT_SPECIAL
                if words[cursor] & np.uint64(special) == np.uint64(special) and special_byte == _NONE:
                    special_byte, special_step = cursor, n - 1
            cursor += size
    ended[_BYTE], ended[_STEP] = cursor, n
    if cursor != end:
        return LONGER
    if special_byte != _NONE:
        ended[_BYTE], ended[_STEP] = special_byte, special_step
        return NOT_FINITE
    return SOUND
