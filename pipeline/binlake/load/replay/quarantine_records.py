"""Reads the records of a quarantine table, to show or to replay them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from binlake.decode.changes import QuarantinedRecord, RawRecords
from binlake.source.offsets import Ranges
from binlake.tables.quarantine import COLUMNS
from binlake.tables.seal import Seal
from hudilake.errors import ConfigError, LakeError
from hudilake.read import TableReader
from hudilake.read.slice import read_file_slice
from hudilake.services.erasure.record import erasure_records
from hudilake.storage import Storage
from hudilake.table.table import HudiTable

_PAYLOAD = ("key", "value")
_STAMPS = {"kafka_time": "kafka_ms", "quarantined_at": "quarantined_ms", "replayed_at": "replayed_ms"}


@dataclass(frozen=True, slots=True)
class QuarantineEntry:
    """One record of the quarantine. Times are in milliseconds since the epoch.

    Args:
        topic, partition, offset: its coordinates.
        kafka_ms: its time in Kafka.
        key, value: the raw bytes; None also if they were not requested.
        reason, detail: why it cannot be applied.
        source_table: ``database.table``; None if the table is unknown.
        quarantined_ms: when it was quarantined.
        replayed_ms: when it was replayed; None if it was not replayed yet.
        replayed_to: the commit that contains it; None if it rightly changed no row.
    """

    topic: str
    partition: int
    offset: int
    kafka_ms: int
    key: bytes | None
    value: bytes | None
    reason: str
    detail: str
    source_table: str | None
    quarantined_ms: int
    replayed_ms: int | None = None
    replayed_to: str | None = None

    @property
    def name(self) -> str:
        """``topic/partition:offset``."""
        return f"{self.topic}/{self.partition}:{self.offset}"

    @property
    def place(self) -> tuple[str, int, int]:
        """The coordinates: topic, partition, offset."""
        return self.topic, self.partition, self.offset

    @property
    def digest(self) -> int:
        """A hash that differs for another record with the same coordinates, in a topic that was created again."""
        parts = (str(self.kafka_ms).encode(), self.key, self.value)
        return zlib.crc32(b"".join(b"-" if p is None else b"%d:%s" % (len(p), p) for p in parts))

    def row(self) -> dict[str, Any]:
        """The record as a row of the quarantine table."""
        return {
            **{name: getattr(self, name) for name in COLUMNS.names if name not in _STAMPS},
            **{column: None if (ms := getattr(self, name)) is None else ms * 1000 for column, name in _STAMPS.items()},
        }

    def failed_again(self, record: QuarantinedRecord) -> QuarantineEntry:
        """The record with the reason of another attempt."""
        source = str(record.source) if record.source is not None else self.source_table
        return replace(self, reason=str(record.reason), detail=record.detail, source_table=source)

    def waiting(self) -> QuarantineEntry:
        """The record, marked as not replayed."""
        return replace(self, replayed_ms=None, replayed_to=None)

    def replayed(self, at_ms: int, to: str | None, source_table: str | None) -> QuarantineEntry:
        """The record, marked as replayed."""
        return replace(self, replayed_ms=at_ms, replayed_to=to, source_table=source_table or self.source_table)


@dataclass(frozen=True)
class QuarantineSelection:
    """A selection of records; an argument that is empty or None selects all.

    Args:
        reasons: codes of reasons.
        tables: ``database.table``; ``-`` for records of no known table.
        names: ``topic/partition:offset``.
        since_ms, until_ms: the time of quarantine (ms since the epoch); the end is exclusive.
        replayed: whether records that were replayed are selected too.
    """

    reasons: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    since_ms: int | None = None
    until_ms: int | None = None
    replayed: bool = False

    def takes(self, held: QuarantineEntry) -> bool:
        """Whether a record is selected."""
        return (
            (not self.reasons or held.reason in self.reasons)
            and (not self.tables or (held.source_table or "-") in self.tables)
            and (not self.names or held.name in self.names)
            and (self.since_ms is None or held.quarantined_ms >= self.since_ms)
            and (self.until_ms is None or held.quarantined_ms < self.until_ms)
            and (self.replayed or held.replayed_ms is None)
        )


@dataclass
class ReplayResult:
    """The result of a replay, in numbers of records.

    Args:
        selected: records that were selected and had not been replayed.
        applied: records that were applied as the stream does; an older event may lose to a newer row or a TRUNCATE.
        found: records in a commit of an earlier run that died before it marked them.
        filtered: records that rightly change no row.
        failed: records that stay in quarantine, with their new reason.
        left_to_stream: records that stay because the stream has not read them yet and delivers them itself.
        too_old: records that stay because a newer delete of the same key may be dropped already.
        commits: the commits made, by table.
        errors: tables that could not be written.
    """

    selected: int = 0
    applied: int = 0
    found: int = 0
    filtered: int = 0
    failed: int = 0
    left_to_stream: int = 0
    too_old: int = 0
    commits: dict[str, list[str]] = field(default_factory=dict)
    errors: dict[str, LakeError] = field(default_factory=dict)


def held_records(
    storage: Storage, selection: QuarantineSelection, seal: Seal, *, payload: bool
) -> list[QuarantineEntry]:
    """The records of the quarantine table at ``storage``, by coordinates; an empty list if there is no table.

    ``seal``: the seal of the records; ``payload``: read keys and values too. Raises ConfigError if the records have
    another seal, CorruptDataError, StorageError.
    """
    if not HudiTable.exists(storage):
        return []
    table = HudiTable.open(storage)
    names = [n for n in COLUMNS.names if n in table.schema.names and (payload or n not in _PAYLOAD)]
    entries = [
        held
        for piece in table.file_slices()
        for row in read_file_slice(table, piece, columns=names).to_pylist()
        if selection.takes(held := _held(row, seal))
    ]
    return sorted(entries, key=lambda held: held.place)


@dataclass(frozen=True)
class HeldOffsets:
    """Where the records of a quarantine table come from.

    Args:
        places: (topic, partition) -> the offsets of its records, ascending, those that were replayed among them.
        erased: whether records were erased from the table.
    """

    places: Mapping[tuple[str, int], npt.NDArray[np.int64]]
    erased: bool = False

    @classmethod
    def of(cls, storage: Storage) -> HeldOffsets:
        """Those of the quarantine table at ``storage``; none if there is no table. Raises CorruptDataError,
        StorageError."""
        if not HudiTable.exists(storage):
            return cls({})
        columns = ["topic", "partition", "offset"]
        places: dict[tuple[str, int], list[int]] = {}
        for batch in TableReader(HudiTable.open(storage)).read(columns=columns):
            for topic, partition, offset in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
                places.setdefault((topic, partition), []).append(offset)
        held = {place: np.sort(np.array(offsets, dtype=np.int64)) for place, offsets in places.items()}
        return cls(held, bool(erasure_records(storage)))

    def has_any(self, ranges: Ranges) -> bool:
        """Whether a record comes from one of these offsets."""
        return any(
            np.searchsorted(known, r.end) > np.searchsorted(known, r.start)
            for r in ranges
            if (known := self.places.get((r.topic, r.partition))) is not None
        )


def named(text: str) -> str:
    """The record name in a user's text. Raises ConfigError for text that is not a record name."""
    place, colon, offset = text.rpartition(":")
    topic, slash, partition = place.rpartition("/")
    if not (colon and slash and topic and partition.isdigit() and offset.isdigit()):
        raise ConfigError(
            "this is not the name of a quarantined record",
            do_next="write topic/partition:offset, as list does",
            record=text,
        )
    return f"{topic}/{int(partition)}:{int(offset)}"


def chunks(records: Sequence[QuarantineEntry]) -> Iterator[RawRecords]:
    """The records as raw records, one chunk for each topic partition, ordered by offset."""
    by_place: dict[tuple[str, int], list[QuarantineEntry]] = {}
    for held in sorted(records, key=lambda held: held.place):
        by_place.setdefault((held.topic, held.partition), []).append(held)
    for (topic, partition), mine in by_place.items():
        yield RawRecords(
            topic=topic,
            partition=partition,
            offsets=np.array([held.offset for held in mine], dtype=np.int64),
            timestamps_ms=np.array([held.kafka_ms for held in mine], dtype=np.int64),
            keys=[held.key for held in mine],
            values=[held.value for held in mine],
        )


def _held(row: dict[str, Any], seal: Seal) -> QuarantineEntry:
    millis = {name: _millis(row.pop(column, None)) for column, name in _STAMPS.items()}
    absent: dict[str, Any] = {"key": None, "value": None, "replayed_to": None}
    opened = {name: seal.open(row[name]) for name in _PAYLOAD if name in row}
    return QuarantineEntry(**(absent | row | millis | opened | {"detail": seal.open_text(row["detail"])}))


def _millis(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp()) * 1000 + moment.microsecond // 1000
