"""What servers compress: MariaDB the rows and the text of an event, MySQL a transaction, whose events are in one.

MySQL's layout is that of its manual ("Transaction_payload_event") and was measured on 9.7: fields of a type, a length
and a value, then the events as one zstd stream, without checksums. The events have no place of their own in the file;
each is given the place of the whole, and its rows are numbered on (``RecordMaker``).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from binlake.source.binlog.dump import HEADER, BinlogEvent, EventType
from hudilake.errors import UnsupportedError

_END, _SIZE, _COMPRESSION = range(3)
_ZSTD, _NONE = 0, 255
_TYPES = {int(one): one for one in EventType}


def events_of(event: BinlogEvent) -> Iterator[BinlogEvent]:
    """The events of a compressed transaction, ``packed``; any other event itself.

    Raises UnsupportedError for a compression that is not known, ValueError, OSError or IndexError for a damaged one.
    """
    if event.type is not EventType.TRANSACTION_PAYLOAD:
        yield event
        return
    fields, start = _fields(event.body)
    compression, size = fields.get(_COMPRESSION), fields[_SIZE]
    payload = event.body[start : start + size]
    if compression not in (_ZSTD, _NONE):
        raise UnsupportedError(
            f"a transaction is compressed by way {compression} at {event.place} of the binlog",
            do_next="read this server through Debezium and Kafka",
        )
    if len(payload) != size:
        raise ValueError(f"{len(payload)} bytes of a payload of {size}")
    source = pa.BufferReader(payload)
    stream = pa.CompressedInputStream(source, "zstd") if compression == _ZSTD else source
    while header := stream.read(HEADER.size):
        seconds, number, server_id, length, _, _ = HEADER.unpack(header)
        body = stream.read(length - HEADER.size)
        if len(body) != length - HEADER.size or number not in _TYPES:
            raise ValueError(f"an event of type {number} with {len(body)} of {length - HEADER.size} bytes")
        yield replace(event, type=_TYPES[number], seconds=seconds, server_id=server_id, body=body, packed=True)


def _fields(body: bytes) -> tuple[dict[int, int], int]:
    """The numbers before the payload by their type, and where it begins."""
    fields: dict[int, int] = {}
    start = 0
    while (kind := body[start]) != _END:
        length = body[start + 1]
        value = body[start + 2 : start + 2 + length]
        fields[kind], _ = packed_number(value, 0)
        start += 2 + length
    return fields, start + 1


def packed_number(data: bytes, start: int) -> tuple[int, int]:
    """A number of variable length, and the place after it."""
    first = data[start]
    if first < 0xFB:
        return first, start + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[start + 1 : start + 1 + size], "little"), start + 1 + size


def inflated(data: bytes) -> bytes:
    """What MariaDB compressed: a byte with the number of bytes of the size, the size, zlib's data."""
    width = data[0] & 0x07
    size = int.from_bytes(data[1 : 1 + width], "big")
    inflated = zlib.decompress(data[1 + width :], bufsize=size)
    if len(inflated) != size:
        raise ValueError(f"{len(inflated)} bytes where {size} were compressed")
    return inflated
