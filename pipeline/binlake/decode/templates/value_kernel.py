"""Values of JSON in bytes, compiled by numba: what each is, and where it ends. JSON's grammar: RFC 8259.

The loops of the decoder call these functions; ``hudilake.compiled`` compiles a loop again when one of them changes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

_Bytes = npt.NDArray[np.uint8]

#: The content of a slot. TEXT and ESCAPED: place and length of the text between the quotes (an escaped text must be
#: decoded). INT: the number itself, within plus and minus 2**63 - 1, no -0. NUMBER: place and length of any other
#: number. NESTED: place and length of an object or array; from ``read_objects`` only its brackets are checked.
ABSENT, NULL, TEXT, ESCAPED, INT, NUMBER, TRUE, FALSE, NESTED = range(9)
#: Of Avro records alone. BINARY: place and length of bytes. DOUBLE and FLOAT: the bits of a finite number. INT is there
#: any number of 64 bits, and NESTED a record, whose members have slots of their own.
BINARY, DOUBLE, FLOAT = range(9, 12)
KINDS = 12
BAD = -1
LONGEST_INT = 19
_MAX_LONG = (1 << 63) - 1
#: The deepest nesting of arrays and objects in a value. The bits of one integer record which one each level is.
_DEEPEST = 60

QUOTE, BACKSLASH, MINUS, _PLUS, _POINT, ZERO, NINE = b'"\\-+.09'
_SMALL_E, _LARGE_E, _F, _N, _T, SMALL_U = b"eEfntu"
_BLANK, _CASE, _DELETE = 0x20, 0x20, 0x7F
#: Meanings of letters after a backslash; any other character means itself.
ESCAPED_LETTERS, LETTERS_MEANT = b"bfnrt", b"\b\f\n\r\t"
COMMA, COLON, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = b",:{}[]"


@njit(nogil=True)
def read_digits(text: _Bytes, at: int, end: int) -> int:
    """The end of the digits from ``at`` on."""
    while at < end and ZERO <= text[at] <= NINE:
        at += 1
    return at


@njit(nogil=True)
def code_unit(text: _Bytes, at: int, end: int) -> int:
    """The code unit of ``u`` and four hex digits after a backslash at ``at``; -1 if they are not there."""
    if at + 6 > end or text[at] != BACKSLASH or text[at + 1] != SMALL_U:
        return BAD
    unit = 0
    for place in range(at + 2, at + 6):
        letter = text[place] | _CASE
        if ZERO <= text[place] <= NINE:
            unit = unit * 16 + (text[place] - ZERO)
        elif ord("a") <= letter <= _F:
            unit = unit * 16 + (letter - ord("a") + 10)
        else:
            return BAD
    return unit


@njit(nogil=True)
def _escape(text: _Bytes, at: int, end: int) -> int:
    """The length of the escape at a backslash, both halves of a surrogate pair together; 0 if it is invalid."""
    if at + 1 >= end:
        return 0
    byte = text[at + 1]
    if byte in (QUOTE, BACKSLASH, ord("/"), ord("b"), _F, _N, ord("r"), _T):
        return 2
    unit = code_unit(text, at, end)
    if unit < 0 or 0xDC00 <= unit < 0xE000:
        return 0
    if unit < 0xD800 or unit >= 0xE000:
        return 6
    return 12 if 0xDC00 <= code_unit(text, at + 6, end) < 0xE000 else 0


@njit(nogil=True)
def read_text(text: _Bytes, at: int, end: int) -> tuple[int, int, bool]:
    """(what, end after the quote, whether all of it is ASCII) of a string whose first quote is at ``at``."""
    what, plain = TEXT, True
    at += 1
    while at < end:
        byte = text[at]
        if byte == QUOTE:
            return what, at + 1, plain
        if byte < _BLANK:
            break
        if byte == BACKSLASH:
            what = ESCAPED
            size = _escape(text, at, end)
            if size == 0:
                break
            at += size - 1
        elif byte > _DELETE:
            plain = False
        at += 1
    return BAD, at, False


@njit(nogil=True)
def read_number(text: _Bytes, at: int, end: int) -> tuple[int, int, int]:
    """(what, end, the integer) of a number."""
    negative = text[at] == MINUS
    first = at + 1 if negative else at
    at = read_digits(text, first, end)
    if at == first or (at > first + 1 and text[first] == ZERO):
        return BAD, at, 0
    what = INT if at - first <= LONGEST_INT else NUMBER
    value = 0
    if what == INT:
        last = at if at - first < LONGEST_INT else at - 1
        for place in range(first, last):
            value = value * 10 + (text[place] - ZERO)
        if last < at:
            digit = text[last] - ZERO
            if value > (_MAX_LONG - digit) // 10:
                what, value = NUMBER, 1
            else:
                value = value * 10 + digit
    if at < end and text[at] == _POINT:
        what, first = NUMBER, at + 1
        at = read_digits(text, first, end)
        if at == first:
            return BAD, at, 0
    if at < end and (text[at] == _SMALL_E or text[at] == _LARGE_E):
        what, first = NUMBER, at + 1
        if first < end and (text[first] == _PLUS or text[first] == MINUS):
            first += 1
        at = read_digits(text, first, end)
        if at == first:
            return BAD, at, 0
    if negative and value == 0:
        what = NUMBER  # -0.0 is a number of its own
    return what, at, -value if negative else value


@njit(nogil=True)
def read_word(text: _Bytes, at: int, end: int) -> tuple[int, int]:
    """(what, end) of null, true or false."""
    if at + 4 <= end:
        a, b, c, d = text[at], text[at + 1], text[at + 2], text[at + 3]
        if a == _N and b == SMALL_U and c == ord("l") and d == ord("l"):
            return NULL, at + 4
        if a == _T and b == ord("r") and c == SMALL_U and d == _SMALL_E:
            return TRUE, at + 4
        if a == _F and b == ord("a") and c == ord("l") and d == ord("s") and at + 5 <= end and text[at + 4] == _SMALL_E:
            return FALSE, at + 5
    return BAD, at


@njit(nogil=True, inline="always")
def _scalar(text: _Bytes, at: int, end: int) -> tuple[int, int, int, bool]:
    """(what, end, the integer, whether all of it is ASCII) of a string, number or word."""
    byte = text[at]
    if byte == QUOTE:
        what, at, plain = read_text(text, at, end)
        return what, at, 0, plain
    if byte == MINUS or ZERO <= byte <= NINE:
        what, at, number = read_number(text, at, end)
        return what, at, number, True
    what, at = read_word(text, at, end)
    return what, at, 0, True


@njit(nogil=True, inline="always")
def skip_blanks(text: _Bytes, at: int, end: int) -> int:
    """The place of the first byte from ``at`` on that is no blank."""
    while at < end and text[at] == _BLANK:
        at += 1
    return at


@njit(nogil=True)
def read_name(text: _Bytes, at: int, end: int) -> int:
    """Where the value of the member begins whose name is at ``at``; BAD if there is no name."""
    if at >= end or text[at] != QUOTE:
        return BAD
    what, at, _ = read_text(text, at, end)
    at = skip_blanks(text, at, end)
    if what == BAD or at >= end or text[at] != COLON:
        return BAD
    return skip_blanks(text, at + 1, end)


@njit(nogil=True)
def read_nested(text: _Bytes, at: int, end: int) -> tuple[int, int]:
    """(what, end) of an object or array that begins at ``at``, with blanks as its only white space."""
    depth, objects = 0, 0
    while at < end:
        byte = text[at]
        if byte in (OPEN, OPEN_LIST):
            if depth == _DEEPEST:
                break
            depth += 1
            objects = objects << 1 | (byte == OPEN)
            at = skip_blanks(text, at + 1, end)
            if at >= end or text[at] != (CLOSE if objects & 1 else CLOSE_LIST):
                at = read_name(text, at, end) if objects & 1 else at
                if at == BAD:
                    break
                continue
        else:
            what, at, _, _ = _scalar(text, at, end)
            if what == BAD:
                break
        at = skip_blanks(text, at, end)  # a value is complete, or an empty object or array is about to be
        while at < end and text[at] == (CLOSE if objects & 1 else CLOSE_LIST):
            depth -= 1
            objects >>= 1
            at += 1
            if depth == 0:
                return NESTED, at
            at = skip_blanks(text, at, end)
        if at >= end or text[at] != COMMA:
            break
        at = skip_blanks(text, at + 1, end)
        at = read_name(text, at, end) if objects & 1 else at
        if at == BAD:
            break
    return BAD, end


@njit(nogil=True)
def read_span(text: _Bytes, at: int, end: int) -> tuple[int, int]:
    """Returns (what, end) of an object or array; its content is not checked, because its parts are read again."""
    depth, quoted = 0, False
    while at < end:
        byte = text[at]
        at += 1
        if byte == QUOTE:
            quoted = not quoted
        elif byte < _BLANK:
            break
        elif quoted:
            at += byte == BACKSLASH
        elif byte in (OPEN, OPEN_LIST):
            depth += 1
        elif byte in (CLOSE, CLOSE_LIST):
            depth -= 1
            if depth == 0:
                return NESTED, at
    return BAD, end
