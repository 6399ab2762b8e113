"""Change events of Kafka as changes of single rows, by the steps by which the stream's tasks bring them to the lake."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import (
    META_NAMES,
    ChangeBatch,
    ControlKind,
    DecodedRecords,
    Mask,
    Op,
    RawRecords,
    SourceTable,
    rows_where,
)
from binlake.decode.formats.reader import decode
from binlake.decode.formats.trace import Trace, trace_of
from binlake.decode.options import DecodeOptions
from binlake.proof.history.row_change import KEYLESS, TRUNCATE, NoRow, Row, RowChange
from binlake.rows.upsert.fanout import fan_out, part_of
from binlake.rows.upsert.place import Images, PlacedRows
from binlake.rows.upsert.prepare import TableFacts, lake_rows
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.schema.apply.keeper import DdlKeeper
from binlake.schema.rules.plan import DdlPlan, named
from binlake.settings import Settings
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from hudilake.format.files.stored_rows import aligned_columns

#: Why a row is left out.
DROPPED, WAITING = "it is of a table of the same name that was dropped", "it waits for a statement"
#: The trace of the record at an offset of the chunk that is read.
TraceOf = Callable[[int], Trace]
#: Which rows of a change batch are wanted.
Choose = Callable[[ChangeBatch, TraceOf], Mask]


def all_rows(batch: ChangeBatch, trace: TraceOf) -> Mask:
    """Choose every row."""
    return np.ones(len(batch.rows), dtype=bool)


@dataclass(frozen=True)
class DecodedChunk:
    """Decoded records, the statements that decide their tables, and the trace of each. ``refused``: the rows whose name
    belongs to no table at their place."""

    plan: DdlPlan
    decoded: DecodedRecords
    trace: TraceOf
    refused: Sequence[ChangeBatch] = ()


class ChangeReader:
    """Reads the changes of some lake tables from records. Nothing is written.

    Args:
        settings: of the stream.
        registry: the known schemas and statements.
        lake: where the tables are open.
        tables: the tables whose changes are wanted.
        known: all tables that the stream has met, open in ``lake``: their statements decide names.
    """

    def __init__(
        self,
        settings: Settings,
        registry: SchemaRegistry,
        lake: Lake,
        tables: Mapping[SourceTable, LakeTable],
        known: Iterable[SourceTable],
    ) -> None:
        self._settings, self._tables, self._known = settings, tables, list(known)
        self._registry = registry
        self._ddl = DdlKeeper(settings, lake, registry)
        self._plans: dict[str, DdlPlan] = {}

    def read(
        self, records: RawRecords, choose: Choose = all_rows, keys: Mapping[SourceTable, pa.Array] | None = None
    ) -> Iterator[RowChange | NoRow]:
        """The changes in one chunk of records.

        Args:
            records: consecutive records of one topic partition.
            choose: decides before the rows are brought into the lake's form.
            keys: the wanted record keys by table; None for all.

        Raises LakeError.
        """
        return self.changes(self.decoded(records), choose, keys)

    def decoded(self, records: RawRecords, bare: SourceTable | None = None) -> DecodedChunk:
        """One chunk of records, decoded.

        Args:
            records: consecutive records of one topic partition, or of a file without Kafka coordinates.
            bare: the table of records that name none.

        Raises LakeError.
        """
        plan = self._plan(records.topic)
        options = plan.decoding(self._registry.options("all"))
        if bare is not None:
            options = replace(options, topic_tables=(*options.topic_tables, (records.topic, bare)))
        decoded = decode(records, self._registry.schemas_for([records.topic]), options)
        under_names = named(decoded, plan)
        decoded = fan_out(under_names.decoded, self._settings.tables)
        refused = [batch for batch, _ in under_names.refused]
        return DecodedChunk(plan, decoded, _traces(records, options), refused)

    def changes(
        self,
        chunk: DecodedChunk,
        choose: Choose = all_rows,
        keys: Mapping[SourceTable, pa.Array] | None = None,
        *,
        left_out: bool = False,
    ) -> Iterator[RowChange | NoRow]:
        """The changes in a decoded chunk; arguments and errors as ``read``. ``left_out``: also, as changes of no row,
        the rows of a table of the same name that was dropped, and those that wait for a statement."""
        plan, decoded, trace = chunk.plan, chunk.decoded, chunk.trace
        for control in decoded.controls:
            if control.kind is ControlKind.TRUNCATE and control.source in self._tables:
                place = control.topic, control.partition, control.offset
                yield NoRow(control.source, TRUNCATE, control.order, *place, trace(control.offset))
        for bad in decoded.quarantined:
            if bad.source is not None and bad.source in self._tables:
                place = bad.topic, bad.partition, bad.offset
                yield NoRow(bad.source, f"{bad.reason}: {bad.detail}", None, *place, trace(bad.offset))
        for batch in decoded.changes:
            source, origin = batch.schema.source, batch.origin or batch.schema.source
            if source in self._tables and self._settings.selects(origin):
                wanted = None if keys is None else keys.get(source)
                yield from self._changes(batch, choose, trace, plan, wanted, left_out=left_out)

    def _plan(self, topic: str) -> DdlPlan:
        if topic not in self._plans:
            self._plans[topic] = self._ddl.consult(self._known, [topic])
            for source in self._tables:
                self._ddl.refuse_unsure(source)
        return self._plans[topic]

    def _changes(
        self,
        batch: ChangeBatch,
        choose: Choose,
        trace: TraceOf,
        plan: DdlPlan,
        keys: pa.Array | None,
        *,
        left_out: bool,
    ) -> Iterator[RowChange | NoRow]:
        mask = choose(batch, trace)
        if not mask.any():
            return
        source, origin = batch.schema.source, batch.origin or batch.schema.source
        columns = frozenset(column.name for column in batch.schema.columns)
        table = self._tables[source]
        facts = TableFacts(plan.of(origin), columns=table.hudi.schema.names, bucketing=table.rows.own_bucketing)
        part = part_of(origin, self._settings.tables)
        placed, _, out = lake_rows(rows_where(batch, mask), self._settings.table_rules(source), part, facts)
        for one in out.rejected:
            yield from _no_rows(one.rows, batch.topic, source, f"{one.reason}: {one.detail}", trace)
        for rows, why in ((out.gone, DROPPED), (out.held, WAITING)):
            if left_out and rows is not None:
                yield from _no_rows(rows, batch.topic, source, why, trace)
        if placed is None:
            return
        if not placed.target.key:
            yield from _no_rows(placed.rows, batch.topic, source, KEYLESS, trace)
            return
        yield from _TableRows(source, placed, table.hudi.schema, columns, trace).changes(keys)


def _no_rows(rows: pa.Table, topic: str, source: SourceTable, why: str, trace: TraceOf) -> Iterator[NoRow]:
    names = ("__order", "__partition", "__offset")
    for order, partition, offset in zip(*(rows.column(n).to_pylist() for n in names), strict=True):
        yield NoRow(source, why, order, topic, partition, offset, trace(offset))


def _traces(records: RawRecords, options: DecodeOptions) -> TraceOf:
    known: dict[int, Trace] = {}

    def trace(offset: int) -> Trace:
        if offset not in known:
            index = int(np.searchsorted(records.offsets, offset))
            known[offset] = trace_of(records.values[index], options)
        return known[offset]

    return trace


@dataclass(frozen=True)
class _TableRows:
    """Placed rows of one table. ``columns``: the columns of the message's table, of which a whole image names each."""

    source: SourceTable
    rows: PlacedRows
    schema: pa.Schema
    columns: frozenset[str]
    trace: TraceOf

    def changes(self, keys: pa.Array | None) -> Iterator[RowChange]:
        rows, befores = self.rows, {int(row_index): n for n, row_index in enumerate(self.rows.before_at)}
        mine = self._among(rows.images, keys)
        if rows.before is not None:
            mine[rows.before_at[self._among(rows.before, keys)]] = True
        chosen = np.flatnonzero(mine).tolist()
        meta = rows.rows.select(META_NAMES).take(pa.array(chosen, pa.int64())).to_pylist()
        images = self._images(rows.rows, chosen)
        olds = [befores[row_index] for row_index in chosen if row_index in befores]
        before_images = (
            dict(zip(olds, self._images(rows.before.rows, olds), strict=True)) if rows.before is not None else {}
        )
        for row_index, said, image in zip(chosen, meta, images, strict=True):
            n = befores.get(row_index)
            before = None if n is None else before_images[n]
            old = None if n is None or rows.before is None else _place_of(rows.before, n)
            yield from self._change(
                said, image, before, _place_of(rows.images, row_index), old, removed=bool(rows.removed[row_index])
            )

    def _among(self, images: Images, keys: pa.Array | None) -> Mask:
        if keys is None:
            return np.ones(len(images.rows), dtype=bool)
        return np.array(pc.is_in(images.keys, keys).to_numpy(zero_copy_only=False), dtype=bool)

    def _images(self, rows: pa.Table | None, chosen: Sequence[int]) -> list[Row]:
        if rows is None:
            return []
        schema = pa.schema([f for f in self.schema if f.name in rows.column_names and f.name != ORDER_FIELD])
        part = rows.take(pa.array(chosen, pa.int64())).select(schema.names)
        images: list[Row] = pa.Table.from_arrays(aligned_columns(part, schema), schema=schema).to_pylist()
        return images

    def _change(
        self,
        said: Mapping[str, Any],
        image: Row,
        before: Row | None,
        place: tuple[str, str],
        old: tuple[str, str] | None,
        *,
        removed: bool,
    ) -> Iterator[RowChange]:
        trace = self.trace(said["__offset"])
        shown = trace.before is not None and trace.before >= self.columns

        def change(at: tuple[str, str], was: Row | None, now: Row | None, *, whole: bool) -> RowChange:
            return RowChange(
                self.source,
                *at,
                was if whole else None,
                now,
                whole,
                said["__order"],
                said["__row"],
                self.rows.topic,
                said["__partition"],
                said["__offset"],
                said["__source_ms"],
                trace,
                removed,
            )

        if said["__op"] == Op.DELETE:
            yield change(place, image, None, whole=shown)
        elif before is None or old is None:
            yield change(place, None, image, whole=trace.op in ("c", "r"))
        elif old == place:
            yield change(place, before, image, whole=shown)
        else:  # the row moved to another key or partition
            yield change(old, before, None, whole=shown)
            yield change(place, None, image, whole=True)


def _place_of(images: Images, number: int) -> tuple[str, str]:
    """The partition path and the record key of an image."""
    assert images.keys is not None
    return images.paths[number].as_py(), images.keys[number].as_py()
