"""The inner loops of the decoder, compiled by numba: they read messages and objects out of one buffer.

A message is read by the steps of a template: fixed bytes, and values between them. An object is read member by member,
by the members' names. Any other input is left to the general decoder, so the loops do not explain faults.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, types

from binlake.decode.templates.value_kernel import (
    ABSENT,
    BAD,
    CLOSE,
    CLOSE_LIST,
    COLON,
    COMMA,
    ESCAPED,
    INT,
    LONGEST_INT,
    MINUS,
    NESTED,
    NINE,
    NULL,
    NUMBER,
    OPEN,
    OPEN_LIST,
    QUOTE,
    TEXT,
    ZERO,
    read_digits,
    read_name,
    read_nested,
    read_number,
    read_span,
    read_text,
    read_word,
    skip_blanks,
)
from hudilake.compiled import BYTES, LONGS, compiled

_Bytes = npt.NDArray[np.uint8]
_Longs = npt.NDArray[np.int64]

#: Steps of a template. LITERAL: ``size`` bytes from ``arg`` on of the literals. MARK: store the place in row ``arg`` of
#: the marks. VALUE: a value into slot ``arg``. PLAIN: a scalar of ASCII bytes without escapes, and no NUMBER.
#: SPAN: what lies from an opening to the next closing bracket of an array, whose content is read, and checked, later;
#: or a scalar. TEXTS: an array of texts as PLAIN has them; or a PLAIN.
LITERAL, MARK, VALUE, PLAIN = 0, 1, 2, 3
SPAN, TEXTS = 5, 6
NO_SLOT = -1
#: For members of objects, besides VALUE and PLAIN: any value as TEXT, unchanged byte for byte.
RAW = 4

_WORD, _ONES = 8, 0x0101010101010101


@njit(nogil=True)
def _list_span(text: _Bytes, words: npt.NDArray[np.uint64], cursor: int, end: int) -> tuple[int, int]:
    """(what, end) of what ends with the next closing bracket of an array."""
    while cursor + _WORD <= end:
        other = words[cursor] ^ np.uint64(CLOSE_LIST * _ONES)  # a byte is 0 where the bracket is
        if (other - np.uint64(_ONES)) & ~other & np.uint64(_ONES << 7):
            break
        cursor += _WORD
    while cursor < end and text[cursor] != CLOSE_LIST:
        cursor += 1
    return (NESTED, cursor + 1) if cursor < end else (BAD, end)


@njit(nogil=True)
def _texts(text: _Bytes, cursor: int, end: int) -> tuple[int, int]:
    """(what, end) of an array, without white space, of ASCII strings without escapes."""
    cursor += 1
    if cursor < end and text[cursor] == CLOSE_LIST:
        return NESTED, cursor + 1
    while cursor < end and text[cursor] == QUOTE:
        what, cursor, plain = read_text(text, cursor, end)
        if what != TEXT or not plain or cursor >= end:
            break
        if text[cursor] == CLOSE_LIST:
            return NESTED, cursor + 1
        if text[cursor] != COMMA:
            break
        cursor += 1
    return BAD, end


@njit(nogil=True, inline="always")
def _put(
    what: npt.NDArray[np.int8], value: _Longs, length: npt.NDArray[np.int32],
    slot: int, row: int, found: int, number: int, start: int, end: int,
) -> None:  # fmt: skip
    """Store the value from ``start`` to ``end``."""
    what[slot, row] = found
    if found == INT:
        value[slot, row] = number
    elif found in (NUMBER, NESTED):
        value[slot, row], length[slot, row] = start, end - start
    elif found in (TEXT, ESCAPED):
        value[slot, row], length[slot, row] = start + 1, end - start - 2


#: What a text has more at its end, so that a word begins at each of its bytes.
PADDING = bytes(8)
#: The signature of ``words_of``.
WORDS = types.Array(types.uint64, 1, "A", readonly=True, aligned=False)


def words_of(text: bytes) -> npt.NDArray[np.uint64]:
    """The eight bytes from each byte of a text on, without a copy. The text ends with PADDING."""
    return np.ndarray(len(text) - _WORD, dtype=np.uint64, buffer=text, strides=(1,))


@compiled(
    types.void(
        BYTES, WORDS, LONGS, LONGS, LONGS, types.int64[:, ::1], BYTES, WORDS,
        types.boolean[::1], types.int8[:, ::1], types.int64[:, ::1], types.int32[:, ::1], types.int64[:, ::1],
    )
)  # fmt: skip
def scan(
    text: _Bytes, words: npt.NDArray[np.uint64], rows: _Longs, starts: _Longs, ends: _Longs,
    steps: _Longs, literals: _Bytes, literal_words: npt.NDArray[np.uint64],
    matched: npt.NDArray[np.bool_], what: npt.NDArray[np.int8], value: _Longs, length: npt.NDArray[np.int32],
    marks: _Longs,
) -> None:  # fmt: skip
    """Read the messages ``rows``, which lie at ``starts`` to ``ends`` of ``text``, by one template.

    ``words``, ``literal_words``: of ``text`` and ``literals`` (see ``words_of``).
    ``steps``: (n, 3) of step, arg, size. Filled for each message that matches: ``matched`` by row; ``what``, ``value``
    and ``length`` by slot and row; ``marks`` by mark and row. The slots of other messages stay ABSENT.
    """
    for row in rows:
        cursor, end, good = starts[row], ends[row], True
        for n in range(len(steps)):
            step, arg = steps[n, 0], steps[n, 1]
            if step == LITERAL:
                size = steps[n, 2]
                good = cursor + size <= end
                i = 0
                while good and i + _WORD <= size:
                    good = words[cursor + i] == literal_words[arg + i]
                    i += _WORD
                while good and i < size:
                    good = text[cursor + i] == literals[arg + i]
                    i += 1
                if not good:
                    break
                cursor += size
                continue
            if step == MARK:
                marks[arg, row] = cursor
                continue
            if cursor >= end:
                good = False
                break
            start, number, plain = cursor, 0, True
            byte = text[cursor]
            if byte == QUOTE:
                kind, cursor, plain = read_text(text, cursor, end)
            elif byte == MINUS or ZERO <= byte <= NINE:
                kind, cursor, number = read_number(text, cursor, end)
            elif step == VALUE and byte in (OPEN, OPEN_LIST):
                kind, cursor = read_nested(text, cursor, end)
            elif step == SPAN and byte == OPEN_LIST:
                kind, cursor = _list_span(text, words, cursor, end)
            elif step == TEXTS and byte == OPEN_LIST:
                kind, cursor = _texts(text, cursor, end)
            else:
                kind, cursor = read_word(text, cursor, end)
            if kind == BAD or (step in (PLAIN, TEXTS) and (kind in (ESCAPED, NUMBER) or not plain)):
                good = False
                break
            if arg != NO_SLOT:
                _put(what, value, length, arg, row, kind, number, start, cursor)
        good = good and cursor == end
        matched[row] = good
        if not good:
            for slot in range(len(what)):
                what[slot, row], value[slot, row] = ABSENT, 0


@njit(nogil=True)
def _is_name(text: _Bytes, at: int, end: int, names: _Bytes, first: int, behind: int) -> bool:
    """Whether the quoted name is at ``at``."""
    size = behind - first
    if at + size + 2 > end or text[at] != QUOTE or text[at + size + 1] != QUOTE:
        return False
    for i in range(size):  # noqa: SIM110 - a loop is what is compiled
        if text[at + 1 + i] != names[first + i]:
            return False
    return True


@njit(nogil=True)
def _find(text: _Bytes, at: int, end: int, names: _Bytes, bounds: _Longs, guess: int) -> int:
    """The index of the name at ``at``, searched from ``guess`` on; BAD if it is none of them."""
    count = len(bounds) - 1
    for n in range(count):
        slot = guess + n if guess + n < count else guess + n - count
        if _is_name(text, at, end, names, bounds[slot], bounds[slot + 1]):
            return slot
    return BAD


@compiled(
    types.void(
        BYTES, LONGS, LONGS, BYTES, LONGS, LONGS,
        types.boolean[::1], types.int8[:, ::1], types.int64[:, ::1], types.int32[:, ::1],
    )
)  # fmt: skip
def read_objects(
    text: _Bytes, starts: _Longs, ends: _Longs, names: _Bytes, bounds: _Longs, steps: _Longs,
    matched: npt.NDArray[np.bool_], what: npt.NDArray[np.int8], value: _Longs, length: npt.NDArray[np.int32],
) -> None:  # fmt: skip
    """Read objects whose members have no other names than ``names``, each at most once, in any order.

    Object ``n`` lies at ``starts[n]`` to ``ends[n]`` of ``text``. Name ``i`` is ``names[bounds[i]:bounds[i + 1]]``,
    spelled as in JSON; its values are read by ``steps[i]`` (VALUE, PLAIN, RAW) into slot ``i``. Filled as by ``scan``.
    """
    for row in range(len(starts)):
        cursor, end, good, guess = starts[row], ends[row], False, 0
        if cursor < end and text[cursor] == OPEN:
            cursor = skip_blanks(text, cursor + 1, end)
            good = cursor < end
        if good and text[cursor] == CLOSE:
            matched[row] = cursor + 1 == end
            continue
        while good:
            slot = _find(text, cursor, end, names, bounds, guess)
            good = slot != BAD and what[slot, row] == ABSENT
            if not good:
                break
            guess, step = slot + 1, steps[slot]
            start = cursor = read_name(text, cursor, end)
            good = cursor != BAD and cursor < end
            if not good:
                break
            byte, number, plain = text[cursor], 0, True
            if byte == QUOTE:
                kind, cursor, plain = read_text(text, cursor, end)
            elif byte == MINUS or ZERO <= byte <= NINE:
                kind, cursor, number = read_number(text, cursor, end)
            elif step != PLAIN and byte in (OPEN, OPEN_LIST):
                kind, cursor = read_nested(text, cursor, end) if step == RAW else read_span(text, cursor, end)
            else:
                kind, cursor = read_word(text, cursor, end)
            good = kind != BAD and (step != PLAIN or (plain and kind not in (ESCAPED, NUMBER)))
            if not good:
                break
            if step == RAW and kind != NULL:
                _put(what, value, length, slot, row, TEXT, 0, start - 1, cursor + 1)
            else:
                _put(what, value, length, slot, row, kind, number, start, cursor)
            cursor = skip_blanks(text, cursor, end)
            if cursor < end and text[cursor] == CLOSE:
                good = cursor + 1 == end
                break
            good = cursor < end and text[cursor] == COMMA
            cursor = skip_blanks(text, cursor + 1, end)
        matched[row] = good
        if not good:
            for slot in range(len(what)):
                what[slot, row], value[slot, row] = ABSENT, 0


@compiled(types.int64(BYTES, LONGS, LONGS, types.int32[::1], LONGS, LONGS, LONGS))
def elements(
    text: _Bytes, rows: _Longs, value: _Longs, length: npt.NDArray[np.int32],
    counts: _Longs, starts: _Longs, ends: _Longs,
) -> int:  # fmt: skip
    """The objects of arrays: that of message ``rows[i]`` lies at ``value`` for ``length`` bytes, and is valid JSON.

    Filled: ``counts[i]``, the objects of array ``i``, -1 if it is none of objects alone; where each lies, array by
    array. Returns how many there are in all; -1 if ``starts`` is too short for them.
    """
    put = 0
    for i in range(len(rows)):
        row, first = rows[i], put
        cursor, end = value[row], value[row] + length[row]
        good = cursor < end and text[cursor] == OPEN_LIST
        cursor = skip_blanks(text, cursor + 1, end) if good else end
        while good and cursor < end and text[cursor] != CLOSE_LIST:
            good = text[cursor] == OPEN
            if not good:
                break
            if put == len(starts):
                return -1
            _, behind = read_span(text, cursor, end)
            starts[put], ends[put] = cursor, behind
            put += 1
            cursor = skip_blanks(text, behind, end)
            if cursor < end and text[cursor] == COMMA:
                cursor = skip_blanks(text, cursor + 1, end)
        counts[i] = put - first if good else -1
        if not good:
            put = first
    return put


@compiled(types.void(BYTES, LONGS, LONGS, LONGS, types.int32[::1]))
def split_places(text: _Bytes, starts: _Longs, ends: _Longs, numbers: _Longs, sizes: npt.NDArray[np.int32]) -> None:
    """Split texts at their last colon. Filled: the number behind it, -1 if there is none of 18 digits at most; the
    size of what is before it, 0 without a colon."""
    for n in range(len(starts)):
        start, end = starts[n], ends[n]
        behind = end
        while behind > start and text[behind - 1] != COLON:
            behind -= 1
        sizes[n] = max(behind - 1 - start, 0)
        number = 0 if behind < end and end - behind < LONGEST_INT and read_digits(text, behind, end) == end else -1
        for place in range(behind, end if number == 0 else behind):
            number = number * 10 + (text[place] - ZERO)
        numbers[n] = number
