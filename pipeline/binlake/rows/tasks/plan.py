"""The values that the driver sends to the tasks of one micro-batch, and the reports they return. All are picklable."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import Control, NullsRead, QuarantinedRecord, SourceTable, TableSchema, note_said
from binlake.decode.inferred import InferredType, add_inferred
from binlake.decode.options import DecodeOptions
from binlake.decode.schemas.schemas import SchemaSource
from binlake.position.binlog_height import Stretch
from binlake.position.table_requests import ResyncRequest
from binlake.rows.merging.engines.heights import FactHeights
from binlake.rows.merging.mergers import PlainMerger
from binlake.rows.merging.states import Merger, MergeResult
from binlake.rows.upsert.parcel import Parcel
from binlake.rows.upsert.route import GROUP, Counts
from binlake.rows.upsert.target import Target, differing_keys, key_columns
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED, Truncates
from binlake.schema.rules.plan import DdlPlan
from binlake.schema.rules.row_places import NO_SNAPSHOTS, SnapshotPlaces
from binlake.settings import TablesSettings
from binlake.source.offsets import NO_RANGES, Ranges
from hudilake.clock import monotonic_s
from hudilake.commit.intent import GroupIntent
from hudilake.errors import LakeError
from hudilake.format.definition.bucketing import Bucketing, GroupNames
from hudilake.format.files.file_group_write import WriteContext, WriteResult
from hudilake.write.append import AppendWriter
from hudilake.write.group_writer import GroupWriter


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of a table that tasks need.

    Args:
        applied_until: topic -> partition -> offset below which the table has applied everything.
        truncates: the rows that TRUNCATE has removed from the table.
        refused: why this table's records are quarantined; None if they are not.
        skipped: whether the table is behind; its records are ignored here and applied when it is caught up.
        resync: what ranks the snapshot rows of a table that was fetched anew; None if it never was.
        columns: its columns, if rows are known to come with names in another case.
        bucketing: its buckets, if they are not those of the settings.
        delivered: records that it has besides, of a table whose rows do not say which record they are of.
    """

    applied_until: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    truncates: Truncates = NOTHING_TRUNCATED
    refused: str | None = None
    skipped: bool = False
    resync: ResyncRequest | None = None
    columns: Collection[str] = ()
    bucketing: Bucketing | None = None
    delivered: Ranges = NO_RANGES

    def applied(self, topic: str, partition: int) -> int:
        """The offset of a topic partition below which the table has applied everything."""
        return self.applied_until.get(topic, {}).get(partition, 0)


@dataclass(frozen=True)
class TableWriter:
    """A table that tasks may write: how its open instant writes, and the ids of its file groups.

    ``merger``: makes rows of events, on the table's state as of the instant's begin; it knows so many
    ``column_groups``. ``append``: adds rows to an append table; None for any other.
    """

    groups: GroupWriter
    names: GroupNames
    merger: Merger = field(default_factory=PlainMerger)
    column_groups: int = 0
    append: AppendWriter | None = None

    def knows_groups(self, rows: pa.Table) -> bool:
        """Whether it knows the column groups of events; the table may have got new ones since it was made."""
        return GROUP not in rows.column_names or bool(pc.max(rows.column(GROUP)).as_py() < self.column_groups)

    @property
    def context(self) -> WriteContext:
        """The context of the open instant."""
        return self.groups.context


@dataclass(frozen=True)
class BatchPlan:
    """One micro-batch for the tasks.

    ``only``: if set, records of all other tables are ignored (one table is caught up).
    ``writers``: by table path; parcels of all other tables go to the driver. ``kafka``, ``lake_options``: hold secrets
    and are not printed. ``counts_in``: the directory of ``TaskCounts``. ``notes_records``: whether reports say which
    records they are of, since the ranges of the batch do not.
    """

    decoding: DecodeOptions
    schemas: SchemaSource
    tables: TablesSettings
    states: Mapping[SourceTable, TableState]
    kafka: Mapping[str, str] = field(repr=False)
    lake_uri: str
    lake_options: Mapping[str, str] = field(repr=False)
    only: SourceTable | None = None
    writers: Mapping[str, TableWriter] = field(default_factory=dict)
    fetch_timeout_s: float = 60.0
    chunk_records: int = 50_000
    max_quarantined: int = 10_000
    ddl: DdlPlan = field(default_factory=DdlPlan)
    counts_in: str | None = None
    notes_records: bool = False


