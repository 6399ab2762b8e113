"""Row packets of MySQL's text protocol, read many at once -> Arrow columns of raw bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pymysql.err import raise_mysql_exception

from hudilake.compiled import BYTES, LONG, LONG_ROWS, LONGS, NOTHING, OUT_BYTES, compiled
from hudilake.errors import CorruptDataError

_Bytes = npt.NDArray[np.uint8]
_Longs = npt.NDArray[np.int64]
_NULL_CELL = 0xFB
#: First bytes of a length of 2, 3 and 8 bytes (MySQL's protocol, "length-encoded integer").
_TWO, _THREE, _EIGHT = 0xFC, 0xFD, 0xFE
#: Of a packet: the size of its header, the most of its payload, the mark of an error, the longest end of a result.
_HEADER, _MOST_BYTES, _ERROR_MARK, _LONGEST_EOF = 4, 0xFFFFFF, 0xFF, 9
#: Why no further packet is taken: bytes are missing, the result ends, an error, a packet of 16 MB, there is no room.
_MORE, _EOF, _ERROR, _LARGE, _FULL = range(5)
_FIRST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Row packets as the server sent them.

    Args:
        data: bytes, among them the payloads.
        begins, ends: where the payload of each of n rows is, int64 arrays of n.
    """

    data: _Bytes
    begins: _Longs
    ends: _Longs

    def __len__(self) -> int:
        return len(self.begins)

    def columns(self, count: int) -> list[pa.Array]:
        """The cells, one binary array of n for each of ``count`` columns, null where the server sent null.

        Raises CorruptDataError for a packet that is not a row of so many columns.
        """
        starts = np.empty((count, len(self)), dtype=np.int64)
        lengths = np.empty_like(starts)
        cut = _cut_packets(self.data, self.begins, self.ends, starts, lengths)
        if cut < len(self):
            raise CorruptDataError(
                "the server sent a row that does not have the columns of its result",
                do_next="run the command again; if it stays, report the server's version",
                row=cut,
            )
        return [_binary(self.data, s, n) for s, n in zip(starts, lengths, strict=True)]


class PacketReader:
    """Reads the rows of one result from a connection, many packets at once.

    Args:
        read_into: reads some bytes, at least one, into a buffer; returns how many, 0 at the end of the connection.
        begun: what was read of the result already.
    """

    def __init__(self, read_into: Callable[[memoryview], int], begun: bytes = b"") -> None:
        self._read_into = read_into
        self._buffer, self._end = np.empty(max(_FIRST_BYTES, len(begun)), dtype=np.uint8), len(begun)
        self._buffer[: self._end] = np.frombuffer(begun, np.uint8)
        self.ended = False

    def block(self, most: int, most_bytes: int) -> RowBlock | None:
        """The next rows, at most ``most`` or about ``most_bytes`` bytes of them; None at the end of the result.

        Raises ConnectionError if the connection ends before, and what the server's error stands for
        (``pymysql.err``).
        """
        begins, ends = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
        state = np.zeros(3, dtype=np.int64)  # rows, where the next packet begins, why it stopped
        while not self.ended:
            _frame_packets(self._buffer, self._end, begins, ends, state)
            rows, place, why = state.tolist()
            if why == _LARGE and not rows:
                return self._large(place)
            if why == _ERROR:
                self._fill(place + _HEADER + _size_at(self._buffer, place))
                raise_mysql_exception(self._buffer[place + _HEADER : self._end].tobytes())
            self.ended = why == _EOF
            if self.ended or why in (_FULL, _LARGE) or place >= most_bytes:
                break
            self._fill(self._end + 1)
        rows, place, _ = state.tolist()
        return self._cut_off(place, begins[:rows], ends[:rows]) if rows else None

    def _cut_off(self, place: int, begins: _Longs, ends: _Longs) -> RowBlock:
        """The rows before a place; what is behind it goes to a buffer of its own."""
        done, rest = self._buffer, self._buffer[place : self._end]
        self._buffer, self._end = np.empty(len(done), dtype=np.uint8), len(rest)
        self._buffer[: len(rest)] = rest
        return RowBlock(done, begins, ends)

    def _large(self, place: int) -> RowBlock:
        """A row in several packets, because it has 16 MB or more."""
        parts, size = list[bytes](), _MOST_BYTES
        while size == _MOST_BYTES:
            self._fill(place + _HEADER)
            size = _size_at(self._buffer, place)
            self._fill(place + _HEADER + size)
            parts.append(self._buffer[place + _HEADER : place + _HEADER + size].tobytes())
            place += _HEADER + size
        none = np.empty(0, dtype=np.int64)
        self._cut_off(place, none, none)
        row = b"".join(parts)
        return RowBlock(np.frombuffer(row, dtype=np.uint8), np.array([0]), np.array([len(row)]))

    def _fill(self, wanted: int) -> None:
        """Read until the buffer has so many bytes, and what more there is."""
        if wanted > len(self._buffer):
            larger = np.empty(max(wanted, 2 * len(self._buffer)), dtype=np.uint8)
            larger[: self._end] = self._buffer[: self._end]
            self._buffer = larger
        while self._end < wanted:
            count = self._read_into(self._buffer.data[self._end :])
            if not count:
                raise ConnectionError("the server closed the connection within a result")
            self._end += count


