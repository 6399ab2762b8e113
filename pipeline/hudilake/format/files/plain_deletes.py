"""Delete records decoded in whole columns, for blocks as binlake and Hudi Spark write them: one partition path, every
ordering value of one kind.

The end of a record depends on its own length fields. So the end is computed at once for every byte of a stretch, as if
a record began there, and then the chain of the actual records is followed. This is several times as fast as an Avro
decoder (200,000 records: 0.15 s instead of 1 s).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.format.files.varint import read_zigzag

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

_STRETCH = 1 << 18
_LONGEST_KEY = 1 << 13  # half the range of a length of two bytes; longer keys are left to the Avro decoder
_STRING, _INT_WRAPPER, _LONG_WRAPPER = 0x02, 0x04, 0x06


def decode_plain(datum: bytes) -> tuple[pa.Array, pa.Array] | None:
    """(record keys, ordering values, null where unconditional) of a block's Avro datum; None for another layout, and
    for damaged bytes, for which the Avro decoder raises an error."""
    try:
        return _decode(datum)
    except (IndexError, ValueError):
        return None


def _decode(datum: bytes) -> tuple[pa.Array, pa.Array] | None:
    count, offset = read_zigzag(datum, 0)
    middle = _middle(datum, offset) if count > 0 else None
    if middle is None:
        return None
    data = np.frombuffer(datum, dtype=np.uint8)
    starts = _starts(data, offset, count, len(middle))
    if starts is None:
        return None
    lengths, key_at = _lengths(data, starts)
    middle_at = key_at + lengths
    same = data[starts] == _STRING
    for number, byte in enumerate(middle):
        same &= data[middle_at + number] == byte
    long = data[starts + 1] >= 0x80
    if not same.all() or (data[starts[long] + 2] >= 0x80).any():
        return None
    keys = _strings(data, key_at, lengths)
    orders = _zigzag(data, middle_at + len(middle))
    if middle[-1] == _LONG_WRAPPER:
        return keys, pa.array(orders)
    # IntWrapper: zero deletes unconditionally.
    return keys, pa.array(orders, mask=orders == 0)


def _middle(datum: bytes, offset: int) -> bytes | None:
    """The bytes between key and ordering value in the first record; all records are expected to have the same."""
    if datum[offset] != _STRING:
        return None
    length, key_at = read_zigzag(datum, offset + 1)
    start = key_at + length
    if not 0 <= length < _LONGEST_KEY or datum[start] != _STRING:
        return None
    width, path_at = read_zigzag(datum, start + 1)
    end = path_at + width
    datum[path_at:end].decode("utf-8")
    return datum[start : end + 1] if width >= 0 and datum[end] in (_INT_WRAPPER, _LONG_WRAPPER) else None


def _starts(data: Bytes, offset: int, count: int, middle: int) -> Longs | None:
    """The offsets of the records; None if the last one does not end at the block's end."""
    starts: list[int] = []
    last = len(data) - 1
    while offset < last and len(starts) < count:
        first, stop = offset, min(offset + _STRETCH, last)
        ends = _ends(data, first, stop, middle)
        while offset < stop:
            starts.append(offset)
            offset = int(ends[offset - first])
    if offset != last or len(starts) != count or data[last] != 0:
        return None
    return np.array(starts, dtype=np.int64)


def _ends(data: Bytes, first: int, stop: int, middle: int) -> Longs:
    """For every offset from ``first`` to ``stop``: the end of a record that begins there, at most the data's end."""
    lengths, key_at = _lengths(data, np.arange(first, stop, dtype=np.int64))
    order_at = key_at + lengths + middle
    reach = min(len(data), stop + _LONGEST_KEY + middle + 16)
    places = np.where(data[first:reach] < 0x80, np.arange(first, reach), len(data) - 1)
    last_byte = np.minimum.accumulate(places[::-1])[::-1]
    inside = order_at < reach
    return np.where(inside, last_byte[np.where(inside, order_at - first, 0)] + 1, len(data))


def _lengths(data: Bytes, starts: Longs) -> tuple[Longs, Longs]:
    """(length of each record's key, its offset), for lengths of one or two bytes."""
    final = len(data) - 1
    low = data[np.minimum(starts + 1, final)].astype(np.int64)
    high = data[np.minimum(starts + 2, final)].astype(np.int64)
    long = low >= 0x80
    return np.where(long, (low & 0x7F) | ((high & 0x7F) << 7), low) >> 1, starts + 2 + long


def _strings(data: Bytes, starts: Longs, lengths: Longs) -> pa.Array:
    ends = np.cumsum(lengths)
    source = np.arange(int(ends[-1]), dtype=np.int64) + np.repeat(starts - (ends - lengths), lengths)
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    made = pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(data[source]))
    made.validate(full=True)
    return made


def _zigzag(data: Bytes, starts: Longs) -> Longs:
    value = np.zeros(len(starts), dtype=np.uint64)
    going = np.arange(len(starts))
    for number in range(10):
        byte = data[starts[going] + number]
        value[going] |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * number)
        going = going[byte >= 0x80]
        if not len(going):
            break
    return (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64)
