"""Texts of many messages copied out of one buffer, without their escapes, compiled by numba."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, types

from binlake.decode.templates.value_kernel import (
    BACKSLASH,
    ESCAPED,
    ESCAPED_LETTERS,
    LETTERS_MEANT,
    SMALL_U,
    code_unit,
)
from hudilake.compiled import BYTES, LONGS, compiled

_Bytes = npt.NDArray[np.uint8]
_Longs = npt.NDArray[np.int64]


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
        if byte != BACKSLASH:
            out[put] = byte
            at, put = at + 1, put + 1
            continue
        byte = text[at + 1]
        if byte != SMALL_U:
            for n in range(len(ESCAPED_LETTERS)):
                if byte == ESCAPED_LETTERS[n]:
                    byte = LETTERS_MEANT[n]
                    break
            out[put] = byte
            at, put = at + 2, put + 1
            continue
        unit = code_unit(text, at, end)
        at += 6
        if 0xD800 <= unit < 0xDC00:
            unit = 0x10000 + ((unit - 0xD800) << 10) + (code_unit(text, at, end) - 0xDC00)
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
