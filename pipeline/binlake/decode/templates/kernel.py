"""The inner loops of the decoder, compiled by numba: they read messages and objects, and copy texts out of one buffer.

A message is read by the steps of a template: fixed bytes, and values between them. An object is read member by member,
by the members' names. Any other input is left to the general decoder, so the loops do not explain faults.
JSON's grammar: RFC 8259.

All loops are in one module because numba compiles a function again when the function's own module has changed, but not
when a module that it calls has changed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, types

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

#: The content of a slot. TEXT and ESCAPED: place and length of the text between the quotes (an escaped text must be
#: decoded). INT: the number itself, within plus and minus 2**63 - 1, no -0. NUMBER: place and length of any other
#: number. NESTED: place and length of an object or array; from ``read_objects`` only its brackets are checked.
ABSENT, NULL, TEXT, ESCAPED, INT, NUMBER, TRUE, FALSE, NESTED = range(9)
#: Of Avro records alone. BINARY: place and length of bytes. DOUBLE and FLOAT: the bits of a finite number. INT is there
#: any number of 64 bits, and NESTED a record, whose members have slots of their own.
BINARY, DOUBLE, FLOAT = range(9, 12)
KINDS = 12
_BAD = -1
_LONGEST_INT = 19
_MAX_LONG = (1 << 63) - 1
#: The deepest nesting of arrays and objects in a value. The bits of one integer record which one each level is.
_DEEPEST = 60

_QUOTE, _BACKSLASH, _MINUS, _PLUS, _POINT, _ZERO, _NINE = b'"\\-+.09'
_SMALL_E, _LARGE_E, _F, _N, _T, _U = b"eEfntu"
_BLANK, _CASE, _DELETE = 0x20, 0x20, 0x7F
#: Meanings of letters after a backslash; any other character means itself.
_ESCAPED_LETTERS, _LETTERS_MEANT = b"bfnrt", b"\b\f\n\r\t"
_WORD, _ONES = 8, 0x0101010101010101
_COMMA, _COLON, _OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = b",:{}[]"


@njit(nogil=True)
def _digits(text: _Bytes, at: int, end: int) -> int:
    while at < end and _ZERO <= text[at] <= _NINE:
        at += 1
    return at


@njit(nogil=True)
def _code_unit(text: _Bytes, at: int, end: int) -> int:
    """The code unit of ``u`` and four hex digits after a backslash at ``at``; -1 if they are not there."""
    if at + 6 > end or text[at] != _BACKSLASH or text[at + 1] != _U:
        return _BAD
    unit = 0
    for place in range(at + 2, at + 6):
        letter = text[place] | _CASE
        if _ZERO <= text[place] <= _NINE:
            unit = unit * 16 + (text[place] - _ZERO)
        elif ord("a") <= letter <= _F:
            unit = unit * 16 + (letter - ord("a") + 10)
        else:
            return _BAD
    return unit


@njit(nogil=True)
def _escape(text: _Bytes, at: int, end: int) -> int:
    """The length of the escape at a backslash, both halves of a surrogate pair together; 0 if it is invalid."""
    if at + 1 >= end:
        return 0
    byte = text[at + 1]
    if byte in (_QUOTE, _BACKSLASH, ord("/"), ord("b"), _F, _N, ord("r"), _T):
        return 2
    unit = _code_unit(text, at, end)
    if unit < 0 or 0xDC00 <= unit < 0xE000:
        return 0
    if unit < 0xD800 or unit >= 0xE000:
        return 6
    return 12 if 0xDC00 <= _code_unit(text, at + 6, end) < 0xE000 else 0


@njit(nogil=True)
def _text(text: _Bytes, at: int, end: int) -> tuple[int, int, bool]:
    """(what, end after the quote, whether all of it is ASCII) of a string whose first quote is at ``at``."""
    what, plain = TEXT, True
    at += 1
    while at < end:
        byte = text[at]
        if byte == _QUOTE:
            return what, at + 1, plain
        if byte < _BLANK:
            break
        if byte == _BACKSLASH:
            what = ESCAPED
            size = _escape(text, at, end)
            if size == 0:
                break
            at += size - 1
        elif byte > _DELETE:
            plain = False
        at += 1
    return _BAD, at, False


@njit(nogil=True)
def read_number(text: _Bytes, at: int, end: int) -> tuple[int, int, int]:
    """(what, end, the integer) of a number."""
    negative = text[at] == _MINUS
    first = at + 1 if negative else at
    at = _digits(text, first, end)
    if at == first or (at > first + 1 and text[first] == _ZERO):
        return _BAD, at, 0
    what = INT if at - first <= _LONGEST_INT else NUMBER
    value = 0
    if what == INT:
        last = at if at - first < _LONGEST_INT else at - 1
        for place in range(first, last):
            value = value * 10 + (text[place] - _ZERO)
        if last < at:
            digit = text[last] - _ZERO
            if value > (_MAX_LONG - digit) // 10:
                what, value = NUMBER, 1
            else:
                value = value * 10 + digit
    if at < end and text[at] == _POINT:
        what, first = NUMBER, at + 1
        at = _digits(text, first, end)
        if at == first:
            return _BAD, at, 0
    if at < end and (text[at] == _SMALL_E or text[at] == _LARGE_E):
        what, first = NUMBER, at + 1
        if first < end and (text[first] == _PLUS or text[first] == _MINUS):
            first += 1
        at = _digits(text, first, end)
        if at == first:
            return _BAD, at, 0
    if negative and value == 0:
        what = NUMBER  # -0.0 is a number of its own
    return what, at, -value if negative else value


@njit(nogil=True)
def _word(text: _Bytes, at: int, end: int) -> tuple[int, int]:
    """(what, end) of null, true or false."""
    if at + 4 <= end:
        a, b, c, d = text[at], text[at + 1], text[at + 2], text[at + 3]
        if a == _N and b == _U and c == ord("l") and d == ord("l"):
            return NULL, at + 4
        if a == _T and b == ord("r") and c == _U and d == _SMALL_E:
            return TRUE, at + 4
        if a == _F and b == ord("a") and c == ord("l") and d == ord("s") and at + 5 <= end and text[at + 4] == _SMALL_E:
            return FALSE, at + 5
    return _BAD, at


@njit(nogil=True, inline="always")
def _scalar(text: _Bytes, at: int, end: int) -> tuple[int, int, int, bool]:
    """(what, end, the integer, whether all of it is ASCII) of a string, number or word."""
    byte = text[at]
    if byte == _QUOTE:
        what, at, plain = _text(text, at, end)
        return what, at, 0, plain
    if byte == _MINUS or _ZERO <= byte <= _NINE:
        what, at, number = read_number(text, at, end)
        return what, at, number, True
    what, at = _word(text, at, end)
    return what, at, 0, True


@njit(nogil=True, inline="always")
def _blanks(text: _Bytes, at: int, end: int) -> int:
    while at < end and text[at] == _BLANK:
        at += 1
    return at


@njit(nogil=True)
def _name(text: _Bytes, at: int, end: int) -> int:
    """Where the value of the member begins whose name is at ``at``; _BAD if there is no name."""
    if at >= end or text[at] != _QUOTE:
        return _BAD
    what, at, _ = _text(text, at, end)
    at = _blanks(text, at, end)
    if what == _BAD or at >= end or text[at] != _COLON:
        return _BAD
    return _blanks(text, at + 1, end)


@njit(nogil=True)
def _nested(text: _Bytes, at: int, end: int) -> tuple[int, int]:
    """(what, end) of an object or array that begins at ``at``, with blanks as its only white space."""
    depth, objects = 0, 0
    while at < end:
        byte = text[at]
        if byte in (_OPEN, _OPEN_LIST):
            if depth == _DEEPEST:
                break
            depth += 1
            objects = objects << 1 | (byte == _OPEN)
            at = _blanks(text, at + 1, end)
            if at >= end or text[at] != (_CLOSE if objects & 1 else _CLOSE_LIST):
                at = _name(text, at, end) if objects & 1 else at
                if at == _BAD:
                    break
                continue
        else:
            what, at, _, _ = _scalar(text, at, end)
            if what == _BAD:
                break
        at = _blanks(text, at, end)  # a value is complete, or an empty object or array is about to be
        while at < end and text[at] == (_CLOSE if objects & 1 else _CLOSE_LIST):
            depth -= 1
            objects >>= 1
            at += 1
            if depth == 0:
                return NESTED, at
            at = _blanks(text, at, end)
        if at >= end or text[at] != _COMMA:
            break
        at = _blanks(text, at + 1, end)
        at = _name(text, at, end) if objects & 1 else at
        if at == _BAD:
            break
    return _BAD, end


@njit(nogil=True)
def _span(text: _Bytes, at: int, end: int) -> tuple[int, int]:
    """Returns (what, end) of an object or array; its content is not checked, because its parts are read again."""
    depth, quoted = 0, False
    while at < end:
        byte = text[at]
        at += 1
        if byte == _QUOTE:
            quoted = not quoted
        elif byte < _BLANK:
            break
        elif quoted:
            at += byte == _BACKSLASH
        elif byte in (_OPEN, _OPEN_LIST):
            depth += 1
        elif byte in (_CLOSE, _CLOSE_LIST):
            depth -= 1
            if depth == 0:
                return NESTED, at
    return _BAD, end


@njit(nogil=True)
def _list_span(text: _Bytes, words: npt.NDArray[np.uint64], cursor: int, end: int) -> tuple[int, int]:
    """(what, end) of what ends with the next closing bracket of an array."""
    while cursor + _WORD <= end:
        other = words[cursor] ^ np.uint64(_CLOSE_LIST * _ONES)  # a byte is 0 where the bracket is
        if (other - np.uint64(_ONES)) & ~other & np.uint64(_ONES << 7):
            break
        cursor += _WORD
    while cursor < end and text[cursor] != _CLOSE_LIST:
        cursor += 1
    return (NESTED, cursor + 1) if cursor < end else (_BAD, end)


@njit(nogil=True)
def _texts(text: _Bytes, cursor: int, end: int) -> tuple[int, int]:
    """(what, end) of an array, without white space, of ASCII strings without escapes."""
    cursor += 1
    if cursor < end and text[cursor] == _CLOSE_LIST:
        return NESTED, cursor + 1
    while cursor < end and text[cursor] == _QUOTE:
        what, cursor, plain = _text(text, cursor, end)
        if what != TEXT or not plain or cursor >= end:
            break
        if text[cursor] == _CLOSE_LIST:
            return NESTED, cursor + 1
        if text[cursor] != _COMMA:
            break
        cursor += 1
    return _BAD, end


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
            if byte == _QUOTE:
                kind, cursor, plain = _text(text, cursor, end)
            elif byte == _MINUS or _ZERO <= byte <= _NINE:
                kind, cursor, number = read_number(text, cursor, end)
            elif step == VALUE and byte in (_OPEN, _OPEN_LIST):
                kind, cursor = _nested(text, cursor, end)
            elif step == SPAN and byte == _OPEN_LIST:
                kind, cursor = _list_span(text, words, cursor, end)
            elif step == TEXTS and byte == _OPEN_LIST:
                kind, cursor = _texts(text, cursor, end)
            else:
                kind, cursor = _word(text, cursor, end)
            if kind == _BAD or (step in (PLAIN, TEXTS) and (kind in (ESCAPED, NUMBER) or not plain)):
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
    if at + size + 2 > end or text[at] != _QUOTE or text[at + size + 1] != _QUOTE:
        return False
    for i in range(size):  # noqa: SIM110 - a loop is what is compiled
        if text[at + 1 + i] != names[first + i]:
            return False
    return True


@njit(nogil=True)
def _find(text: _Bytes, at: int, end: int, names: _Bytes, bounds: _Longs, guess: int) -> int:
    """The index of the name at ``at``, searched from ``guess`` on; _BAD if it is none of them."""
    count = len(bounds) - 1
    for n in range(count):
        slot = guess + n if guess + n < count else guess + n - count
        if _is_name(text, at, end, names, bounds[slot], bounds[slot + 1]):
            return slot
    return _BAD


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
        if cursor < end and text[cursor] == _OPEN:
            cursor = _blanks(text, cursor + 1, end)
            good = cursor < end
        if good and text[cursor] == _CLOSE:
            matched[row] = cursor + 1 == end
            continue
        while good:
            slot = _find(text, cursor, end, names, bounds, guess)
            good = slot != _BAD and what[slot, row] == ABSENT
            if not good:
                break
            guess, step = slot + 1, steps[slot]
            start = cursor = _name(text, cursor, end)
            good = cursor != _BAD and cursor < end
            if not good:
                break
            byte, number, plain = text[cursor], 0, True
            if byte == _QUOTE:
                kind, cursor, plain = _text(text, cursor, end)
            elif byte == _MINUS or _ZERO <= byte <= _NINE:
                kind, cursor, number = read_number(text, cursor, end)
            elif step != PLAIN and byte in (_OPEN, _OPEN_LIST):
                kind, cursor = _nested(text, cursor, end) if step == RAW else _span(text, cursor, end)
            else:
                kind, cursor = _word(text, cursor, end)
            good = kind != _BAD and (step != PLAIN or (plain and kind not in (ESCAPED, NUMBER)))
            if not good:
                break
            if step == RAW and kind != NULL:
                _put(what, value, length, slot, row, TEXT, 0, start - 1, cursor + 1)
            else:
                _put(what, value, length, slot, row, kind, number, start, cursor)
            cursor = _blanks(text, cursor, end)
            if cursor < end and text[cursor] == _CLOSE:
                good = cursor + 1 == end
                break
            good = cursor < end and text[cursor] == _COMMA
            cursor = _blanks(text, cursor + 1, end)
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
        good = cursor < end and text[cursor] == _OPEN_LIST
        cursor = _blanks(text, cursor + 1, end) if good else end
        while good and cursor < end and text[cursor] != _CLOSE_LIST:
            good = text[cursor] == _OPEN
            if not good:
                break
            if put == len(starts):
                return -1
            _, behind = _span(text, cursor, end)
            starts[put], ends[put] = cursor, behind
            put += 1
            cursor = _blanks(text, behind, end)
            if cursor < end and text[cursor] == _COMMA:
                cursor = _blanks(text, cursor + 1, end)
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
        while behind > start and text[behind - 1] != _COLON:
            behind -= 1
        sizes[n] = max(behind - 1 - start, 0)
        number = 0 if behind < end and end - behind < _LONGEST_INT and _digits(text, behind, end) == end else -1
        for place in range(behind, end if number == 0 else behind):
            number = number * 10 + (text[place] - _ZERO)
        numbers[n] = number


@njit(nogil=True)
def _encoded(unit: int, out: _Bytes, put: int) -> int:
    """Write a character as UTF-8; returns the end."""
    if unit < 0x80:
        out[put] = unit
        return put + 1
    if unit < 0x800:
        out[put], out[put + 1] = 0xC0 | unit >> 6, 0x80 | unit & 0x3F
        return put + 2
    if unit < 0x10000:
        out[put], out[put + 1], out[put + 2] = 0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F
        return put + 3
    out[put], out[put + 1] = 0xF0 | unit >> 18, 0x80 | unit >> 12 & 0x3F
    out[put + 2], out[put + 3] = 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F
    return put + 4


@njit(nogil=True)
def _unescaped(text: _Bytes, at: int, end: int, out: _Bytes, put: int) -> int:
    """Write a valid string without its escapes; returns the end."""
    while at < end:
        byte = text[at]
        if byte != _BACKSLASH:
            out[put] = byte
            at, put = at + 1, put + 1
            continue
        byte = text[at + 1]
        if byte != _U:
            for n in range(len(_ESCAPED_LETTERS)):
                if byte == _ESCAPED_LETTERS[n]:
                    byte = _LETTERS_MEANT[n]
                    break
            out[put] = byte
            at, put = at + 2, put + 1
            continue
        unit = _code_unit(text, at, end)
        at += 6
        if 0xD800 <= unit < 0xDC00:
            unit = 0x10000 + ((unit - 0xD800) << 10) + (_code_unit(text, at, end) - 0xDC00)
            at += 6
        put = _encoded(unit, out, put)
    return put


@compiled(
    types.void(
        BYTES, LONGS, LONGS, types.boolean[:, ::1],
        types.int8[:, ::1], types.int64[:, ::1], types.int32[:, ::1], LONGS, types.int32[:, ::1], types.uint8[::1],
    )
)  # fmt: skip
def gather(
    text: _Bytes, rows: _Longs, slots: _Longs, wanted: npt.NDArray[np.bool_],
    what: npt.NDArray[np.int8], value: _Longs, length: npt.NDArray[np.int32],
    firsts: _Longs, places: npt.NDArray[np.int32], out: _Bytes,
) -> None:  # fmt: skip
    """Copy the texts of ``slots`` message by message, because the texts of a message are near each other in ``text``.

    The text of slot ``slots[i]`` in message ``rows[n]``, without escapes, goes to ``out``, from ``firsts[i]`` on at
    ``places[i, n]`` to ``places[i, n + 1]``, which are filled. A cell of no kind ``wanted`` for slot ``i`` is empty.
    """
    for n in range(len(rows)):
        row = rows[n]
        for i in range(len(slots)):
            slot = slots[i]
            put = firsts[i] + places[i, n]
            kind = what[slot, row]
            if wanted[i, kind]:
                start, size = value[slot, row], length[slot, row]
                if kind == ESCAPED:
                    put = _unescaped(text, start, start + size, out, put)
                else:
                    if size > 24:
                        out[put : put + size] = text[start : start + size]
                    else:
                        for offset in range(size):
                            out[put + offset] = text[start + offset]
                    put += size
            places[i, n + 1] = put - firsts[i]
