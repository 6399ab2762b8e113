"""The values of the record index: in which file group of the data table a record key has its row.

A value names the partition path, the file id (a UUID and a number after it) and the instant that put the key there. All
keys that a commit puts into one file group have the same value. Checked against Hudi Spark's own records.
"""

from __future__ import annotations

import io
import re
import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa

from hudilake.clock import parse_instant
from hudilake.errors import CorruptDataError
from hudilake.metadata.records.record_reader import READ_ERRORS, Cursor, is_current, parsed_schema
from hudilake.metadata.records.records import RecordType, long_bytes, record_schema, text_bytes

_UUID = re.compile(r"^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:-(\d+))?$")
#: ``fileIdEncoding``: the id as a UUID and a number, or as text.
_AS_UUID, _AS_TEXT = 0, 1
#: ``fileIndex`` of a file id without a number after its UUID.
_NO_INDEX = -1
_HEAD = bytes(6) + long_bytes(RecordType.RECORD_INDEX) + bytes(3) + b"\x02"
_META_FIELDS = 5
_SOME = b"\x02"
_TAIL = bytes(2)


@dataclass(frozen=True, slots=True)
class FileGroupPlace:
    """A file group of the data table: its partition path and its file id."""

    partition_path: str
    file_id: str


def encode_place(place: FileGroupPlace, instant: str) -> bytes:
    """The value of the keys that an instant puts into a file group."""
    match = _UUID.match(place.file_id)
    if match is None:
        high, low, index, text, encoding = 0, 0, _NO_INDEX, place.file_id, _AS_TEXT
    else:
        number = uuid.UUID(match[1]).int
        high, low = _signed(number >> 64), _signed(number & (1 << 64) - 1)
        index, text, encoding = int(match[2] or _NO_INDEX), "", _AS_UUID
    return b"".join(
        (
            _HEAD,
            _SOME + text_bytes(place.partition_path),
            _SOME + long_bytes(high),
            _SOME + long_bytes(low),
            _SOME + long_bytes(index),
            _SOME + text_bytes(text),
            _SOME + long_bytes(parse_instant(instant)),
            long_bytes(encoding),
            _TAIL,
        )
    )


@lru_cache(maxsize=65536)
def decode_place(data: bytes) -> FileGroupPlace:
    """The file group that a value of the current schema names. Raises CorruptDataError for bytes that are no such
    record."""
    try:
        return _decoded(Cursor(data, 0))
    except READ_ERRORS as error:
        raise _unreadable(error) from error


def of_schema(values: pa.Array, schema: str | None) -> pa.Array:
    """Values as they are under the current schema.

    Args:
        values: dictionary<int32, binary> array.
        schema: the Avro schema they were written with (JSON text); None for the current one.

    Raises CorruptDataError.
    """
    if schema is None or is_current(schema):
        return values
    try:
        known = [_rewritten(value, schema) for value in values.dictionary.to_pylist()]
    except READ_ERRORS as error:
        raise _unreadable(error) from error
    return pa.DictionaryArray.from_arrays(values.indices, pa.array(known, pa.binary()))


def _rewritten(data: bytes, schema: str) -> bytes:
    current = parsed_schema(record_schema())
    record: Any = fastavro.schemaless_reader(io.BytesIO(data), parsed_schema(schema), current)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, current, record)
    return out.getvalue()


def _unreadable(error: Exception) -> CorruptDataError:
    return CorruptDataError(f"a record of the record index cannot be read: {error}", do_next="run binlake repair")


def located(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The file groups that n values name.

    Args:
        values: dictionary<int32, binary> array of n values of the current schema; null stays null.

    Returns (partition paths, file ids), string arrays of n. Raises CorruptDataError.
    """
    used = values.dictionary.take(values.indices.drop_null().unique())
    known = {value: decode_place(value) for value in used.to_pylist()}
    places = [known.get(value) for value in values.dictionary.to_pylist()]
    paths = pa.array([place.partition_path if place else None for place in places], pa.string())
    ids = pa.array([place.file_id if place else None for place in places], pa.string())
    return paths.take(values.indices), ids.take(values.indices)


def _decoded(cursor: Cursor) -> FileGroupPlace:
    for _ in range(_META_FIELDS):  # Hudi Spark's compaction puts the file's name in
        cursor.optional_text()
    cursor.bytes()
    kind = cursor.long()
    if kind != RecordType.RECORD_INDEX or [cursor.long() for _ in range(4)] != [0, 0, 0, 1]:
        raise ValueError(f"it is of type {kind}")
    partition, high, low = cursor.optional_text(), cursor.optional_long(), cursor.optional_long()
    index, text = cursor.optional_long(), cursor.optional_text()
    cursor.optional_long()
    return _place(partition, high, low, index, text, cursor.long())


def _place(partition: str, high: int, low: int, index: int, text: str, encoding: int) -> FileGroupPlace:
    if encoding == _AS_TEXT:
        return FileGroupPlace(partition, text)
    if encoding != _AS_UUID:
        raise ValueError(f"its file id has encoding {encoding}")
    name = str(uuid.UUID(int=(high & (1 << 64) - 1) << 64 | low & (1 << 64) - 1))
    return FileGroupPlace(partition, name if index == _NO_INDEX else f"{name}-{index}")


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
