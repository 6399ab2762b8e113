"""The metadata table's records: Avro bytes of the ``files``, ``column_stats``, ``bloom_filters`` and
``partition_stats`` partitions, written by hand (fastavro spends most of its time on the 14-branch unions) and read
back. Byte-identical to what fastavro makes of the same record.

A record's ``key`` field is empty in the file: the HFile key holds it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from importlib import resources
from typing import Final

from hudilake.format.files.column_stats import ColumnRange, Value, ValueType
from hudilake.format.files.varint import write_varint

#: A partition's files: size in bytes by name; None is a tombstone.
Listing = Mapping[str, int | None]


class RecordType(IntEnum):
    """The ``type`` field."""

    ALL_PARTITIONS = 1
    FILES = 2
    COLUMN_STATS = 3
    BLOOM_FILTERS = 4
    RECORD_INDEX = 5
    PARTITION_STATS = 6


@dataclass(frozen=True, slots=True)
class StatsRecord:
    """A record of column_stats (``name`` is the file's bare name) or partition_stats (the partition path).

    ``tight`` (partition_stats): the record stands for all files so far and replaces older ones when merged.
    """

    name: str
    range: ColumnRange
    deleted: bool = False
    tight: bool = False


@dataclass(frozen=True, slots=True)
class BloomRecord:
    """A record of bloom_filters: the filter's kind, its base64 text as bytes, and the instant that wrote it."""

    kind: str
    timestamp: str
    filter: bytes
    deleted: bool = False


_NULL: Final = b"\x00"
_SOME: Final = b"\x02"
_FLAGS: Final = (b"\x00", b"\x01")
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")


@lru_cache(maxsize=1)
def record_schema() -> str:
    """The Avro schema of every record, JSON text, for log blocks and HFiles."""
    path = resources.files("hudilake.metadata.records").joinpath("schemas", "HoodieMetadataRecord.avsc")
    return path.read_text("utf-8").strip()


@lru_cache(maxsize=1)
def table_schema() -> str:
    """The same without the meta fields, for the metadata table's commits."""
    schema = json.loads(record_schema())
    schema["fields"] = [field for field in schema["fields"] if not field["name"].startswith("_hoodie_")]
    return json.dumps(schema, separators=(",", ":"))


def long_bytes(value: int) -> bytes:
    """Avro's zigzag varint."""
    return write_varint((value << 1) ^ (value >> 63))


def text_bytes(text: str) -> bytes:
    """An Avro string: its length in bytes, then the UTF-8 bytes."""
    data = text.encode()
    return long_bytes(len(data)) + data


def _bytes(data: bytes) -> bytes:
    return long_bytes(len(data)) + data


def _head(kind: RecordType) -> bytes:
    """Five null meta fields, the empty key, the type."""
    return bytes(6) + long_bytes(kind)


def encode_listing(kind: RecordType, files: Listing) -> bytes:
    """A record of the files partition: ALL_PARTITIONS (sizes 0) or FILES."""
    parts = [_head(kind), _SOME]
    if files:
        parts.append(long_bytes(len(files)))
        for name, size in files.items():
            parts += (text_bytes(name), long_bytes(size or 0), _FLAGS[size is None])
    parts.append(b"\x00" + bytes(4))
    return b"".join(parts)


def encode_bloom(record: BloomRecord) -> bytes:
    """A record of bloom_filters."""
    return b"".join(
        (
            _head(RecordType.BLOOM_FILTERS),
            _NULL,
            _SOME,
            text_bytes(record.kind),
            text_bytes(record.timestamp),
            _bytes(record.filter),
            _FLAGS[record.deleted],
            bytes(3),
        )
    )


def decimal_bytes(number: int) -> bytes:
    """The shortest big-endian two's complement, as Java's ``BigInteger.toByteArray``."""
    size = (number if number >= 0 else -number - 1).bit_length() // 8 + 1
    return number.to_bytes(size, "big", signed=True)


_BOOLEAN, _INT, _LONG = b"\x02", b"\x04", b"\x06"
_INT_TYPES = frozenset((ValueType.INT, ValueType.DATE, ValueType.TIME_MILLIS))


def _wrapped(kind: ValueType, value: Value | None) -> bytes:
    """The value in the wrapper record of its type: union branch, then the value."""
    if value is None:
        return _NULL
    if isinstance(value, str):
        return b"\x0e" + text_bytes(value)
    if isinstance(value, bytes):
        return b"\x0c" + _bytes(value)
    if isinstance(value, bool):
        return _BOOLEAN + _FLAGS[value]
    if isinstance(value, float):
        return b"\x08" + _FLOAT.pack(value) if kind is ValueType.FLOAT else b"\x0a" + _DOUBLE.pack(value)
    if kind is ValueType.DECIMAL:
        return b"\x0c" + _bytes(decimal_bytes(value))
    return (_INT if kind in _INT_TYPES else _LONG) + long_bytes(value)


@lru_cache(maxsize=4096)
def _column_bytes(column: str) -> bytes:
    return _SOME + text_bytes(column)


@lru_cache(maxsize=256)
def _type_bytes(kind: ValueType, info: str | None) -> bytes:
    return _SOME + long_bytes(kind) + (_NULL if info is None else _SOME + text_bytes(info)) + bytes(2)


_STATS_HEADS: Final = {
    kind: _head(kind) + _NULL * 2 + _SOME * 2 for kind in (RecordType.COLUMN_STATS, RecordType.PARTITION_STATS)
}
_NO_SIZES: Final = (_SOME + b"\x00") * 2


def _sizes(compressed: int, plain: int) -> bytes:
    return _SOME + long_bytes(compressed) + _SOME + long_bytes(plain)


def encode_stats(kind: RecordType, record: StatsRecord) -> bytes:
    """A record of column_stats or partition_stats. Measured: about 3 microseconds."""
    item = record.range
    return b"".join(
        (
            _STATS_HEADS[kind],
            text_bytes(record.name),
            _column_bytes(item.column),
            _wrapped(item.value_type, item.min),
            _wrapped(item.value_type, item.max),
            _SOME,
            long_bytes(item.value_count),
            _SOME,
            long_bytes(item.null_count),
            _NO_SIZES if item.sizes == (0, 0) else _sizes(*item.sizes),
            _FLAGS[record.deleted],
            _FLAGS[record.tight],
            _type_bytes(item.value_type, item.info),
        )
    )
