"""The inner loop of the reader of WAL entries, compiled by numba: lists of cells as JSON -> the bytes of their columns.

A list that has anything else than whole cells in the usual form is left to the general decoder, so the loop does not
explain faults.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, types

from binlake.decode.templates.value_kernel import INT, read_number
from binlake.hbase.formats.cell_rows import NOTES
from hudilake.compiled import BYTES, LONGS, compiled

_Bytes = npt.NDArray[np.uint8]
_Longs = npt.NDArray[np.int64]

#: The members of a cell that are base64, by their column in the results; the two others.
ROW, FAMILY, QUALIFIER, VALUE = range(4)
_TIMESTAMP, _TYPE = 4, 5
_MEMBERS = (b"row", b"family", b"qualifier", b"value", b"timeStamp", b"type")
#: As text with bounds, for the compiled loop.
NAMES = np.frombuffer(b"".join(_MEMBERS), dtype=np.uint8)
NAME_BOUNDS = np.cumsum([0, *map(len, _MEMBERS)], dtype=np.int64)
#: The least bytes of a whole cell as JSON.
LEAST_CELL = sum(map(len, _MEMBERS)) + 30
#: Notes are left to the general decoder.
_NOTES = np.frombuffer(NOTES, dtype=np.uint8)
_NULL = np.frombuffer(b"null", dtype=np.uint8)

_QUOTE, _COMMA, _COLON, _PAD, _N = b'",:=n'
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = b"{}[]"
_BAD, _NO_BITS = -1, 0x40
_NO_TIMESTAMP = (1 << 63) - 1


def _alphabet() -> _Bytes:
    bits = np.full(256, _NO_BITS, dtype=np.uint8)
    bits[np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", dtype=np.uint8)] = range(64)
    return bits


#: By character of base64, its six bits.
ALPHABET = _alphabet()


@njit(nogil=True)
def _is_at(text: _Bytes, at: int, end: int, names: _Bytes, first: int, behind: int) -> bool:
    """Whether bytes of ``names`` are at ``at``."""
    size = behind - first
    if at + size > end:
        return False
    for i in range(size):  # noqa: SIM110 - a loop is what is compiled
        if text[at + i] != names[first + i]:
            return False
    return True


@njit(nogil=True)
def _base64(text: _Bytes, cursor: int, end: int, bits: _Bytes, out: _Bytes, put: int) -> tuple[int, int]:
    """Decode padded base64 between quotes, whose first is at ``cursor``: (the place behind it, the end of the bytes in
    ``out``); _BAD as the place if there is none."""
    cursor += 1
    while cursor + 4 < end:
        if text[cursor] == _QUOTE:
            return cursor + 1, put
        a, b, c, d = bits[text[cursor]], bits[text[cursor + 1]], bits[text[cursor + 2]], bits[text[cursor + 3]]
        if (a | b | c | d) & _NO_BITS == 0:
            out[put] = a << 2 | b >> 4
            out[put + 1] = (b & 0xF) << 4 | c >> 2
            out[put + 2] = (c & 3) << 6 | d
            cursor, put = cursor + 4, put + 3
            continue
        if (a | b) & _NO_BITS or text[cursor + 3] != _PAD or text[cursor + 4] != _QUOTE:
            break
        out[put] = a << 2 | b >> 4
        if text[cursor + 2] == _PAD:
            return cursor + 5, put + 1
        if c & _NO_BITS:
            break
        out[put + 1] = (b & 0xF) << 4 | c >> 2
        return cursor + 5, put + 2
    if cursor < end and text[cursor] == _QUOTE:
        return cursor + 1, put
    return _BAD, put


@njit(nogil=True)
def _member(text: _Bytes, at: int, end: int, names: _Bytes, bounds: _Longs, guess: int) -> int:
    """The member whose quoted name and colon are at ``at``, tried from ``guess`` on; _BAD if it is none of them."""
    count = len(bounds) - 1
    for n in range(count):
        member = guess + n if guess + n < count else guess + n - count
        behind = at + 1 + bounds[member + 1] - bounds[member]
        if (
            behind + 1 < end
            and text[at] == _QUOTE
            and text[behind] == _QUOTE
            and text[behind + 1] == _COLON
            and _is_at(text, at + 1, end, names, bounds[member], bounds[member + 1])
        ):
            return member
    return _BAD


@compiled(
    types.int64(
        BYTES, LONGS, LONGS, BYTES, BYTES, LONGS, BYTES, LONGS,
        types.uint8[:, ::1], types.int32[:, ::1], LONGS, types.int8[::1], types.boolean[::1], LONGS,
    )
)  # fmt: skip
def read_cells(
    text: _Bytes, starts: _Longs, ends: _Longs, bits: _Bytes, names: _Bytes, bounds: _Longs,
    kinds: _Bytes, kind_bounds: _Longs,
    data: npt.NDArray[np.uint8], places: npt.NDArray[np.int32], timestamps: _Longs, kind: npt.NDArray[np.int8],
    filled: npt.NDArray[np.bool_], counts: _Longs,
) -> int:  # fmt: skip
    """Read lists of cells: list ``i`` lies at ``starts[i]`` to ``ends[i]`` of ``text``.

    ``kinds``, ``kind_bounds``: the names of the kinds of cells. Filled, cell by cell: ``data`` and ``places`` by column
    (ROW to VALUE), the bytes of cell ``n`` from ``places[column, n]`` to ``places[column, n + 1]``; ``timestamps``;
    ``kind``; ``filled``, whether the cell has a value. ``counts`` by list: its cells, _BAD if the list is not read.
    Returns how many cells there are.
    """
    cell = 0
    order = np.zeros(len(bounds), dtype=np.int64)  # the members of the last cell, as the guess for those of the next
    for i in range(len(starts)):
        cursor, end, first = starts[i], ends[i], cell
        good = cursor + 1 < end and text[cursor] == _OPEN_LIST and text[cursor + 1] == _OPEN
        cursor += 1
        while good:
            good = cell < len(timestamps) and cursor < end and text[cursor] == _OPEN  # an empty list is left, too
            if not good:
                break
            cursor += 1
            seen, nth = 0, 0
            for column in range(4):
                places[column, cell + 1] = places[column, cell]
            filled[cell] = False
            while good:
                member = _member(text, cursor, end, names, bounds, order[nth] if nth < len(order) else 0)
                good = member != _BAD and seen & 1 << member == 0
                if not good:
                    break
                order[nth] = member
                nth += 1
                seen |= 1 << member
                cursor += bounds[member + 1] - bounds[member] + 3
                if cursor >= end:
                    good = False
                elif member < _TIMESTAMP and text[cursor] == _QUOTE:
                    cursor, place = _base64(text, cursor, end, bits, data[member], places[member, cell])
                    places[member, cell + 1] = place
                    good = cursor != _BAD
                    if member == VALUE:
                        filled[cell] = True
                elif member == VALUE and text[cursor] == _N:
                    good = _is_at(text, cursor, end, _NULL, 0, 4)
                    cursor += 4
                elif member == _TIMESTAMP:
                    what, cursor, number = read_number(text, cursor, end)
                    good = what == INT and 0 <= number < _NO_TIMESTAMP
                    timestamps[cell] = number
                elif member == _TYPE and text[cursor] == _QUOTE:
                    good = False
                    for n in range(len(kind_bounds) - 1):
                        behind = cursor + 1 + kind_bounds[n + 1] - kind_bounds[n]
                        if (
                            behind < end
                            and text[behind] == _QUOTE
                            and _is_at(text, cursor + 1, end, kinds, kind_bounds[n], kind_bounds[n + 1])
                        ):
                            kind[cell] = n
                            cursor, good = behind + 1, True
                            break
                else:
                    good = False
                if not good or cursor >= end:
                    good = False
                    break
                if text[cursor] == _CLOSE:
                    cursor += 1
                    break
                good = text[cursor] == _COMMA
                cursor += 1
            needed = (1 << ROW) | (1 << FAMILY) | (1 << QUALIFIER) | (1 << _TIMESTAMP) | (1 << _TYPE)
            good = good and seen & needed == needed and (filled[cell] or kind[cell] != 0)
            if good:
                size = places[FAMILY, cell + 1] - places[FAMILY, cell]
                good = size > 0 and places[ROW, cell + 1] > places[ROW, cell]
                if good and size == len(_NOTES):
                    good = not _is_at(data[FAMILY], places[FAMILY, cell], places[FAMILY, cell + 1], _NOTES, 0, size)
            if not good:
                break
            cell += 1
            if cursor < end and text[cursor] == _CLOSE_LIST:
                good = cursor + 1 == end
                break
            good = cursor < end and text[cursor] == _COMMA
            cursor += 1
        counts[i] = cell - first if good else _BAD
        if not good:
            cell = first
    return cell