@dataclass
class TaskTableReport:
    """A task's report of one table: the newest schema, the target, counts, and the span of source times (ms).

    ``origins``: the source tables of the rows. ``shared``: whether several source tables may feed the table, and a
    column distinguishes their rows or each feeds columns of its own. ``clash``: why they cannot be merged. ``doubt``:
    where the source sent another value for a computed column than binlake computes. ``brought``: the offsets of its
    records, if the plan ``notes_records``: each, if its rows have no key of the source. ``twice``: whether two tasks
    have read some of these. ``unordered``: the topic partitions of its rows, if several may have changes of one row.
    """

    schema: TableSchema
    target: Target
    columns: pa.Schema
    topics: set[str] = field(default_factory=set)
    counts: Counts = field(default_factory=Counts)
    oldest_ms: int = 0
    newest_ms: int = 0
    origins: set[SourceTable] = field(default_factory=set)
    shared: bool = False
    clash: str | None = None
    snapshots: SnapshotPlaces = NO_SNAPSHOTS
    before_images: bool = False
    doubt: str | None = None
    brought: Ranges = NO_RANGES
    twice: bool = False
    unordered: set[tuple[str, int]] = field(default_factory=set)

    def add(self, other: TaskTableReport) -> None:
        """Add the report of another chunk or task of the same table."""
        self.counts.add(other.counts)
        self.topics |= other.topics
        self.origins |= other.origins
        self.snapshots = self.snapshots.merged(other.snapshots)
        self.before_images |= other.before_images
        if other.brought:
            met = not key_columns(self.target.config) and self.brought.meets(other.brought)
            self.twice = self.twice or other.twice or met
            self.brought = Ranges((*self.brought, *other.brought)).united()
        if other.target != self.target:
            self.clash = f"its keys or partitions differ: {_differing(self)}, {_differing(other)}"
        self.clash = self.clash or other.clash
        self.doubt = self.doubt or other.doubt
        self.unordered |= other.unordered
        if other.oldest_ms:
            self.oldest_ms = min(self.oldest_ms or other.oldest_ms, other.oldest_ms)
        self.newest_ms = max(self.newest_ms, other.newest_ms)
        if self.columns != other.columns:
            if self.target.merging.groups:
                self.clash = self.clash or differing_keys(self.columns, other.columns, self.target.key)
            try:
                self.columns = pa.unify_schemas([self.columns, other.columns], promote_options="permissive")
            except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
                self.clash = f"a column comes with types that have nothing in common: {error}"
        if len(other.schema.columns) > len(self.schema.columns):
            self.schema = other.schema

    def doubts(self) -> list[str]:
        """Why the table's rows are in doubt: ``doubt``, and changes of one position in several partitions."""
        spread = len(self.unordered) > len({topic for topic, _ in self.unordered})
        return [*filter(None, [self.doubt]), *([_SPREAD.format(", ".join(self.target.key))] if spread else [])]


#: The log gives changes of one transaction, or of one changed key, the same position.
_SPREAD = (
    "the key {} is not the source's own, and its topic has several partitions: of changes at one position the wrong "
    "one may win. Set message.key.columns at the connector to the key's columns, or give the topic one partition"
)


def _differing(report: TaskTableReport) -> str:
    target = report.target
    return f"{', '.join(map(str, report.origins))} by key {', '.join(target.key) or '(none)'} and {target.partition}"


