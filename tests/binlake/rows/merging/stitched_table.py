"""A stitched table on disk, written by the driver's path from hand-made parcels."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from binlake.decode.changes import SourceTable, TableSchema
from binlake.decode.options import DecodeOptions
from binlake.decode.schemas.schemas import NoSchemas
from binlake.rows.tasks.plan import BatchPlan, TableFailure, TaskTableReport, WrittenFile
from binlake.rows.tasks.write_parcels import write_parcels
from binlake.rows.upsert.parcel import Parcel, pack
from binlake.rows.upsert.route import KEY, ORDER_COLUMNS, Counts
from binlake.rows.upsert.target import Target
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED, Truncates
from binlake.settings import CompactionSettings, LockingSettings, TableRules, TablesSettings
from binlake.source.offsets import NO_RANGES
from binlake.tables.lake import Lake, locking
from binlake.tables.lake_table import LakeTable
from binlake.tables.table_commit import TableInput, TableOutcome, write_and_commit
from hudilake.format.definition.bucket import bucket_ids
from hudilake.format.definition.bucketing import SimpleBuckets
from hudilake.format.definition.merging import Merging
from hudilake.policies import Conflicts
from hudilake.storage import Storage, open_storage
from tests.binlake.rows.merging.stitched import TYPES, Event, events_table
from tests.binlake.stream.topic_log import services

SOURCE = SourceTable("lake", "wide")
#: The columns of the table before it has groups.
PLAIN = ("id", "a", "b")
STREAM, PATH = "tests", "lake/wide"


@dataclass
class StitchedTable:
    """One writer of the table.

    ``alone``: it takes all others for dead. ``own_columns``: a batch reports the columns of its events' groups, as
    tasks do; otherwise those of all groups.
    """

    root: Storage
    merging: Merging
    buckets: int = 2
    compacted_after: int = 0
    stream: str = STREAM
    conflicts: Conflicts = "queue"
    alone: bool = False
    own_columns: bool = False

    def __post_init__(self) -> None:
        after = self.compacted_after
        compaction = CompactionSettings(mode="inline", after_commits=after) if after else None
        self.rules = TableRules(
            PATH, self.buckets, None, None, "zstd", 1, False, True, compaction=compaction, conflicts=self.conflicts
        )
        self.target = Target.new(SOURCE, PATH, ("id",), SimpleBuckets(self.buckets), merging=self.merging)
        self.pool = ThreadPoolExecutor(2)
        self.restart()
        self.services = services()
        self.batches = 0

    @classmethod
    def at(
        cls,
        path: Path,
        merging: Merging,
        compacted_after: int = 0,
        conflicts: Conflicts = "queue",
        stream: str = STREAM,
    ) -> StitchedTable:
        """In a lake on local disk."""
        root = open_storage(path.as_uri(), {"fsync": "false"})
        return cls(root, merging, compacted_after=compacted_after, conflicts=conflicts, stream=stream)

    @property
    def uri(self) -> str:
        """Of the table."""
        return f"{self.root.uri}/{PATH}"

    @property
    def table(self) -> LakeTable:
        """The open table."""
        table = self.lake.get(self.rules)
        assert table is not None
        return table

    def restart(self) -> None:
        """A new process: everything is read from storage again."""
        shared = None if self.alone else locking(LockingSettings(), f"stream {self.stream}")
        self.lake = Lake(self.root, shared)

    def run(
        self, events: Sequence[Event], *, in_tasks: bool = False, truncates: Truncates = NOTHING_TRUNCATED
    ) -> TableOutcome:
        """One batch. ``in_tasks``: tasks write the files, as those of large batches."""
        work = replace(self.work(events), truncates=truncates)
        table = self.lake.get_or_create(self.rules, self.target, work.report.columns)
        table.refresh(self.stream)
        if in_tasks:
            work = self._written_by_tasks(table, work)
        self.batches += 1
        return write_and_commit(table, work, self.stream, self.batches, self.pool, self.services)

    def leave_behind(self, events: Sequence[Event]) -> str:
        """Write a batch's files and commit nothing; the inflight instant."""
        context = self.begun(events).context
        assert context is not None
        return context.instant

    def begun(self, events: Sequence[Event]) -> TableInput:
        """A batch whose files are written, without its commit."""
        self.table.refresh(self.stream)
        return self._written_by_tasks(self.table, self.work(events))

    def commit(self, work: TableInput) -> TableOutcome:
        """Commit it."""
        return write_and_commit(self.table, work, self.stream, self.batches, self.pool, self.services)

    def _written_by_tasks(self, table: LakeTable, work: TableInput) -> TableInput:
        context = table.begin(table.hudi.schema)
        writer = table.rows.task_writer(context, table.heights)
        plan = BatchPlan(
            DecodeOptions(),
            NoSchemas(),
            TablesSettings(),
            {},
            {},
            self.root.uri,
            {"fsync": "false"},
            writers={PATH: pickle.loads(pickle.dumps(writer))},
        )
        items = list(write_parcels(plan, work.parcels))
        assert not [item for item in items if isinstance(item, TableFailure | Parcel)], items
        written = [item for item in items if isinstance(item, WrittenFile)]
        return replace(work, context=context, parcels=[], written=written)

    def work(self, events: Sequence[Event]) -> TableInput:
        """The batch as tasks hand it to the driver."""
        names = self._columns(events) if self.merging.groups else PLAIN
        columns = pa.schema([pa.field(name, TYPES[name]) for name in names])
        counts = Counts(read=sum(not event.moved for event in events))
        shared = bool(self.merging.groups)
        report = TaskTableReport(TableSchema(SOURCE, (), ("id",)), self.target, columns, counts=counts, shared=shared)
        rows = events_table(events)
        rows = rows if self.merging.groups else rows.select([KEY, *PLAIN, *ORDER_COLUMNS])
        return TableInput(report, NO_RANGES, parcels(rows, self.buckets))

    def _columns(self, events: Sequence[Event]) -> list[str]:
        """The key, and the columns of the groups that have events."""
        if not self.own_columns:
            return list(TYPES)
        values = tuple(name for name in TYPES if name != "id")
        groups = [self.merging.groups[at] for at in sorted({event.group for event in events})]
        return ["id", *(name for group in groups for name in self.merging.columns_of(group, values))]


def parcels(rows: pa.Table, buckets: int) -> list[Parcel]:
    """The events by file group."""
    ids = bucket_ids(rows.column(KEY), ("id",), buckets)
    found: list[Parcel] = []
    for bucket in np.unique(ids).tolist():
        found += pack(PATH, "", bucket, rows.take(pa.array(np.flatnonzero(ids == bucket))))
    return found
