"""Kafka records as lines and rows of dump files, in both directions.

A record is ``{topic, partition, offset, timestamp, key, value}``. In JSON ``key`` and ``value`` are their text, or
``key_base64`` and ``value_base64`` where the bytes are not UTF-8. If a foreign writer stored a key or value as a JSON
object, its bytes in the file are used.
"""

from __future__ import annotations

import base64
import binascii
import calendar
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.changes import RawRecords

_ABSENT = msgspec.Raw(b"")
#: A bare event that says nothing: what Kafka's console consumer prints for a record without a value.
NULL_EVENT = b"null"
COLUMNS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
)


_MAX_LONG = (1 << 63) - 1


class _Line(msgspec.Struct, omit_defaults=True):
    topic: str
    partition: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    offset: Annotated[int, msgspec.Meta(ge=0, le=_MAX_LONG)]
    timestamp: Annotated[int, msgspec.Meta(ge=-_MAX_LONG, le=_MAX_LONG)] | str | None = None
    key: msgspec.Raw = _ABSENT
    value: msgspec.Raw = _ABSENT
    key_base64: str | None = None
    value_base64: str | None = None


_LINE = msgspec.json.Decoder(_Line)
_TEXT = msgspec.json.Decoder(str)
_ENCODER = msgspec.json.Encoder()


@dataclass
class RecordColumns:
    """Records in file order, column by column. ``topic`` is None where the file does not give a record's Kafka
    coordinates."""

    topics: list[str | None] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)

    def grouped(self, elsewhere: str, first: int, timestamp_ms: int) -> Iterator[RawRecords]:
        """One chunk for every topic partition, offsets ascending.

        Args:
            elsewhere: the topic for records without one (partition 0); their place in the file is their offset.
            first: the place of the first of these rows in the file.
            timestamp_ms: for records without a timestamp, in milliseconds.
        """
        places: dict[tuple[str, int], list[int]] = {}
        for index, (topic, partition) in enumerate(zip(self.topics, self.partitions, strict=True)):
            place = (elsewhere, 0) if topic is None else (topic, partition)
            places.setdefault(place, []).append(index)
        for (topic, partition), mine in places.items():
            offsets = np.array(
                [first + index if self.topics[index] is None else self.offsets[index] for index in mine], np.int64
            )
            stamps = [self.timestamps_ms[index] if self.timestamps_ms[index] >= 0 else timestamp_ms for index in mine]
            order = self._once(offsets, mine, np.argsort(offsets, kind="stable"))
            yield RawRecords(
                topic=topic,
                partition=partition,
                offsets=offsets[order],
                timestamps_ms=np.array(stamps, np.int64)[order],
                keys=[self.keys[mine[index]] for index in order],
                values=[self.values[mine[index]] for index in order],
            )

    def _once(
        self, offsets: npt.NDArray[np.int64], rows: Sequence[int], order: npt.NDArray[np.intp]
    ) -> npt.NDArray[np.intp]:
        """The order without records that come again right behind themselves: a writer that died wrote them twice."""
        again = np.flatnonzero(np.diff(offsets[order]) == 0) + 1
        return np.delete(order, [place for place in again if self._same(rows[order[place]], rows[order[place - 1]])])

    def _same(self, one: int, other: int) -> bool:
        return self.keys[one] == self.keys[other] and self.values[one] == self.values[other]


def is_record(line: bytes) -> bool:
    """Whether a line is a record with its coordinates, rather than a bare event."""
    try:
        parsed = _LINE.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return len(parsed.value) > 0 or parsed.value_base64 is not None


def records_of(lines: Sequence[bytes]) -> RecordColumns:
    """The records of lines. A line that is not a record is taken as a bare event, so that nothing is lost."""
    rows = RecordColumns()
    for line in lines:
        try:
            parsed = _LINE.decode(line)
            key = _content(parsed.key, parsed.key_base64)
            value = _content(parsed.value, parsed.value_base64)
            stamp = _millis(parsed.timestamp)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            _append(rows, None, 0, 0, -1, None, _event(line))
        else:
            _append(rows, parsed.topic, parsed.partition, parsed.offset, stamp, key, value)
    return rows


def events_of(lines: Sequence[bytes]) -> RecordColumns:
    """Lines that are bare events."""
    count = len(lines)
    return RecordColumns(
        [None] * count, [0] * count, [0] * count, [-1] * count, [None] * count, list(map(_event, lines))
    )


def _event(line: bytes) -> bytes | None:
    return None if line == NULL_EVENT else line


def record_of(row: dict[str, Any]) -> tuple[str | None, int, int, int, bytes | None, bytes | None]:
    """The record of a row of Parquet or Avro. Raises ValueError, TypeError for columns of other types."""
    topic, partition, offset = row.get("topic"), row.get("partition"), row.get("offset")
    if topic is None or partition is None or offset is None:
        topic, partition, offset = None, 0, 0
    stamp = _millis(row.get("timestamp"))
    return topic, int(partition), int(offset), stamp, _bytes(row.get("key")), _bytes(row["value"])


def rows_of(rows: Sequence[dict[str, Any]]) -> RecordColumns:
    """The records of rows. Errors as ``record_of``."""
    record_columns = RecordColumns()
    for row in rows:
        _append(record_columns, *record_of(row))
    return record_columns


def line_of(
    topic: str, partition: int, offset: int, timestamp_ms: int, key: bytes | None, value: bytes | None
) -> bytes:
    """A record as a line, the line break included."""
    line: dict[str, Any] = {"topic": topic, "partition": partition, "offset": offset, "timestamp": timestamp_ms}
    for name, content in (("key", key), ("value", value)):
        try:
            line[name] = None if content is None else content.decode("utf-8")
        except UnicodeDecodeError:
            line[f"{name}_base64"] = base64.b64encode(content or b"").decode("ascii")
    return _ENCODER.encode(line) + b"\n"


def _append(
    rows: RecordColumns,
    topic: str | None,
    partition: int,
    offset: int,
    stamp: int,
    key: bytes | None,
    value: bytes | None,
) -> None:
    rows.topics.append(topic)
    rows.partitions.append(partition)
    rows.offsets.append(offset)
    rows.timestamps_ms.append(stamp)
    rows.keys.append(key)
    rows.values.append(value)


def _content(raw: msgspec.Raw, encoded: str | None) -> bytes | None:
    if encoded is not None:
        try:
            return base64.b64decode(encoded, validate=True)
        except binascii.Error as error:
            raise ValueError(str(error)) from error
    text = bytes(raw)
    if text in (b"", b"null"):
        return None
    return _TEXT.decode(text).encode("utf-8") if text.startswith(b'"') else text


def _millis(stamp: object) -> int:
    """A Kafka timestamp in milliseconds; -1 where there is none."""
    if stamp is None:
        return -1
    if isinstance(stamp, str):
        stamp = datetime.fromisoformat(stamp)
    if isinstance(stamp, datetime):
        known = stamp if stamp.tzinfo is not None else stamp.replace(tzinfo=UTC)
        return calendar.timegm(known.utctimetuple()) * 1000 + known.microsecond // 1000
    return int(stamp)  # type: ignore[call-overload,no-any-return]


def _bytes(content: object) -> bytes | None:
    if content is None or isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode("utf-8")
    raise TypeError(f"key and value are bytes or text, not {type(content).__name__}")