@dataclass
class TaskReport:
    """The report of one task, returned besides its parcels.

    ``quarantined_count``: the number of quarantined records, without those of refused tables; the records themselves
    are kept only up to the threshold. ``shown``: the columns of each source table, whether its
    records are accepted or not. ``skipped``: topics with records of tables that are behind. ``held``: for each
    table whose rows wait for a statement, the first offset of such a row by (topic, partition). ``by_template``: the
    records that templates have read. ``stage_ms``: time by
    stage, in milliseconds. ``says_deletes``: topics, and whether their messages say deletes themselves.
    ``lone_tombstones``: topics with tombstones that were counted since nothing tells that. ``nulls``: as in
    DecodedRecords.
    """

    tables: dict[SourceTable, TaskTableReport] = field(default_factory=dict)
    quarantined: list[QuarantinedRecord] = field(default_factory=list)
    quarantined_count: int = 0
    controls: list[Control] = field(default_factory=list)
    filtered: dict[tuple[SourceTable | None, str], int] = field(default_factory=dict)
    shown: dict[SourceTable, set[str]] = field(default_factory=dict)
    unknown_columns: dict[SourceTable, set[str]] = field(default_factory=dict)
    inferred: dict[SourceTable, dict[str, InferredType]] = field(default_factory=dict)
    skipped: dict[SourceTable, set[str]] = field(default_factory=dict)
    held: dict[SourceTable, dict[tuple[str, int], int]] = field(default_factory=dict)
    records: int = 0
    raw_bytes: int = 0
    by_template: int = 0
    stage_ms: dict[str, float] = field(default_factory=dict)
    stretches: list[Stretch] = field(default_factory=list)
    says_deletes: dict[str, bool] = field(default_factory=dict)
    lone_tombstones: set[str] = field(default_factory=set)
    nulls: NullsRead = field(default_factory=NullsRead)

    def add(self, other: TaskReport) -> None:
        """Add the report of another task."""
        for source, table in other.tables.items():
            self.add_table(source, table)
        self.quarantined += other.quarantined
        self.quarantined_count += other.quarantined_count
        self.controls += other.controls
        for key, count in other.filtered.items():
            self.filtered[key] = self.filtered.get(key, 0) + count
        for source, names in other.shown.items():
            self.shown.setdefault(source, set()).update(names)
        for source, names in other.unknown_columns.items():
            self.unknown_columns.setdefault(source, set()).update(names)
        for source, columns in other.inferred.items():
            add_inferred(self.inferred.setdefault(source, {}), columns)
        for source, topics in other.skipped.items():
            self.skipped.setdefault(source, set()).update(topics)
        for source, places in other.held.items():
            self.hold(source, places)
        self.stretches += other.stretches
        for topic, said in other.says_deletes.items():
            note_said(self.says_deletes, topic, said)
        self.lone_tombstones |= other.lone_tombstones
        self.nulls.add(other.nulls)
        self.records += other.records
        self.raw_bytes += other.raw_bytes
        self.by_template += other.by_template
        self.took(other.stage_ms)

    def hold(self, source: SourceTable, places: Mapping[tuple[str, int], int]) -> None:
        """Note rows of a table that wait: (topic, partition) -> offset of the first one."""
        known = self.held.setdefault(source, {})
        for place, offset in places.items():
            known[place] = min(offset, known.get(place, offset))

    def add_table(self, source: SourceTable, table: TaskTableReport) -> None:
        """Add the report of a table."""
        if source in self.tables:
            self.tables[source].add(table)
        else:
            self.tables[source] = table

    def spent(self, stage: str, started_s: float) -> None:
        """Add the time since ``started_s`` (``monotonic_s``) to a stage: for work that runs one after the other."""
        self.stage_ms[stage] = self.stage_ms.get(stage, 0.0) + (monotonic_s() - started_s) * 1000

    def took(self, stage_ms: Mapping[str, float]) -> None:
        """Note the times of work that ran at the same time: the longest counts."""
        for stage, ms in stage_ms.items():
            self.stage_ms[stage] = max(self.stage_ms.get(stage, 0.0), ms)


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that a task wrote for a table, None if no row of the file group changed, and how many records lost to
    others while it was merged. ``touched``: a file group of which it wrote tombstones only. ``heights``: how far facts
    are counted by what became of the file group."""

    table: str
    result: WriteResult | None
    superseded: int
    touched: GroupIntent | None = None
    heights: FactHeights | None = None

    @staticmethod
    def of(table: str, group: GroupIntent, merged: MergeResult, results: Sequence[WriteResult]) -> list[WrittenFile]:
        """What was written of a file group."""
        touched = group if merged.tombstones is not None and not results else None
        if not results:
            nothing = not (merged.superseded or touched or merged.heights)
            return [] if nothing else [WrittenFile(table, None, merged.superseded, touched, merged.heights)]
        first = WrittenFile(table, results[0], merged.superseded, heights=merged.heights)
        return [first, *(WrittenFile(table, result, 0) for result in results[1:])]


@dataclass(frozen=True, slots=True)
class TableFailure:
    """A task could not write a table; the other tables continue."""

    table: str
    error: LakeError


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """A task raised an error that another attempt would raise again."""

    error: LakeError


#: The items that tasks return: parcels for the driver, files that they wrote, failures, and one report each.
Item = Parcel | TaskReport | WrittenFile | TableFailure | TaskFailure
