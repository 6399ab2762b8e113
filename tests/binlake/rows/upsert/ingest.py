"""What the stream does with change batches, without Spark and Kafka: route, write, commit, remember.

The calls are those of ``binlake.rows.tasks`` and ``binlake.stream``; only the decoder before them is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from binlake.decode.changes import META_FIELDS, ChangeBatch, Column, Op, SourceTable, TableSchema
from binlake.decode.options import DecodeOptions
from binlake.decode.schemas.schemas import NoSchemas
from binlake.rows.tasks.plan import BatchPlan, TableWriter, TaskTableReport, WrittenFile
from binlake.rows.tasks.write_parcels import write_parcels
from binlake.rows.upsert.parcel import Parcel
from binlake.rows.upsert.place import PlacedRows, place_rows
from binlake.rows.upsert.route import KEY, ORDER_COLUMNS, AppliedRecords, Counts, route
from binlake.rows.upsert.target import make_target, target_and_names
from binlake.rows.upsert.truncates import Truncates
from binlake.schema.rules.row_places import RowPlaces
from binlake.settings import CompactionSettings, PartitionSettings, TableRules, TablesSettings
from binlake.settings.index import IndexSettings
from binlake.source.offsets import OffsetRange, Ranges
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from binlake.tables.table_commit import TableInput, TableOutcome, write_and_commit
from hudilake.format.definition.bucketing import Bucketing
from hudilake.policies import ExternalStorePolicy, FileSizePolicy, IndexType, TableType
from hudilake.read.slice import read_table
from hudilake.storage import Storage, open_storage
from tests.binlake.stream.topic_log import services
from tests.model import Delivered, Row, Shape

STREAM, TOPIC, PATH = "tests", "shop.items", "shop/items"
SOURCE = SourceTable("shop", "items")
TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "code": pa.string(),
    "region": pa.string(),
    "at": pa.timestamp("us", tz="UTC"),
    "day": pa.date32(),
    "amount": pa.decimal128(12, 2),
    "big": pa.decimal128(20, 0),
    "ratio": pa.float64(),
    "flag": pa.bool_(),
    "data": pa.binary(),
}


def table_schema(shape: Shape) -> TableSchema:
    """The source table's schema."""
    return TableSchema(SOURCE, tuple(Column(name, "", kind) for name, kind in TYPES.items()), shape.key)


@dataclass(frozen=True)
class Kind:
    """The kind of a table: its type, its index, and how large base files become where rows may go to any."""

    type: TableType = "merge_on_read"
    index: IndexType = "bucket"
    files: FileSizePolicy = field(default_factory=FileSizePolicy)


MERGE_ON_READ = Kind()


def table_rules(
    shape: Shape, buckets: int, compacted_after: int = 0, kind: Kind = MERGE_ON_READ, store: str = ""
) -> TableRules:
    """The settings' rules for the table. ``store``: the directory of an external index."""
    rule = None
    if shape.partition:
        given = {"column": shape.partition, "transform": shape.transform, "name": shape.partition_name}
        rule = PartitionSettings.model_validate(given)
    compaction = CompactionSettings(mode="inline", after_commits=compacted_after) if compacted_after else None
    external = ExternalStorePolicy(store="lmdb", path=store) if kind.index == "external" else None
    index = IndexSettings(type=kind.index, external=external)
    return TableRules(
        PATH,
        buckets,
        None,
        rule,
        "zstd",
        1,
        False,
        shape.hive_style,
        compaction=compaction,
        type=kind.type,
        index=index,
        files=kind.files,
    )


def change_batch(shape: Shape, records: Sequence[Delivered]) -> ChangeBatch:
    """A change batch as a decoder makes it: before images of updates where a table needs them."""
    changes = [d.change for d in records]
    images = [c.after if c.after is not None else c.before for c in changes]
    meta = [
        [int(Op.UPSERT if c.after is not None else Op.DELETE) for c in changes],
        [c.order for c in changes],
        [c.row for c in changes],
        [d.partition for d in records],
        [d.offset for d in records],
        [1_700_000_000_000] * len(records),
        [c.order for c in changes],
    ]
    rows = _columns(images)
    for meta_field, values in zip(META_FIELDS, meta, strict=True):
        rows = rows.append_column(meta_field, pa.array(values, meta_field.type))
    updated = [i for i, c in enumerate(changes) if c.after is not None and c.before is not None]
    if not updated or (shape.key and shape.partition is None):
        return ChangeBatch(table_schema(shape), TOPIC, rows)
    before = _columns([changes[i].before for i in updated])
    return ChangeBatch(table_schema(shape), TOPIC, rows, before, np.array(updated, dtype=np.int64))


def _columns(rows: Sequence[Row | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(row or {}) for row in rows], schema=pa.schema(list(TYPES.items())))