def _size_at(data: _Bytes, place: int) -> int:
    """The size in the header of a packet."""
    return int.from_bytes(data[place : place + 3].tobytes(), "little")


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


@compiled(NOTHING(BYTES, LONG, LONGS, LONGS, LONGS))
def _frame_packets(data: _Bytes, end: int, begins: _Longs, ends: _Longs, state: _Longs) -> None:
    """Find the packets of rows (MySQL's protocol, "MySQL Packets"), from where ``state`` says.

    Args:
        data: what was read; ``end``: how many bytes of it.
        begins, ends: int64 arrays to fill: where the payload of each row is.
        state: int64 array of 3: how many rows there are, where the next packet begins, and why it stopped.
    """
    row, place = state[0], state[1]
    while True:
        if row == len(begins):
            why = _FULL
            break
        if end - place < _HEADER:
            why = _MORE
            break
        size = np.int64(data[place]) | np.int64(data[place + 1]) << 8 | np.int64(data[place + 2]) << 16
        if size == _MOST_BYTES:
            why = _LARGE
            break
        begin = place + _HEADER
        if end - begin < size or size == 0:
            why = _MORE
            break
        if data[begin] == _EIGHT and size < _LONGEST_EOF:
            why = _EOF
            break
        if data[begin] == _ERROR_MARK:
            why = _ERROR
            break
        begins[row], ends[row] = begin, begin + size
        place = begin + size
        row += 1
    state[0], state[1], state[2] = row, place, why


@compiled(LONG(BYTES, LONGS, LONGS, LONG_ROWS, LONG_ROWS))
def _cut_packets(data: _Bytes, begins: _Longs, ends: _Longs, starts: _Longs, lengths: _Longs) -> int:
    """Find the cells of n row packets of c cells each, in MySQL's text protocol.

    Args:
        data: has the packets.
        begins, ends: where each is, int64 arrays of n.
        starts, lengths: int64 arrays of (c, n) to fill; a length of -1 stands for null.

    Returns the number of packets that were cut: less than n if the next one is not a row of c cells.
    """
    for row in range(len(begins)):
        offset, end = begins[row], ends[row]
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
    return len(begins)


@compiled(NOTHING(BYTES, LONGS, LONGS, OUT_BYTES))
def _copy_cells(data: _Bytes, starts: _Longs, lengths: _Longs, out: _Bytes) -> None:
    """Copy the cells of one column into ``out``, one after the other; null cells take no place."""
    offset = np.uint64(0)  # unsigned, as an index needs no test of its sign then: a third of the time
    for row in range(len(starts)):
        start, size = np.uint64(starts[row]), np.uint64(max(lengths[row], 0))
        for i in range(size):
            out[offset + i] = data[start + i]
        offset += size
