"""Records that are no change events -> change batches: each record is one row, ordered by its Kafka offset.

A row with the key of an earlier one takes its place; a record without a value deletes the row that its key names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode import order
from binlake.decode.changes import META_FIELDS, META_NAMES, UNKNOWN_PLACE, ChangeBatch, Column, Op, TableSchema
from binlake.decode.messages.chunk import DecodeChunk
from binlake.decode.messages.envelopes import TOMBSTONE
from binlake.decode.messages.rows import RowReader
from binlake.decode.options import PlainTopics
from binlake.decode.quarantine import Buffer, Fault, Reason
from binlake.decode.types.mysql_types import UTC_MICROSECONDS

_I64 = npt.NDArray[np.int64]
_FACT_TYPES = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": UTC_MICROSECONDS,
}
_FACT = "kafka"


@dataclass(frozen=True)
class PlainRows:
    """Rows of one table under one list of columns.

    Attributes:
        at: the index of each row's record, ascending.
        images: each row as a JSON object of the columns.
        columns: without those for Kafka's facts. Columns of type null are read, but left out of the batch.
        deletes: the records that delete: their images hold the key alone.
    """

    at: Sequence[int]
    images: Sequence[Buffer]
    columns: tuple[Column, ...]
    deletes: frozenset[int] = frozenset()


def topics_of(chunk: DecodeChunk) -> PlainTopics | None:
    """What the chunk's topic feeds; None if no setting names it, and its records are then refused."""
    plain_topics = chunk.options.plain_topics(chunk.records.topic)
    if plain_topics is None:
        detail = f"no entry of source.plain takes topic {chunk.records.topic}"
        for index in range(len(chunk.records)):
            chunk.refuse(index, Fault(Reason.UNKNOWN_TABLE, detail))
    return plain_topics


def settle_tombstones(chunk: DecodeChunk, topics: PlainTopics) -> list[int]:
    """The records without a value that can delete a row by their key; all others without a value are settled."""
    if not topics.key:
        if chunk.tombstones:
            chunk.decoded.count_filtered(topics.table, TOMBSTONE, len(chunk.tombstones))
        return []
    able = []
    for index in chunk.tombstones:
        if chunk.options.has_emptied and chunk.records.keys[index] is None:
            chunk.decoded.count_filtered(topics.table, TOMBSTONE)
        elif topics.no_delete is not None:
            chunk.refuse(index, Fault(Reason.MISSING_IMAGE, topics.no_delete), topics.table)
        elif chunk.records.keys[index] is None:
            chunk.refuse(index, Fault(Reason.MISSING_KEY, "neither a value nor a key"), topics.table)
        else:
            able.append(index)
    return able


def decode_plain(chunk: DecodeChunk, topics: PlainTopics, rows: PlainRows) -> dict[int, Fault]:
    """Append one change batch (none if no row is good) and refuse the bad records; returns their faults by record."""
    if not len(rows.at):
        return {}
    facts = tuple(Column(name, _FACT, _FACT_TYPES[fact]) for fact, name in topics.metadata)
    if (fault := _names_fault(rows.columns, facts)) is not None:
        return _refused(chunk, topics, dict.fromkeys(rows.at, fault))
    read = RowReader(TableSchema(topics.table, rows.columns, ()), chunk.options.max_nesting).read(rows.images)
    indices = np.array(rows.at, dtype=np.int64)
    faults = {int(indices[i]): _as_message(fault) for i, fault in read.faults.items()}
    columns = tuple(column for column in rows.columns if column.lake_type != pa.null())
    kept, table = indices[read.at], read.table.select([column.name for column in columns])
    for fact, column in zip(topics.metadata, facts, strict=True):
        table = table.append_column(pa.field(column.name, column.lake_type), _values(chunk, fact[0], kept))
    orders = order.offset_orders(np.full(len(kept), chunk.options.epoch), chunk.records.offsets[kept])
    good = _keyed(topics.key, table, kept, faults) & _in_range(orders, kept, faults)
    table, kept, orders = table.filter(pa.array(good)), kept[good], orders[good]
    if len(kept):
        schema = TableSchema(topics.table, (*columns, *facts), topics.key)
        deletes = np.isin(kept, list(rows.deletes)) if rows.deletes else np.zeros(len(kept), dtype=bool)
        batch = ChangeBatch(schema, chunk.records.topic, _with_meta(chunk, table, kept, orders, deletes))
        chunk.decoded.changes.append(batch)
    return _refused(chunk, topics, faults)


