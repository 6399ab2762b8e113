"""HBase's ``Result`` messages (one scanned row each), as its Export writes them, read by columns.

The message (protobuf; ``Client.proto`` and ``Cell.proto`` of HBase): field 1 of ``Result`` repeats ``Cell``, whose
fields are 1 row, 2 family, 3 qualifier, 4 timestamp, 5 cell_type and 6 value. All other fields are passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from binlake.decode.cells import CellKind
from binlake.hbase.formats.byte_slices import sliced
from binlake.hbase.formats.scanned_cells import ScannedCells
from hudilake.compiled import BYTES, LONG, LONG_ROWS, LONGS, compiled

_Bytes = npt.NDArray[np.uint8]
_Longs = npt.NDArray[np.int64]

#: CellType of ``Cell.proto`` -> the kind.
_KINDS: Final = {
    4: CellKind.PUT,
    8: CellKind.DELETE,
    10: CellKind.DELETE_FAMILY_VERSION,
    12: CellKind.DELETE_COLUMN,
    14: CellKind.DELETE_FAMILY,
}
_PUT: Final = 4
#: Columns of the table of places: where a cell's row, family, qualifier and value begin and how long each is, then its
#: timestamp, its type and its message.
_ROW, _FAMILY, _QUALIFIER, _VALUE, _TIMESTAMP, _TYPE, _MESSAGE, _PLACES = 0, 2, 4, 6, 8, 9, 10, 11
_BAD: Final = -1
_VARINT_BITS: Final = 63
#: The tag of a cell in a Result: field 1, with its size.
_CELL_TAG: Final = 0x0A
_SCRATCH: Final = 3


@njit(nogil=True)
def _varint(data: _Bytes, at: int, end: int, out: _Longs) -> int:
    """Read the varint at ``at`` into ``out[0]``; returns its end, -1 if there is none."""
    value, shift = 0, 0
    while at < end and shift <= _VARINT_BITS:
        byte = int(data[at])
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            out[0] = value
            return at
        shift += 7
    return _BAD


@njit(nogil=True)
def _field(data: _Bytes, at: int, end: int, out: _Longs) -> int:
    """Read a field: ``out[0]`` its number or size, ``out[1]`` its tag, ``out[2]`` where its bytes begin (of a varint:
    ``out[0]`` is the value). Returns its end, -1 for damaged bytes."""
    at = _varint(data, at, end, out)
    if at < 0:
        return _BAD
    tag = out[0]
    out[1] = tag
    wire = tag & 7
    if wire == 0:
        return _varint(data, at, end, out)
    if wire == 2:
        at = _varint(data, at, end, out)
        size = int(out[0])
        if at < 0 or size < 0 or size > end - at:
            return _BAD
        out[2] = at
        return at + size
    fixed = 8 if wire == 1 else 4
    if wire not in (1, 5) or fixed > end - at:
        return _BAD
    return at + fixed


@njit(nogil=True)
def _cell(data: _Bytes, at: int, end: int, place: _Longs, out: _Longs) -> bool:
    """Read the cell between two places; False for damaged bytes."""
    place[:] = 0
    place[_TYPE] = _PUT
    while at < end:
        at = _field(data, at, end, out)
        if at < 0:
            return False
        number, wire = out[1] >> 3, out[1] & 7
        if wire == 2 and (number <= 3 or number == 6):
            column = _VALUE if number == 6 else 2 * (number - 1)
            place[column], place[column + 1] = out[2], out[0]
        elif wire == 0 and number == 4:
            place[_TIMESTAMP] = out[0]
        elif wire == 0 and number == 5:
            place[_TYPE] = out[0]
    return True


@compiled(LONG(BYTES, LONGS, LONGS))
def _count_cells(data: _Bytes, bounds: _Longs, out: _Longs) -> int:
    """The cells of all messages, those of damaged ones at most."""
    count = 0
    for message in range(len(bounds) - 1):
        cursor, end = bounds[message], bounds[message + 1]
        while 0 <= cursor < end:
            cursor = _field(data, cursor, end, out)
            count += cursor >= 0 and out[1] == _CELL_TAG
    return count


@compiled(LONGS(BYTES, LONGS, LONG_ROWS, LONGS))
def _read_cells(data: _Bytes, bounds: _Longs, places: _Longs, out: _Longs) -> _Longs:
    """Fill ``places`` with the cells of all messages; returns the number of cells up to the end of each message, -1 for
    a damaged one, whose cells are left out."""
    ends = np.empty(len(bounds) - 1, dtype=np.int64)
    count = 0
    for message in range(len(bounds) - 1):
        cursor, end, first = bounds[message], bounds[message + 1], count
        while 0 <= cursor < end:
            cursor = _field(data, cursor, end, out)
            if cursor >= 0 and out[1] == _CELL_TAG:
                good = _cell(data, out[2], cursor, places[count], out)
                places[count, _MESSAGE] = message
                count += 1
                cursor = cursor if good else _BAD
        count = count if cursor >= 0 else first
        ends[message] = count if cursor >= 0 else _BAD
    return ends


def read_results(messages: Sequence[bytes], at: Sequence[int]) -> tuple[ScannedCells, list[int]]:
    """The cells of messages, and which of the messages are damaged.

    Args:
        messages: n messages.
        at: n numbers that name them in the result, ascending.
    """
    data = np.frombuffer(b"".join(messages), dtype=np.uint8)
    bounds = np.zeros(len(messages) + 1, dtype=np.int64)
    np.cumsum([len(message) for message in messages], out=bounds[1:])
    scratch = np.zeros(_SCRATCH, dtype=np.int64)
    places = np.zeros((_count_cells(data, bounds, scratch), _PLACES), dtype=np.int64)
    ends = _read_cells(data, bounds, places, scratch)
    places = places[: max(0, int(ends.max(initial=0)))]
    names = np.array(at, dtype=np.int64)
    codes, type_of = np.unique(places[:, _TYPE], return_inverse=True)
    texts = [_KINDS[code].value if code in _KINDS else f"type {code}" for code in codes.tolist()]
    row, family, qualifier, value = (
        sliced(data, places[:, first], places[:, first + 1]) for first in (_ROW, _FAMILY, _QUALIFIER, _VALUE)
    )
    stamps = np.ascontiguousarray(places[:, _TIMESTAMP])
    kinds = pa.array(texts, pa.string()).take(pa.array(type_of))
    scanned_cells = ScannedCells(names[places[:, _MESSAGE]], row, family, qualifier, stamps, kinds, value)
    return scanned_cells, names[ends == _BAD].tolist()
