"""The inner loops of template.py, compiled by numba: values of messages that look alike, and texts out of one buffer.

A message is read by steps: bytes that must stand there, and between them values. Whatever is no such message is left
to the general decoder, so nothing here tells what is wrong with it. JSON's grammar: RFC 8259.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, types

_Bytes = npt.NDArray[np.uint8]
_Longs = npt.NDArray[np.int64]

#: Steps of a template. LITERAL: ``size`` bytes from ``arg`` on of the literals. MARK: the place goes to row ``arg`` of
#: the marks. VALUE: a scalar into slot ``arg``, if it is one. PLAIN: the same, without escapes and bytes beyond ASCII.
LITERAL, MARK, VALUE, PLAIN = 0, 1, 2, 3
NO_SLOT = -1

#: What a slot holds. TEXT and ESCAPED: place and length of what stands between the quotes (an escaped text is to be
#: decoded). INT: the number itself, up to 18 digits, no -0. NUMBER: place and length of any other number.
ABSENT, NULL, TEXT, ESCAPED, INT, NUMBER, TRUE, FALSE = range(8)
_BAD = -1
_LONGEST_INT = 18

_QUOTE, _BACKSLASH, _MINUS, _PLUS, _POINT, _ZERO, _NINE = b'"\\-+.09'
_SMALL_E, _LARGE_E, _F, _N, _T, _U = b"eEfntu"
_BLANK, _CASE, _DELETE = 0x20, 0x20, 0x7F


def _compiled(signature: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:  # noqa: ANN401 - numba's type
    """Compiled at import, 2 s once: kept beside the source, or in the user's cache where that cannot be written."""

    def compile_it(function: Callable[..., None]) -> Callable[..., None]:
        try:
            return njit(signature, cache=True, nogil=True)(function)  # type: ignore[no-any-return]
        except (RuntimeError, OSError):  # no place to keep it
            return njit(signature, nogil=True)(function)  # type: ignore[no-any-return]

    return compile_it


_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
_LONGS = types.int64[::1]


@njit(nogil=True)
def _digits(text: _Bytes, at: int, end: int) -> int:
    while at < end and _ZERO <= text[at] <= _NINE:
        at += 1
    return at


@njit(nogil=True)
def _code_unit(text: _Bytes, at: int, end: int) -> int:
    """The number behind a backslash at ``at``, if ``u`` and four hex digits stand there; else -1."""
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
    """How long the escape at a backslash is, both halves of a surrogate pair together; 0 if it is none."""
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
    """(what, where it ends behind the quote, whether all of it is ASCII) of a string whose first quote is at ``at``."""
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
def _number(text: _Bytes, at: int, end: int) -> tuple[int, int, int]:
    """(what, where it ends, the integer) of a number."""
    negative = text[at] == _MINUS
    first = at + 1 if negative else at
    at = _digits(text, first, end)
    if at == first or (at > first + 1 and text[first] == _ZERO):
        return _BAD, at, 0
    what = INT if at - first <= _LONGEST_INT else NUMBER
    value = 0
    if what == INT:
        for place in range(first, at):
            value = value * 10 + (text[place] - _ZERO)
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
    """(what, where it ends) of null, true or false."""
    if at + 4 <= end:
        a, b, c, d = text[at], text[at + 1], text[at + 2], text[at + 3]
        if a == _N and b == _U and c == ord("l") and d == ord("l"):
            return NULL, at + 4
        if a == _T and b == ord("r") and c == _U and d == _SMALL_E:
            return TRUE, at + 4
        if a == _F and b == ord("a") and c == ord("l") and d == ord("s") and at + 5 <= end and text[at + 4] == _SMALL_E:
            return FALSE, at + 5
    return _BAD, at


@_compiled(
    types.void(
        _BYTES, _LONGS, _LONGS, _LONGS, types.int64[:, ::1], _BYTES,
        types.boolean[::1], types.int8[:, ::1], types.int64[:, ::1], types.int32[:, ::1], types.int64[:, ::1],
    )
)  # fmt: skip
def scan(
    text: _Bytes, rows: _Longs, starts: _Longs, ends: _Longs, steps: _Longs, literals: _Bytes,
    matched: npt.NDArray[np.bool_], what: npt.NDArray[np.int8], value: _Longs, length: npt.NDArray[np.int32],
    marks: _Longs,
) -> None:  # fmt: skip
    """Read the messages ``rows``, which lie at ``starts`` to ``ends`` of ``text``, by one template.

    ``steps``: (n, 3) of step, arg, size. Filled for each message that matches, by its row: ``matched``, and by slot and
    row ``what``, ``value`` and ``length``, by mark and row ``marks``. The slots of others stay ABSENT.
    """
    for row in rows:
        at, end, good = starts[row], ends[row], True
        for n in range(len(steps)):
            step, arg = steps[n, 0], steps[n, 1]
            if step == LITERAL:
                size = steps[n, 2]
                good = at + size <= end
                for i in range(size if good else 0):
                    if text[at + i] != literals[arg + i]:
                        good = False
                        break
                if not good:
                    break
                at += size
                continue
            if step == MARK:
                marks[arg, row] = at
                continue
            if at >= end:
                good = False
                break
            start, number, plain = at, 0, True
            byte = text[at]
            if byte == _QUOTE:
                found, at, plain = _text(text, at, end)
            elif byte == _MINUS or _ZERO <= byte <= _NINE:
                found, at, number = _number(text, at, end)
            else:
                found, at = _word(text, at, end)
            if found == _BAD or (step == PLAIN and (found == ESCAPED or not plain)):
                good = False
                break
            if arg == NO_SLOT:
                continue
            what[arg, row] = found
            if found == INT:
                value[arg, row] = number
            elif found == NUMBER:
                value[arg, row], length[arg, row] = start, at - start
            elif found in (TEXT, ESCAPED):
                value[arg, row], length[arg, row] = start + 1, at - start - 2
        good = good and at == end
        matched[row] = good
        if not good:
            for slot in range(len(what)):
                what[slot, row], value[slot, row] = ABSENT, 0


@_compiled(types.void(_BYTES, _LONGS, _LONGS, types.int64[:, ::1], types.int64[:, ::1], types.uint8[::1]))
def gather(text: _Bytes, rows: _Longs, slots: _Longs, value: _Longs, places: _Longs, out: _Bytes) -> None:
    """Copy the texts of ``slots`` one behind the other, message by message, as they lie near each other in ``text``.

    The text of slot ``slots[i]`` in message ``rows[n]`` goes to ``out``, from ``places[i, n]`` to ``places[i, n + 1]``.
    """
    for n in range(len(rows)):
        for i in range(len(slots)):
            start, at = value[slots[i], rows[n]], places[i, n]
            for offset in range(places[i, n + 1] - at):
                out[at + offset] = text[start + offset]
