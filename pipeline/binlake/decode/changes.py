"""The canonical change batch: every format decodes to it, and the upsert package takes it.

All formats give the same batch for the same binlog, so all later code is independent of the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.inferred import InferredType, add_inferred

_T = TypeVar("_T")

EPOCH_BITS, FILE_BITS, POSITION_BITS = 11, 20, 32
#: ``__place`` of a row whose message names no binlog place.
UNKNOWN_PLACE = -1

#: Columns that every ``ChangeBatch.rows`` has after the value columns.
META_FIELDS: tuple[pa.Field, ...] = (
    pa.field("__op", pa.int8(), nullable=False),  # Op
    pa.field("__order", pa.int64(), nullable=False),  # ordering value, see ordering_value()
    pa.field("__row", pa.int32(), nullable=False),  # row number inside one rows event or message
    pa.field("__partition", pa.int32(), nullable=False),  # Kafka partition
    pa.field("__offset", pa.int64(), nullable=False),  # Kafka offset
    pa.field("__source_ms", pa.int64(), nullable=False),  # source.ts_ms, milliseconds since the epoch; 0 if unknown
    # the binlog place that the row shows, as an ordering value: of a streamed row that of its change, of a snapshot row
    # that of its reading; UNKNOWN_PLACE if the message names none
    pa.field("__place", pa.int64(), nullable=False),
)
META_NAMES = tuple(f.name for f in META_FIELDS)


class Op(IntEnum):
    """The effect of a row of a change batch on its record key."""

    UPSERT = 0
    DELETE = 1


class ControlKind(StrEnum):
    """Kinds of records that concern a whole table and change no single row."""

    TRUNCATE = "truncate"
    DDL = "ddl"


_MAX_IDENTIFIER = 64


def _is_identifier(name: str) -> bool:
    return 0 < len(name) <= _MAX_IDENTIFIER and "\0" not in name


class ZeroDates(StrEnum):
    """What becomes of a date that no calendar has because its month or its day is zero (``source.zero_dates``)."""

    NULL = "null"
    EPOCH = "epoch"
    TEXT = "text"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table at the source. The names are spelled exactly as in MySQL."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"

    @staticmethod
    @lru_cache(maxsize=4096)  # one call for each message of some formats
    def named(database: str, table: str) -> SourceTable | None:
        """The table of these names; None if MySQL can have no such table, so that a forged event names it.

        MySQL and MariaDB allow 1 to 64 characters and no U+0000 (manual, "Schema Object Names").
        """
        return SourceTable(database, table) if _is_identifier(database) and _is_identifier(table) else None


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its MySQL type text, how the JSON carries it (``wire``), and the type it has in the lake.

    ``wire`` is a name of ``binlake.decode.types.wires`` (for example ``decimal_base64``). ``scale``, ``length`` and
    ``zone`` (the time zone of a TIMESTAMP's text) are set for the wires that need them. ``zero_dates`` is set for DATE,
    DATETIME and TIMESTAMP.
    """

    name: str
    wire: str
    lake_type: pa.DataType
    mysql_type: str = ""
    scale: int = 0
    length: int = 0
    zone: str = ""
    zero_dates: ZeroDates | None = None


