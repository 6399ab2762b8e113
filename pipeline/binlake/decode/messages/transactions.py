"""Debezium's transaction metadata: the transaction of a row event, and the BEGIN and END records of their topic.

Measured on recordings (MariaDB, Debezium 3.4, ``provide.transaction.metadata``): the topic has the transactions of the
whole server in binlog order. END counts events by table. A DDL statement leaves a BEGIN without END, and so does a
connector that was killed. A connector that resumes in the middle of a transaction writes BEGIN again, counts from 1
again, and its END counts only the events that it sent itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Generic, Literal, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from binlake.decode.changes import RawRecords

T = TypeVar("T")
_Order = Annotated[int, msgspec.Meta(ge=1)]


class _Membership(msgspec.Struct, gc=False):
    id: str
    data_collection_order: _Order


class _TableName(msgspec.Struct, gc=False):
    db: str = ""
    table: str = ""


class _TransactionRow(msgspec.Struct, gc=False):
    op: Literal["c", "u", "d", "t"]
    source: _TableName
    transaction: _Membership | None = None


class _Collection(msgspec.Struct):
    data_collection: str
    event_count: int


class _Mark(msgspec.Struct):
    status: Literal["BEGIN", "END"]
    id: str
    data_collections: list[_Collection] | None = None


class _Payload(msgspec.Struct, Generic[T]):
    payload: T


_ROW = msgspec.json.Decoder(_TransactionRow)
_FRAMED_ROW = msgspec.json.Decoder(_Payload[_TransactionRow])
_MARK = msgspec.json.Decoder(_Mark)
_FRAMED_MARK = msgspec.json.Decoder(_Payload[_Mark])
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


@dataclass(frozen=True, slots=True)
class Mark:
    """A BEGIN (``counts`` None) or END (events by ``database.table``) and its place."""

    transaction: str
    partition: int
    offset: int
    timestamp_ms: int
    counts: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Truncate:
    """The record of a TRUNCATE: a transaction of its own, which has a BEGIN and no END. ``transaction``: "" if the
    record names none."""

    offset: int
    timestamp_ms: int
    transaction: str


@dataclass
class Members:
    """The streamed row events of some records of a topic partition, each with its transaction.

    ``codes``: int32 indices into ``kinds``, pairs (transaction, ``database.table``). ``orders``: the event's number
    among those of its table in the transaction. ``bare``: the first offset of a streamed row without a transaction.
    ``truncates``: the TRUNCATEs, which are no rows.
    """

    topic: str
    partition: int
    offsets: npt.NDArray[np.int64]
    timestamps_ms: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int32]
    orders: npt.NDArray[np.int64]
    kinds: list[tuple[str, str]] = field(default_factory=list)
    bare: int | None = None
    truncates: list[Truncate] = field(default_factory=list)


def numbered(transaction: str) -> tuple[str, int]:
    """The name of a transaction without its last number, and this number: of two with the same name before it the
    larger one is the newer one (GTIDs of one server, positions of one file)."""
    stem = transaction.rstrip("0123456789")
    return stem, int(transaction[len(stem) :] or 0)


def marks(records: RawRecords) -> list[Mark]:
    """The BEGIN and END records among the records of a transaction topic, in order."""
    transaction_marks = []
    for index, value in enumerate(records.values):
        mark = _mark(value) if value is not None else None
        if mark is not None:
            counts = None
            if mark.status == "END":
                counts = {c.data_collection: c.event_count for c in mark.data_collections or ()}
            place = records.partition, int(records.offsets[index]), int(records.timestamps_ms[index])
            transaction_marks.append(Mark(mark.id, *place, counts))
    return transaction_marks


def _mark(value: bytes) -> _Mark | None:
    return _decoded(value, _MARK.decode, _FRAMED_MARK.decode)


def members(records: RawRecords) -> Members:
    """The streamed rows among the records of a data topic. Other records belong to no transaction and are left out."""
    kinds: dict[tuple[str, str], int] = {}
    indices: list[int] = []
    codes: list[int] = []
    orders: list[int] = []
    bare = None
    truncates: list[Truncate] = []
    for i, value in enumerate(records.values):
        row = _row(value) if value is not None else None
        if row is None:
            continue
        if row.op == "t":
            name = "" if row.transaction is None else row.transaction.id
            truncates.append(Truncate(int(records.offsets[i]), int(records.timestamps_ms[i]), name))
            continue
        if row.transaction is None:
            bare = i if bare is None else bare
            continue
        kind = (row.transaction.id, f"{row.source.db}.{row.source.table}")
        indices.append(i)
        codes.append(kinds.setdefault(kind, len(kinds)))
        orders.append(row.transaction.data_collection_order)
    return Members(
        topic=records.topic,
        partition=records.partition,
        offsets=records.offsets[indices],
        timestamps_ms=records.timestamps_ms[indices],
        codes=np.array(codes, dtype=np.int32),
        orders=np.array(orders, dtype=np.int64),
        kinds=list(kinds),
        bare=None if bare is None else int(records.offsets[bare]),
        truncates=truncates,
    )


def _row(value: bytes) -> _TransactionRow | None:
    return _decoded(value, _ROW.decode, _FRAMED_ROW.decode)


def _decoded(value: bytes, plain: Callable[[bytes], T], framed: Callable[[bytes], _Payload[T]]) -> T | None:
    """The value decoded, with or without an embedded schema; None for any other value."""
    with contextlib.suppress(*_BAD):
        return plain(value)
    with contextlib.suppress(*_BAD):
        return framed(value).payload
    return None
