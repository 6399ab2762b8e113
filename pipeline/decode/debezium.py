"""Debezium JSON -> change batches: envelopes with and without embedded schema, and the unwrapped flat form.

Heads are decoded message by message, row images in bulk. What is known of order (measured on recorded events): the
number in ``source.file``, ``source.pos`` and ``source.row`` order streamed rows, ``source.ts_ms`` has whole seconds,
and ``op``, not ``source.snapshot``, tells what a record is. A flat record that does not carry file and position at
all is ordered by its Kafka offset.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.decode.changes import META_FIELDS, ChangeBatch, ControlKind, Decoded, Op, RawRecords, TableSchema
from pipeline.decode.chunk import Chunk, TableEvents
from pipeline.decode.events import NO_POSITION, Places, RowEvents, places
from pipeline.decode.options import DecodeOptions
from pipeline.decode.order import OUT_OF_RANGE
from pipeline.decode.quarantine import Buffer, Fault, Reason
from pipeline.decode.rows import RowReader, Rows
from pipeline.decode.schemas import SchemaSource
from pipeline.decode.table_schema import Asked, schemas_in_force

_I64 = npt.NDArray[np.int64]
_ROW_OPS = frozenset("crud")
_NULL = b"null"
_ANY = msgspec.json.Decoder().decode


def decode(records: RawRecords, schemas: SchemaSource, options: DecodeOptions) -> Decoded:
    """Decode one chunk: consecutive records of one topic partition (10,000 to 200,000 is a good size).

    Every record ends up in exactly one place of the result. Bad input raises nothing.
    """
    chunk = Chunk(records, schemas, options)
    for group in chunk.tables():
        _decode_table(chunk, group)
    chunk.decoded.quarantined.sort(key=lambda record: record.offset)
    chunk.decoded.controls.sort(key=lambda control: control.offset)
    return chunk.decoded


def _decode_table(chunk: Chunk, group: TableEvents) -> None:
    events = group.events
    order = places(events, chunk.records.offsets[events.at], chunk.options)
    chosen = _row_indices(chunk, group, order)
    if not len(chosen):
        return
    asked = Asked(
        source=group.source,
        embedded=group.schema,
        declared_key=chunk.schemas.key(group.source),
        message_key=group.key_fields,
        flat_prefix=chunk.options.flat_prefix if events.befores is None else None,
        form=chunk.options.form,
    )
    versions = chunk.schemas.versions(group.source)
    for schema, among in schemas_in_force(asked, versions, order.positions[chosen]):
        part = chosen[among]
        if isinstance(schema, Fault):
            for i in part.tolist():
                chunk.refuse(events.at[i], schema, group.source)
        else:
            _Part(chunk, schema, events, order.orders, part).decode()


def _row_indices(chunk: Chunk, group: TableEvents, order: Places) -> _I64:
    """The events that change rows; the others are settled here."""
    ops = group.events.ops
    if _ROW_OPS.issuperset(ops) and not (order.orders == OUT_OF_RANGE).any():
        return np.arange(len(ops))
    return np.array([i for i in range(len(ops)) if _changes_row(chunk, group, order, i)], dtype=np.int64)


def _changes_row(chunk: Chunk, group: TableEvents, order: Places, i: int) -> bool:
    events = group.events
    at, op = events.at[i], events.ops[i]
    if order.orders[i] == OUT_OF_RANGE:
        chunk.refuse(at, _order_fault(events, i), group.source)
    elif op in _ROW_OPS or (op == "" and events.befores is None):
        return True
    elif op == "t":
        chunk.control(at, ControlKind.TRUNCATE, group.source, int(order.orders[i]))
    else:
        chunk.refuse(at, Fault(Reason.UNKNOWN_OP, f"op {op[:50]!r} is none of c, r, u, d, t"), group.source)
    return False


def _order_fault(events: RowEvents, i: int) -> Fault:
    file, position = events.files[i], events.positions[i]
    if not file or position == NO_POSITION:
        return Fault(Reason.NO_POSITION, f"file {file!r} and position {position} are no place in a binlog")
    return Fault(Reason.ORDER_OUT_OF_RANGE, f"file {file!r}, position {position} do not fit the ordering value")


@dataclass
class _Part:
    """Events of one table under one schema: ``chosen`` of ``events``."""

    chunk: Chunk
    schema: TableSchema
    events: RowEvents
    orders: _I64
    chosen: _I64

    def decode(self) -> None:
        """Append one change batch (none if no row is good), refuse the bad records."""
        reader = RowReader(self.schema, self.chunk.options.max_nesting, self._added_prefix())
        rows = reader.read(self._images())
        faults = rows.faults | self._key_faults(rows)
        before, before_of = self._before(reader, faults)
        for i in sorted(faults):
            self.chunk.refuse(self.events.at[self.chosen[i]], faults[i], self.schema.source)
        good = np.array([i not in faults for i in rows.at.tolist()], dtype=bool) if faults else None
        table = rows.table if good is None else rows.table.filter(pa.array(good))
        kept = rows.at if good is None else rows.at[good]
        if not len(kept):
            return
        batch = ChangeBatch(self.schema, self.chunk.records.topic, self._with_meta(table, kept))
        if before is not None:
            stays = np.isin(before_of, kept)
            at = np.searchsorted(kept, before_of[stays])
            batch = replace(batch, before=before.filter(pa.array(stays)), before_at=at.astype(np.int64))
        self.chunk.decoded.changes.append(batch)

    def _added_prefix(self) -> str | None:
        return self.chunk.options.flat_prefix if self.events.befores is None else None

    def _images(self) -> list[Buffer]:
        """The row images; the Kafka key for deletes without one."""
        events = self.events
        whole = len(self.chosen) == len(events)
        images = list(events.images) if whole else [events.images[i] for i in self.chosen]
        if "d" not in events.ops:
            return images
        for n, i in enumerate(self.chosen.tolist()):
            if events.ops[i] == "d" and bytes(images[n]) == _NULL:
                images[n] = self.chunk.keys.payloads[events.at[i]] or images[n]
        return images

    def _key_faults(self, rows: Rows) -> dict[int, Fault]:
        """Rows of a keyed table without a value for each part of the key."""
        faults: dict[int, Fault] = {}
        for name in self.schema.key:
            absent = name not in rows.table.column_names
            if absent or rows.table[name].null_count:
                nulls = np.ones(len(rows.at), dtype=bool) if absent else rows.table[name].is_null().to_numpy()
                for i in rows.at[nulls].tolist():
                    faults.setdefault(i, self._key_fault(i, name))
        return faults

    def _key_fault(self, i: int, name: str) -> Fault:
        image = self.events.images[self.chosen[i]]
        row = _ANY(image)
        if isinstance(row, dict) and name in row:
            return Fault(Reason.NULL_KEY, f"key column {name} is null")
        return Fault(Reason.MISSING_KEY, f"the row has no key column {name}")

    def _before(self, reader: RowReader, faults: dict[int, Fault]) -> tuple[pa.Table | None, _I64]:
        """Before images of updates, where asked for, and the rows they belong to; their faults join the others."""
        befores = self.events.befores
        if befores is None or not self.chunk.options.wants_before(self.schema.source):
            return None, np.empty(0, dtype=np.int64)
        events = self.events
        of = [
            n
            for n, i in enumerate(self.chosen.tolist())
            if events.ops[i] == "u" and n not in faults and bytes(befores[i]) != _NULL
        ]
        rows = reader.read([befores[self.chosen[n]] for n in of])
        owners = np.array(of, dtype=np.int64)
        for i, fault in rows.faults.items():
            faults.setdefault(int(owners[i]), replace(fault, detail=f"before image: {fault.detail}"))
        return rows.table, owners[rows.at]

    def _with_meta(self, table: pa.Table, kept: _I64) -> pa.Table:
        """The value columns and META_FIELDS behind them."""
        events, chosen = self.events, self.chosen[kept]
        at = np.array(events.at, dtype=np.int64)[chosen]
        deletes = np.array([op == "d" for op in events.ops])[chosen]
        columns = (
            np.where(deletes, np.int8(Op.DELETE), np.int8(Op.UPSERT)),
            self.orders[chosen],
            np.array(events.rows, dtype=np.int32)[chosen],
            np.full(len(kept), self.chunk.records.partition, dtype=np.int32),
            self.chunk.records.offsets[at],
            np.array(events.source_ms, dtype=np.int64)[chosen],
        )
        for field, values in zip(META_FIELDS, columns, strict=True):
            table = table.append_column(field, pa.array(values, field.type))
        return table
