"""The Avro binary of HBase's Kafka proxy (``HBaseKafkaEvent`` of hbase-connectors), n messages at once.

The messages have neither a schema id nor a magic byte, and their schema has never changed: key, timestamp, delete,
value, qualifier, family, table, in this order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from binlake.hbase.formats.byte_slices import sliced
from hudilake.compiled import BYTES, LONG, LONG_ROWS, LONGS, OUT_BYTES, compiled

_U8 = npt.NDArray[np.uint8]
_I64 = npt.NDArray[np.int64]
#: The fields of bytes, in their order. ``timestamp`` and ``delete`` stand behind the first.
FIELDS = ("key", "value", "qualifier", "family", "table")
_BAD = -1
_CONTINUED, _SEVEN_BITS, _BITS = 0x80, 0x7F, 63


@dataclass(frozen=True)
class Events:
    """n events.

    Attributes:
        fields: by name (``FIELDS``) a binary array of n.
        timestamps: milliseconds, int64.
        deletes: a mask.
    """

    fields: dict[str, pa.Array]
    timestamps: _I64
    deletes: npt.NDArray[np.bool_]


def read_events(messages: Sequence[bytes]) -> Events:
    """The events of n messages. Raises ValueError if one of them is none."""
    n = len(messages)
    bounds = np.zeros(n + 1, dtype=np.int64)
    np.cumsum([len(message) for message in messages], out=bounds[1:])
    data = np.frombuffer(b"".join(messages), dtype=np.uint8)
    starts, lengths = (np.zeros((len(FIELDS), n), dtype=np.int64) for _ in range(2))
    timestamps, deletes = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.uint8)
    bad = _scan(data, bounds, starts, lengths, timestamps, deletes)
    if bad != _BAD:
        raise ValueError(f"message {bad} of {n} is no HBaseKafkaEvent")
    fields = {name: sliced(data, starts[i], lengths[i]) for i, name in enumerate(FIELDS)}
    return Events(fields, timestamps, deletes.astype(bool))


@njit(nogil=True)
def _long(data: _U8, at: int, end: int) -> tuple[int, int]:
    """The zigzag number at ``at``, and the place behind it; _BAD as the place if there is none."""
    value, shift = np.uint64(0), 0
    while at < end and shift <= _BITS:
        byte = data[at]
        at += 1
        if shift == _BITS and byte > 1:
            break
        value |= np.uint64(byte & _SEVEN_BITS) << np.uint64(shift)
        if byte < _CONTINUED:
            half = np.int64(value >> np.uint64(1))
            return int(-half - 1 if value & np.uint64(1) else half), at
        shift += 7
    return 0, _BAD


@compiled(LONG(BYTES, LONGS, LONG_ROWS, LONG_ROWS, LONGS, OUT_BYTES))
def _scan(data: _U8, bounds: _I64, starts: _I64, lengths: _I64, timestamps: _I64, deletes: _U8) -> int:
    """Fills the places of the fields of each message. Returns the first message that is no event; _BAD for none."""
    for one in range(len(bounds) - 1):
        at, end = bounds[one], bounds[one + 1]
        for field in range(starts.shape[0]):
            length, at = _long(data, at, end)
            if at == _BAD or length < 0 or length > end - at:
                return one
            starts[field, one], lengths[field, one] = at, length
            at += length
            if field == 0:
                timestamps[one], at = _long(data, at, end)
                if at == _BAD or at >= end or data[at] > 1:
                    return one
                deletes[one] = data[at]
                at += 1
        if at != end:
            return one
    return _BAD