@dataclass(frozen=True)
class TableSchema:
    """The columns of a source table between two DDL statements. ``key`` is empty for a table without a key."""

    source: SourceTable
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    def column(self, name: str) -> Column:
        """The column of that name; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def arrow(self) -> pa.Schema:
        """The value columns as an Arrow schema of lake types, every field nullable."""
        return pa.schema([pa.field(c.name, c.lake_type) for c in self.columns])


@dataclass(frozen=True)
class RawRecords:
    """Consecutive Kafka records of one topic partition, unchanged.

    ``offsets`` and ``timestamps_ms`` are int64 arrays of the same length as ``keys`` and ``values``; None stands for
    a null key or value (a tombstone).
    """

    topic: str
    partition: int
    offsets: npt.NDArray[np.int64]
    timestamps_ms: npt.NDArray[np.int64]
    keys: list[bytes | None]
    values: list[bytes | None]

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def sizes(self) -> list[int]:
        """The bytes of each value that is neither null nor empty."""
        return list(map(len, filter(None, self.values)))

    def select(self, chosen: Sequence[int]) -> RawRecords:
        """The records at these indices."""
        record_indices = list(chosen)
        return RawRecords(
            self.topic,
            self.partition,
            self.offsets[record_indices],
            self.timestamps_ms[record_indices],
            [self.keys[i] for i in record_indices],
            [self.values[i] for i in record_indices],
        )

    def quarantined(self, at: int, reason: str, detail: str, source: SourceTable | None) -> QuarantinedRecord:
        """The record at an index as one that cannot be applied."""
        return QuarantinedRecord(
            topic=self.topic,
            partition=self.partition,
            offset=int(self.offsets[at]),
            timestamp_ms=int(self.timestamps_ms[at]),
            key=self.keys[at],
            value=self.values[at],
            reason=reason,
            detail=detail,
            source=source,
        )


@dataclass(frozen=True)
class ChangeBatch:
    """Row changes of one source table under one schema, from one topic.

    ``rows``: the value columns of ``schema`` (lake types, after image; for deletes the before image or only the key
    columns), then META_FIELDS. ``before``: the before images, value columns of ``schema`` only, one row for every row
    of ``before_at`` (int64 indices into ``rows``, ascending); present only where the options (DecodeOptions.before_of)
    or the message format require before images. ``origin``: the source table where a route gave the batch another name.
    ``transactions``: by Kafka offset the transaction of each record that names one; only where the options ask for it
    (DecodeOptions.transactions_of). ``keys_alone``: the deletes of which only the key is known (int64 indices into
    ``rows``, ascending).
    """

    schema: TableSchema
    topic: str
    rows: pa.Table
    before: pa.Table | None = None
    before_at: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    origin: SourceTable | None = None
    transactions: Mapping[int, str] = field(default_factory=dict)
    keys_alone: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class QuarantinedRecord:
    """One record that cannot be applied: raw bytes, coordinates, a short stable reason code and a detail text.

    ``origin``: the source table where a route gave the record another name.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    reason: str
    detail: str
    source: SourceTable | None = None
    origin: SourceTable | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """A record about a whole table: TRUNCATE (with its ordering value) or a DDL statement (with its text).

    ``origin``: the source table where a route gave the record another name. ``record``: the record's value where it
    defines the table; ``formats.table_changes`` reads it. ``source_ms``: the source's time of a TRUNCATE, 0 for none.
    """

    kind: ControlKind
    source: SourceTable
    order: int
    topic: str
    partition: int
    offset: int
    text: str = ""
    origin: SourceTable | None = None
    record: bytes = b""
    source_ms: int = 0


@dataclass
class NullsRead:
    """What messages tell of columns that are null: some forms leave them out.

    ``said``: whether a table's messages have these columns. ``trusted``: tables of whose updates values were taken for
    unchanged since nothing tells that they were null.
    """

    said: dict[SourceTable, bool] = field(default_factory=dict)
    trusted: set[SourceTable] = field(default_factory=set)

    def note(self, source: SourceTable, said: bool | None) -> None:
        """Take in what further messages of a table tell; None if they do not."""
        note_said(self.said, source, said)

    def add(self, other: NullsRead) -> None:
        """Take in what other messages tell."""
        for source, said in other.said.items():
            self.note(source, said)
        self.trusted |= other.trusted