def _refused(chunk: DecodeChunk, topics: PlainTopics, faults: dict[int, Fault]) -> dict[int, Fault]:
    for record, fault in faults.items():
        chunk.refuse(record, fault, topics.table)
    return faults


def _names_fault(columns: Sequence[Column], facts: Sequence[Column]) -> Fault | None:
    names = [column.name for column in columns]
    if taken := {fact.name for fact in facts} & set(names):
        return Fault(
            Reason.RESERVED_COLUMN, f"{', '.join(sorted(taken))}: a column of metadata_columns has the same name"
        )
    if taken := set(META_NAMES) & set(names):
        return Fault(Reason.RESERVED_COLUMN, f"columns {', '.join(sorted(taken))} are names binlake itself uses")
    return None


def _as_message(fault: Fault) -> Fault:
    """A message that is no object, said without the words of change events."""
    if fault.reason is not Reason.MISSING_IMAGE:
        return fault
    return replace(fault, reason=Reason.UNKNOWN_MESSAGE, detail=fault.detail.replace("the row image", "the message"))


def _values(chunk: DecodeChunk, fact: str, at: _I64) -> pa.Array:
    """What Kafka knows of the records."""
    records = chunk.records
    if fact == "topic":
        return pa.array([records.topic], pa.string()).take(pa.array(np.zeros(len(at), dtype=np.int64)))
    if fact == "partition":
        return pa.array(np.full(len(at), records.partition), pa.int32())
    if fact == "offset":
        return pa.array(records.offsets[at])
    millis = records.timestamps_ms[at]
    return pa.array(millis * 1000, pa.int64(), mask=millis < 0).cast(UTC_MICROSECONDS)


def _keyed(key: tuple[str, ...], table: pa.Table, at: _I64, faults: dict[int, Fault]) -> npt.NDArray[np.bool_]:
    """The rows that have a value in every key column; the faults of the others are added."""
    good = np.ones(len(at), dtype=bool)
    for name in key:
        if name not in table.column_names:
            faults.update(
                dict.fromkeys(at.tolist(), Fault(Reason.MISSING_KEY, f"no message has the key column {name}"))
            )
            return np.zeros(len(at), dtype=bool)
        if table[name].null_count:
            null = table[name].is_null().to_numpy()
            faults.update(
                dict.fromkeys(at[null & good].tolist(), Fault(Reason.NULL_KEY, f"key column {name} is null or absent"))
            )
            good &= ~null
    return good


def _in_range(orders: _I64, at: _I64, faults: dict[int, Fault]) -> npt.NDArray[np.bool_]:
    good = orders != order.OUT_OF_RANGE
    for record in at[~good].tolist():
        faults.setdefault(record, Fault(Reason.ORDER_OUT_OF_RANGE, "the offset does not fit the ordering value"))
    return np.asarray(good)


def _with_meta(chunk: DecodeChunk, table: pa.Table, at: _I64, orders: _I64, deletes: npt.NDArray[np.bool_]) -> pa.Table:
    """The value columns followed by META_FIELDS."""
    records, n = chunk.records, len(at)
    columns = (
        np.where(deletes, np.int8(Op.DELETE), np.int8(Op.UPSERT)),
        orders,
        np.zeros(n, dtype=np.int32),
        np.full(n, records.partition, dtype=np.int32),
        records.offsets[at],
        np.maximum(records.timestamps_ms[at], 0),
        np.full(n, UNKNOWN_PLACE, dtype=np.int64),
    )
    for field, values in zip(META_FIELDS, columns, strict=True):
        table = table.append_column(field, pa.array(values, field.type))
    return table
