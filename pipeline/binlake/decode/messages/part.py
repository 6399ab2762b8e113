"""Rows of one table, in any format -> change batches; bad rows are refused record by record.

A record with several rows is refused as a whole when one of its rows is bad: it is one line of the quarantine, and its
replay applies all of its rows or none. Its good rows wait for that replay; rows of other records do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.changes import META_FIELDS, ChangeBatch, Column, Op, TableSchema
from binlake.decode.events import Places, RowEvents
from binlake.decode.messages.chunk import DecodeChunk, TableEvents
from binlake.decode.messages.images import UNKNOWN, lacks_column, says_nulls
from binlake.decode.messages.rows import DecodedRows, RowReader
from binlake.decode.options import Form, JsonForm, MaxwellForm
from binlake.decode.quarantine import Buffer, Fault, Reason
from binlake.decode.schemas.schemas import SchemaVersion
from binlake.decode.schemas.table_schema import SchemaRequest, schemas_in_force
from binlake.decode.slices import Slices, nulls_of, selected

# BIT columns of the Kafka key: Debezium writes their bytes in one order in a snapshot, in another one otherwise.
#
# Its converter turns a value's bytes around in place, and the key and the row image share them (recorded with the
# MariaDB connector 3.4.0, BIT(1) to BIT(64)):
#
# - rows that an initial or blocking snapshot has read (``op`` r): turned around twice, big-endian in key and image;
# - rows of incremental snapshots (turned around three times) and of the binlog, and columns outside of the key:
#   little-endian.

_BITS = "bits"
_SNAPSHOT = frozenset({"true", "first", "first_in_data_collection", "last_in_data_collection", "last"})
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


def by_byte_order(
    chunk: DecodeChunk, group: TableEvents, schema: TableSchema, chosen: _I64
) -> Iterator[tuple[TableSchema, _I64]]:
    """The events ``chosen`` of a table, each part with the schema by which its row images are read."""
    columns = _columns_in_key(schema, group.key_fields or schema.key)
    ops = group.events.ops
    snapshot = [i for i in chosen.tolist() if ops[i] == "r" or not ops[i]] if columns else []
    if not snapshot:
        yield schema, chosen
        return
    wires: dict[str, list[int]] = {}
    for i in snapshot:
        wires.setdefault(_wire(chunk, group.events.at[i]), []).append(i)
    for wire, some in wires.items():
        yield _read_as(schema, columns, wire), np.array(some, dtype=np.int64)
    rest = np.setdiff1d(chosen, snapshot, assume_unique=True)
    if len(rest):
        yield schema, rest


def _columns_in_key(schema: TableSchema, key: tuple[str, ...]) -> frozenset[str]:
    """The columns of the key whose bytes have an order."""
    return frozenset(c.name for c in schema.columns if c.wire == _BITS and c.length > 8 and c.name in key)


def _read_as(schema: TableSchema, columns: frozenset[str], wire: str) -> TableSchema:
    def read(column: Column) -> Column:
        return replace(column, wire=wire) if column.name in columns else column

    return replace(schema, columns=tuple(map(read, schema.columns)))


def _wire(chunk: DecodeChunk, at: int) -> str:
    """How a row that a snapshot has read, or may have read, writes the BIT columns of its key."""
    said = _snapshot_of(chunk, at)
    if said in _SNAPSHOT:
        return "bits_big_endian"
    return _BITS if said in ("incremental", "false") else "bits_any_order"


def _snapshot_of(chunk: DecodeChunk, at: int) -> object:
    """What a record says of its snapshot; None if it says nothing."""
    try:
        message: Any = _ANY(chunk.payload(at))
    except _BAD:
        return None
    if not isinstance(message, dict):
        return None
    if isinstance(message.get("source"), dict) and "op" in message:
        return message["source"].get("snapshot")
    prefix = chunk.options.flat_prefix
    return message.get(f"{prefix}source_snapshot", message.get(f"{prefix}snapshot"))


_I64 = npt.NDArray[np.int64]
#: ``op`` of events that add a row; Maxwell's and Canal's come under Debezium's letters. "r": a row of a snapshot.
_INSERTS = frozenset("cr")
_HIDDEN = (
    "what was null before an update is not known, since the message leaves out columns that are null: set "
    "output_nulls=true at Maxwell; if it is, set source.maxwell.output_nulls"
)
_NO_BEFORE = "an update has no before image, and without it the row that it changes in the lake is not known"
_CHANGES = {"u": "the event changes a row", "d": "the event deletes a row"}
_ANY = msgspec.json.Decoder().decode


def decode_rows(
    chunk: DecodeChunk,
    group: TableEvents,
    order: Places,
    chosen: _I64,
    *,
    form: Form,
    versions: tuple[SchemaVersion, ...] | None = None,
) -> None:
    """Decode the events ``chosen`` of one table under the schemas in force at their positions.

    ``versions``: the table's schemas; None means those of the chunk's schema source.
    """
    if not len(chosen):
        return
    events, flat = group.events, group.events.befores is None
    deletes = events.deletes()
    asked = SchemaRequest(
        source=group.source,
        embedded=group.schema,
        declared_key=chunk.schemas.key(group.source),
        message_key=group.key_fields,
        flat_prefix=chunk.options.flat_prefix if flat else None,
        form=form,
        zero_dates=chunk.options.zero_dates,
    )
    known = chunk.schemas.versions(group.source) if versions is None else versions
    for schema, among in schemas_in_force(asked, known, order.positions[chosen]):
        part = chosen[among]
        if isinstance(schema, Fault):
            for record_index in dict.fromkeys(events.at[i] for i in part.tolist()):
                chunk.refuse(record_index, schema, group.source)
        elif not isinstance(form, JsonForm):
            hidden = isinstance(form, MaxwellForm)
            _Part(
                chunk, schema, schema, events, order, part, deletes, whole_befores=False, may_hide_nulls=hidden
            ).decode()
        else:
            for read_as, some in by_byte_order(chunk, group, schema, part):
                _Part(chunk, schema, read_as, events, order, some, deletes, whole_befores=True).decode()


@dataclass
class _Part:
    """Events of one table under one schema: ``chosen`` of ``events``; ``deletes`` marks those that delete.

    ``read_as``: the schema with the form of these events' values. ``whole_befores``: every update has its before image;
    otherwise only the updates that need one. ``may_hide_nulls``: the form may leave out columns that are null.
    """

    chunk: DecodeChunk
    schema: TableSchema
    read_as: TableSchema
    events: RowEvents
    order: Places
    chosen: _I64
    deletes: npt.NDArray[np.bool_]
    whole_befores: bool
    may_hide_nulls: bool = False

    def decode(self) -> None:
        """Append one change batch (none if no row is good) and refuse the bad records."""
        reader = RowReader(self.read_as, self.chunk.options.max_nesting, self._added_prefix())
        rows = reader.read(self._images())
        if self.may_hide_nulls and self.chunk.options.maxwell_nulls is None:
            images = self._own_images
            said = says_nulls(rows.table, lambda row: images[rows.at[row]])
            self.chunk.decoded.nulls.note(self.schema.source, said)
        faults = rows.faults | self._key_faults(rows)
        if self.chunk.options.refuses_without_before(self.schema.source):
            self._refuse_without_before(faults)
        if self.schema.source in self.chunk.options.inserts_of:
            self._refuse_changes(faults)
        before, before_of = self._before(reader, faults)
        good = ~np.isin(rows.at, self._refuse(faults)) if faults else None
        table = rows.table if good is None else rows.table.filter(pa.array(good))
        kept = rows.at if good is None else rows.at[good]
        if not len(kept):
            return
        keys_alone = np.flatnonzero(np.isin(kept, self._deletes_by_key))
        batch = ChangeBatch(self.schema, self.chunk.records.topic, self._with_meta(table, kept), keys_alone=keys_alone)
        if before is not None:
            stays = np.isin(before_of, kept)
            row_positions = np.searchsorted(kept, before_of[stays])
            batch = replace(batch, before=before.filter(pa.array(stays)), before_at=row_positions.astype(np.int64))
        self.chunk.decoded.changes.append(batch)

    def _refuse(self, faults: dict[int, Fault]) -> _I64:
        """Quarantine the records of these rows; returns all rows of these records."""
        record_indices = np.array(self.events.at, dtype=np.int64)[self.chosen]
        by_record: dict[int, list[int]] = {}
        for i in sorted(faults):
            by_record.setdefault(int(record_indices[i]), []).append(i)
        rows = np.isin(record_indices, list(by_record))
        if rows.sum() == len(faults):
            for record, (i, *_) in by_record.items():
                self.chunk.refuse(record, faults[i], self.schema.source)
        else:
            counts = dict(zip(*np.unique(record_indices[rows], return_counts=True), strict=True))
            for record, bad in by_record.items():
                self.chunk.refuse(record, self._fault_of(bad, faults, counts[record]), self.schema.source)
        return np.flatnonzero(rows)

    def _fault_of(self, bad: list[int], faults: dict[int, Fault], count: int) -> Fault:
        """The fault of a record with ``count`` rows: that of the first bad row, with a list of the bad rows."""
        first = faults[bad[0]]
        columns = tuple(sorted({name for i in bad for name in faults[i].columns}))
        if count == 1:
            return first
        places = ", ".join(str(self.events.rows[self.chosen[i]]) for i in bad[:20])
        more = f" and {len(bad) - 20} more" if len(bad) > 20 else ""
        return replace(
            first, detail=f"rows {places}{more} of {count} (from 0), the first: {first.detail}", columns=columns
        )

    def _added_prefix(self) -> str | None:
        return self.chunk.options.flat_prefix if self.events.befores is None else None

    @cached_property
    def _own_images(self) -> Sequence[Buffer]:
        images = self.events.images
        return images if len(self.chosen) == len(self.events) else selected(images, self.chosen.tolist())

    @cached_property
    def _deletes_by_key(self) -> list[int]:
        """The deletes without a row image, and those of flat tombstones."""
        deletes = np.flatnonzero(self.deletes[self.chosen]).tolist()
        null = nulls_of(self._own_images) if deletes else []
        if self.chunk.options.flat_tombstone_deletes:
            values, record_indices = self.chunk.records.values, np.array(self.events.at)[self.chosen]
            return [n for n in deletes if null[n] or values[record_indices[n]] is None]
        return [n for n in deletes if null[n]]

    def _images(self) -> Sequence[Buffer]:
        """The row images; for deletes without one, the Kafka key."""
        keys, images = self.chunk.keys.payloads, self._own_images
        keyed = {n: keys[self.events.at[self.chosen[n]]] or images[n] for n in self._deletes_by_key}
        if isinstance(images, Slices):
            return images.replaced(keyed) if keyed else images
        return [keyed.get(n, image) for n, image in enumerate(images)] if keyed else images

    def _key_faults(self, rows: DecodedRows) -> dict[int, Fault]:
        """Faults of rows of a keyed table that lack a value for a part of the key."""
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
        """Before images of updates where required, and the rows of each; their faults are added to ``faults``."""
        befores = self.events.befores
        wanted = not self.whole_befores or self.chunk.options.wants_before(self.schema.source)
        if befores is None or not wanted:
            return None, np.empty(0, dtype=np.int64)
        events, null = self.events, nulls_of(befores)
        of = [n for n, i in enumerate(self.chosen.tolist()) if events.ops[i] == "u" and n not in faults and not null[i]]
        if not of and not self.whole_befores:
            return None, np.empty(0, dtype=np.int64)
        if self.may_hide_nulls and self.chunk.options.wants_before(self.schema.source):
            of = self._known(of, befores, faults)
        rows = reader.read([befores[self.chosen[n]] for n in of])
        owners = np.array(of, dtype=np.int64)
        for i, fault in rows.faults.items():
            faults.setdefault(int(owners[i]), replace(fault, detail=f"before image: {fault.detail}"))
        return rows.table, owners[rows.at]

    def _known(self, of: list[int], befores: Sequence[Buffer], faults: dict[int, Fault]) -> list[int]:
        """Those of the updates whose before images are known as a whole; the others get a fault."""
        certain = self.chunk.options.maxwell_nulls_of(self.schema.source) is not None
        columns = {column.name for column in self.schema.columns}
        known = []
        for n in of:
            before, image = befores[self.chosen[n]], self._own_images[n]
            if bytes(before) != UNKNOWN and (certain or not lacks_column(image, before, columns)):
                known.append(n)
            else:
                faults.setdefault(n, Fault(Reason.MISSING_IMAGE, _HIDDEN))
        if known and not certain:
            self.chunk.decoded.nulls.trusted.add(self.schema.source)
        return known

    def _refuse_changes(self, faults: dict[int, Fault]) -> None:
        """Add a fault for every event that changes or deletes a row, or does not say whether it does: rows of the lake
        table are never changed."""
        ops = self.events.ops
        if _INSERTS.issuperset(ops):
            return
        for n, i in enumerate(self.chosen.tolist()):
            if ops[i] not in _INSERTS:
                what = _CHANGES.get(ops[i], "the event does not say whether it is an insert")
                faults.setdefault(n, Fault(Reason.NO_INSERT, f"{what}, and the lake table takes inserts only"))

    def _refuse_without_before(self, faults: dict[int, Fault]) -> None:
        """Add a fault for every update that has no before image: what the row was is not known."""
        events = self.events
        null = [True] * len(events) if events.befores is None else nulls_of(events.befores)
        for n in [n for n, i in enumerate(self.chosen.tolist()) if null[i] and events.ops[i] in ("u", "")]:
            faults.setdefault(n, Fault(Reason.MISSING_IMAGE, _NO_BEFORE))

    def _with_meta(self, table: pa.Table, kept: _I64) -> pa.Table:
        """The value columns followed by META_FIELDS."""
        events, chosen = self.events, self.chosen[kept]
        record_indices = np.array(events.at, dtype=np.int64)[chosen]
        columns = (
            np.where(self.deletes[chosen], np.int8(Op.DELETE), np.int8(Op.UPSERT)),
            self.order.orders[chosen],
            np.array(events.rows, dtype=np.int32)[chosen],
            np.full(len(kept), self.chunk.records.partition, dtype=np.int32),
            self.chunk.records.offsets[record_indices],
            np.array(events.source_ms, dtype=np.int64)[chosen],
            self.order.binlog(chosen),
        )
        for field, values in zip(META_FIELDS, columns, strict=True):
            table = table.append_column(field, pa.array(values, field.type))
        return table
