"""Row packets of MySQL's text protocol -> Arrow columns of raw bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.compiled import BYTES, LONG, LONG_ROWS, LONGS, NOTHING, OUT_BYTES, compiled
from hudilake.errors import CorruptDataError

_Bytes = npt.NDArray[np.uint8]
_Longs = npt.NDArray[np.int64]
_NULL_CELL = 0xFB
#: First bytes of a length of 2, 3 and 8 bytes (MySQL's protocol, "length-encoded integer").
_TWO, _THREE, _EIGHT = 0xFC, 0xFD, 0xFE


def columns_of_packets(packets: Sequence[bytes], columns: int) -> list[pa.Array]:
    """The cells of n rows, one binary array of n a column, null where the server sent null.

    Args:
        packets: the payload of each row's packet.
        columns: the number of columns of the result.

    Raises CorruptDataError for a packet that is not a row of so many columns.
    """
    data = np.frombuffer(b"".join(packets), dtype=np.uint8)
    bounds = bounds_of(np.fromiter(map(len, packets), np.int64, len(packets)))
    starts = np.empty((columns, len(packets)), dtype=np.int64)
    lengths = np.empty_like(starts)
    cut = _cut_packets(data, bounds, starts, lengths)
    if cut < len(packets):
        raise CorruptDataError(
            "the server sent a row that does not have the columns of its result",
            do_next="run the command again; if it stays, report the server's version",
            row=cut,
        )
    return [_binary(data, s, n) for s, n in zip(starts, lengths, strict=True)]


def bounds_of(sizes: _Longs) -> _Longs:
    """Where n pieces of these sizes begin when they lie one after the other, and the end: int64 array of n + 1."""
    bounds = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=bounds[1:])
    return bounds


def _binary(data: npt.NDArray[np.uint8], starts: _Longs, lengths: _Longs) -> pa.Array:
    bounds = bounds_of(np.maximum(lengths, 0))
    out = np.empty(int(bounds[-1]), dtype=np.uint8)
    _copy_cells(data, starts, lengths, out)
    valid = lengths >= 0
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    offsets = pa.py_buffer(bounds.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(starts), [bits, offsets, pa.py_buffer(out)])


@compiled(LONG(BYTES, LONGS, LONG_ROWS, LONG_ROWS))
def _cut_packets(data: _Bytes, bounds: _Longs, starts: _Longs, lengths: _Longs) -> int:
    """Find the cells of n row packets of c cells each, in MySQL's text protocol.

    Args:
        data: the packets, one after the other.
        bounds: int64 array of n + 1: where each packet begins, and the end of the last one.
        starts, lengths: int64 arrays of (c, n) to fill; a length of -1 stands for null.

    Returns the number of packets that were cut: less than n if the next one is not a row of c cells.
    """
    for row in range(len(bounds) - 1):
        offset, end = bounds[row], bounds[row + 1]
        for column in range(starts.shape[0]):
            if offset >= end:
                return row
            first = data[offset]
            offset += 1
            if first == _NULL_CELL:
                starts[column, row], lengths[column, row] = offset, -1
                continue
            size = np.int64(first)
            if first >= _TWO:
                width = 2 if first == _TWO else 3 if first == _THREE else 8
                if first > _EIGHT or offset + width > end:
                    return row
                size = np.int64(0)
                for i in range(width):
                    size |= np.int64(data[offset + i]) << (8 * i)
                offset += width
            if size < 0 or size > end - offset:
                return row
            starts[column, row], lengths[column, row] = offset, size
            offset += size
        if offset != end:
            return row
    return len(bounds) - 1


@compiled(NOTHING(BYTES, LONGS, LONGS, OUT_BYTES))
def _copy_cells(data: _Bytes, starts: _Longs, lengths: _Longs, out: _Bytes) -> None:
    """Copy the cells of one column into ``out``, one after the other; null cells take no place."""
    offset = np.uint64(0)  # unsigned, as an index needs no test of its sign then: a third of the time
    for row in range(len(starts)):
        start, size = np.uint64(starts[row]), np.uint64(max(lengths[row], 0))
        for i in range(size):
            out[offset + i] = data[start + i]
        offset += size