@dataclass
class DecodedRecords:
    """The result of decoding a chunk of raw records.

    Every record is in exactly one place: a row of ``changes`` (several rows where a message holds several),
    ``quarantined``, ``controls``, or counted in ``filtered`` by (table or None, kind: tombstone, heartbeat,
    transaction, ddl, notification, ignored, query, bootstrap).
    ``unknown_columns`` names columns that occur in rows of a table but not in its schema. The caller may learn a newer
    schema and decode the chunk again. Until then those rows are in ``quarantined`` (reason ``unknown_column``).
    ``by_template`` counts the records that were read by templates, which is the fast way. ``says_deletes``: whether
    the messages say themselves which rows they delete; None if there is no message that tells. ``lone_tombstones``:
    whether tombstones were counted because of that. ``nulls``: what the messages tell of columns that are null.
    """

    changes: list[ChangeBatch] = field(default_factory=list)
    quarantined: list[QuarantinedRecord] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    filtered: dict[tuple[SourceTable | None, str], int] = field(default_factory=dict)
    unknown_columns: dict[SourceTable, set[str]] = field(default_factory=dict)
    inferred: dict[SourceTable, dict[str, InferredType]] = field(default_factory=dict)
    by_template: int = 0
    says_deletes: bool | None = None
    lone_tombstones: bool = False
    nulls: NullsRead = field(default_factory=NullsRead)

    def count_filtered(self, source: SourceTable | None, kind: str, n: int = 1) -> None:
        """Add ``n`` records that are valid and change nothing."""
        self.filtered[(source, kind)] = self.filtered.get((source, kind), 0) + n

    def note_deletes(self, said: bool | None) -> None:
        """Take in whether further messages say deletes: one that does not outweighs others."""
        if said is not None:
            self.says_deletes = said and self.says_deletes is not False

    def extend(self, others: Iterable[DecodedRecords]) -> None:
        """Add the results of other chunks to this one."""
        for other in others:
            self.changes += other.changes
            self.quarantined += other.quarantined
            self.controls += other.controls
            self.by_template += other.by_template
            self.note_deletes(other.says_deletes)
            self.lone_tombstones |= other.lone_tombstones
            self.nulls.add(other.nulls)
            for (source, kind), n in other.filtered.items():
                self.count_filtered(source, kind, n)
            for table, names in other.unknown_columns.items():
                self.unknown_columns.setdefault(table, set()).update(names)
            for table, columns in other.inferred.items():
                add_inferred(self.inferred.setdefault(table, {}), columns)


def note_said(answers: dict[_T, bool], of: _T, said: bool | None) -> None:
    """Note whether messages say something: those that do not outweigh others. ``said``: None if they do not tell."""
    if said is not None:
        answers[of] = said and answers.get(of, True)


def ordering_value(epoch: int, file_number: int, position: int) -> int:
    """(epoch, binlog file number, position) -> one LONG with the same order as the triple.

    The parts take 11, 20 and 32 bits, so the value is at most 2**63 - 1. Raises OverflowError when a part does not fit.
    The row number inside the event is not part of it: rows of one event are ordered before the write. Snapshot rows
    have file number 0 and the snapshot's seconds since the Unix epoch as position, so that every streamed row of the
    same epoch is newer. One LONG is used because it is the only ordering type that both judges read alike (measured).
    """
    if not (0 <= epoch < 1 << EPOCH_BITS and 0 <= file_number < 1 << FILE_BITS and 0 <= position < 1 << POSITION_BITS):
        raise OverflowError(f"ordering parts out of range: epoch {epoch}, file {file_number}, position {position}")
    return (epoch << (FILE_BITS + POSITION_BITS)) | (file_number << POSITION_BITS) | position


# Selects rows of a change batch with their before images.

#: One truth value a row.
Mask = npt.NDArray[np.bool_]
#: Before images, and the number of the row that each belongs to; None where a batch has none.
Moves = tuple[pa.Table, npt.NDArray[np.int64]] | None


def rows_where(batch: ChangeBatch, mask: Mask) -> ChangeBatch:
    """The rows of a batch for which the mask holds, with their before images."""
    moves = None if batch.before is None else (batch.before, batch.before_at)
    rows, moves = select_rows(batch.rows, moves, mask)
    keys_alone = (np.cumsum(mask) - 1)[batch.keys_alone[mask[batch.keys_alone]]]
    kept = replace(batch, rows=rows, keys_alone=keys_alone)
    return kept if moves is None else replace(kept, before=moves[0], before_at=moves[1])


def select_rows(rows: pa.Table, moves: Moves, mask: Mask) -> tuple[pa.Table, Moves]:
    """The rows for which the mask holds, and their before images by their new row numbers."""
    kept = rows.filter(pa.array(mask))
    if moves is None:
        return kept, None
    before, row_indices = moves
    inside = mask[row_indices]
    new_position = np.cumsum(mask) - 1
    return kept, (before.filter(pa.array(inside)), new_position[row_indices[inside]])