@dataclass
class Ingest:
    """One stream into one table. ``positions``: next offset of each partition, as the ledger keeps it.
    ``compacted_after``: commits to a compaction; 0 for none. ``kind``: of a table that it creates."""

    root: Storage
    shape: Shape
    buckets: int = 2
    compacted_after: int = 0
    kind: Kind = MERGE_ON_READ
    positions: dict[int, int] = field(default_factory=dict)
    batches: int = 0

    def __post_init__(self) -> None:
        store = f"{self.root.uri.removeprefix('file://')}/_index"
        self.rules = table_rules(self.shape, self.buckets, self.compacted_after, self.kind, store)
        self.lake = Lake(self.root)
        self.pool = ThreadPoolExecutor(2)
        self.services = services()

    @classmethod
    def at(
        cls, path: Path, shape: Shape, buckets: int = 2, compacted_after: int = 0, kind: Kind = MERGE_ON_READ
    ) -> Ingest:
        """Into a lake on local disk."""
        return cls(open_storage(path.as_uri(), {"fsync": "false"}), shape, buckets, compacted_after, kind)

    @property
    def uri(self) -> str:
        """Of the table."""
        return f"{self.root.uri}/{PATH}"

    @property
    def table(self) -> LakeTable:
        """The open table; AssertionError where there is none yet."""
        table = self.lake.get(self.rules)
        assert table is not None
        return table

    def restart(self) -> None:
        """A new process: everything is read from storage again."""
        self.lake = Lake(self.root)

    def run(
        self, records: Sequence[Delivered], *, chunks: int = 1, shuffle: bool = False, keep_position: bool = False
    ) -> tuple[TableOutcome, Counts]:
        """One batch over consecutive records of each partition, the first ones at or below the position.

        Args:
            records: to apply.
            chunks: how many tasks decode them.
            shuffle: tasks write the files.
            keep_position: the process dies before its ledger is saved.
        """
        ranges = self._ranges(records)
        work, plan_context = self._work(records, ranges, chunks, shuffle)
        table = self.lake.get_or_create(self.rules, work.report.target, work.report.columns)
        if plan_context is None:
            table.refresh(STREAM)
        outcome = write_and_commit(table, work, STREAM, self.batches, self.pool, self.services)
        self.batches += 1
        if not keep_position:
            self.positions |= {r.partition: r.end for r in ranges}
        return outcome, outcome.counts

    def leave_files_behind(self, records: Sequence[Delivered]) -> None:
        """What a process leaves that dies between its files and its commit."""
        work, _ = self._work(records, self._ranges(records), 1, shuffle=True)
        if work.context is None:  # keyless: the driver would have written
            self.table.begin(self.table.hudi.schema)

    def _ranges(self, records: Sequence[Delivered]) -> Ranges:
        ends = {d.partition: d.offset + 1 for d in sorted(records, key=lambda d: d.offset)}
        return Ranges(OffsetRange(TOPIC, p, self.positions.get(p, 0), end) for p, end in sorted(ends.items()))

    def _work(
        self, records: Sequence[Delivered], ranges: Ranges, chunks: int, shuffle: bool
    ) -> tuple[TableInput, object]:
        table = self.lake.get(self.rules)
        truncates = [d.change.order for d in records if d.change.is_truncate]
        report, parcels = self._routed(records, ranges, table, chunks)
        report.counts.read += len(truncates)
        work = TableInput(report, ranges, parcels, truncates=Truncates(max(truncates, default=-1)))
        computed = table is not None and table.keyless is None and not table.hudi.config.kind.looks_up
        if shuffle and table is not None and computed and not truncates:
            table.refresh(STREAM)
            context = table.begin(table.hudi.schema)
            writer = table.rows.task_writer(context, table.heights)
            items = list(write_parcels(self._plan({self.rules.path: writer}), parcels))
            left = [i for i in items if isinstance(i, Parcel)]
            written = [i for i in items if isinstance(i, WrittenFile)]
            work = replace(work, context=context, parcels=left, written=written)
        return work, work.context

    def _routed(
        self, records: Sequence[Delivered], ranges: Ranges, table: LakeTable | None, chunks: int
    ) -> tuple[TaskTableReport, list[Parcel]]:
        starts = {TOPIC: {r.partition: r.start for r in ranges}}
        applied = table.ahead_of(STREAM, starts).get(TOPIC, {}) if table else {}
        schema = table_schema(self.shape)
        report = TaskTableReport(
            schema,
            make_target(schema, self.rules, bucketing=table.rows.own_bucketing if table else None),
            pa.schema([]),
            {TOPIC},
        )
        parcels: list[Parcel] = []
        for piece in _pieces(records, chunks):
            rows = placed(change_batch(self.shape, piece), self.rules, report.target.config.bucketing)
            routed = route(rows, AppliedRecords(applied), table.truncates.whole if table else -1)
            report.add(TaskTableReport(schema, report.target, value_columns(routed.parcels), {TOPIC}, routed.counts))
            parcels += routed.parcels
        return report, parcels

    def _plan(self, writers: dict[str, TableWriter]) -> BatchPlan:
        options = {"fsync": "false"}
        return BatchPlan(
            DecodeOptions(), NoSchemas(), TablesSettings(), {}, {}, self.root.uri, options, writers=writers
        )


def _pieces(records: Sequence[Delivered], chunks: int) -> Iterator[list[Delivered]]:
    """Records of one partition each, every partition's cut into chunks."""
    for partition in sorted({d.partition for d in records}):
        mine = [d for d in records if d.partition == partition and not d.change.is_truncate]
        size = max(1, -(-len(mine) // chunks))
        yield from (mine[at : at + size] for at in range(0, len(mine), size))


def placed(batch: ChangeBatch, rules: TableRules, bucketing: Bucketing | None = None) -> PlacedRows:
    """The rows of a change batch at their places in the table of these rules. ``bucketing``: as for ``make_target``."""
    return place_rows(batch, *target_and_names(batch.schema, rules, None, bucketing), RowPlaces.incoming(batch.rows))


def value_columns(parcels: Sequence[Parcel]) -> pa.Schema:
    """The value columns that parcels hold."""
    if not parcels:
        return pa.schema([])
    hidden = {KEY, *ORDER_COLUMNS, "__partition", "__source_ms", "__part"}
    schema = pa.ipc.open_stream(parcels[0].blob).schema
    return pa.schema([f.with_nullable(True) for f in schema if f.name not in hidden])


def rows_of(root: Storage, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The table's rows through our own reader."""
    return [row for table in read_table(root.sub(PATH), columns) for row in table.to_pylist()]
