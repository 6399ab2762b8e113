"""An open table of the lake on the driver, with the stream's state from its commit records."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from binlake.decode.changes import SourceTable, TableSchema
from binlake.position.commit_record import CommitRecord
from binlake.position.record_reader import RecordKey, RecordReader
from binlake.position.recorded import RecordedLoad
from binlake.rows.merging.engines.heights import NOTHING_COUNTED, FactHeights
from binlake.rows.merging.plain_deletes import keep_plain_deletes
from binlake.rows.tasks.plan import TaskTableReport
from binlake.rows.upsert.keyless import KeylessState
from binlake.rows.upsert.target import Target, differing_keys, is_keyless, tells_records
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED, Truncates
from binlake.schema.rules.entries import DdlEntry
from binlake.schema.rules.evolution import evolved, retyped
from binlake.schema.rules.row_places import NO_SNAPSHOTS, SnapshotPlaces
from binlake.settings import PartitionSettings, TableRules
from binlake.source.offsets import NO_OFFSETS, NO_RANGES, OffsetMap, Offsets, Ranges
from binlake.tables.definition import metadata_config, table_schema
from binlake.tables.kinds.of_kind import rows_of
from binlake.tables.kinds.rows import TableRows
from binlake.tables.merging_check import joined_merging
from binlake.tables.presence import KnownTable
from hudilake.commit.commit import OvertakenError
from hudilake.commit.intent import GroupIntent, Intent
from hudilake.errors import CommitUnknownError, ConfigError, LakeError, LostOwnershipError, UnsupportedError
from hudilake.format.definition.bucketing import Bucketing, GroupNames
from hudilake.format.definition.key_change import with_first_key, with_key
from hudilake.format.definition.merging import Merging
from hudilake.format.files.file_group_write import WriteContext, WriteResult
from hudilake.locking.ownership import Locking
from hudilake.services import cleaning
from hudilake.services.restore import finish_pending_restores
from hudilake.storage import Storage
from hudilake.table.bucket_counts import stated_buckets
from hudilake.table.table import HudiTable
from lakemetastore.client.registration import NO_REGISTRAR, Registrar

_log = logging.getLogger(__name__)

_ONE_SPELLING = "give the key's columns one type at the sources, or map them in source.schemas"


@dataclass(frozen=True, slots=True)
class Replacement:
    """What a replacecommit puts in the place of what.

    Args:
        groups: the ids of the replaced file groups by partition path.
        bucketing: of the table from this commit on.
    """

    groups: Mapping[str, tuple[str, ...]]
    bucketing: Bucketing


@dataclass
class LakeTable:
    """One open table. ``hudi``: the Hudi table that holds its rows. ``positions``: stream -> offsets below which
    everything is applied. ``base_from_rows``: as in ``WriteContext``. ``heights``: how far its facts are counted.

    ``rows``: places and writes its rows, as its kind does. ``ddl``: the statements that its commits record.
    ``snapshots``: the places at which its snapshot rows were read. ``load``: how far it is loaded from the source's
    server. ``brought``: the records of dumps that it has, if its rows have no key of the source. ``lost``: the tracked
    columns of which was said that the source has them no more. ``registrar``: is given the completed instants.
    """

    storage: Storage
    hudi: HudiTable
    rules: TableRules
    base_from_rows: int | None = None
    heights: FactHeights = NOTHING_COUNTED
    source: SourceTable | None = None
    origin: SourceTable | None = None
    positions: Mapping[str, Offsets] = field(default_factory=dict)
    truncates: Truncates = NOTHING_TRUNCATED
    keyless: KeylessState | None = None
    ddl: tuple[DdlEntry, ...] = ()
    snapshots: SnapshotPlaces = NO_SNAPSHOTS
    load: RecordedLoad | None = None
    brought: Ranges = NO_RANGES
    lost: frozenset[str] = frozenset()
    _seen: int = 0
    registrar: Registrar = NO_REGISTRAR
    rows: TableRows = field(init=False)

    def __post_init__(self) -> None:
        self.rows = rows_of(self.storage, self.hudi, self.rules)

    @classmethod
    def open(
        cls, storage: Storage, rules: TableRules, locking: Locking | None = None, known: KnownTable | None = None
    ) -> LakeTable:
        """Open an existing table, roll back the instants of dead writers, and read the newest commit records.

        ``known``: what the table must be; if it is not, LostTableError comes before anything is changed.
        """
        metadata = metadata_config(rules)
        table = HudiTable.open(storage, metadata=metadata, locking=locking, conflicts=rules.conflicts)
        if known is not None:
            known.check_commits(table)
        table.config.check_writable()
        finish_pending_restores(table, metadata)
        table.rollback_pending()
        cleaning.finish_known(table)  # of the timeline that was just listed whole
        table.keep_metadata(metadata)
        opened = cls(storage, table, rules)
        table.timeline.look_for(tuple(RecordKey))
        opened.settle_key()
        table.state.settle_buckets()
        opened._load(opens=True)
        return opened

    @classmethod
    def look(cls, storage: Storage, rules: TableRules) -> LakeTable:
        """Open an existing table for reading; changes nothing."""
        opened = cls(storage, HudiTable.open(storage), rules)
        opened._load()
        return opened

    @classmethod
    def create(
        cls, storage: Storage, rules: TableRules, target: Target, columns: pa.Schema, locking: Locking | None = None
    ) -> LakeTable:
        """Create the table of a target."""
        schema, metadata = table_schema(target, columns), metadata_config(rules)
        table = HudiTable.create(storage, target.config, schema, metadata, locking, rules.conflicts)
        return cls(storage, table, rules, keyless=KeylessState() if is_keyless(target.config) else None)

    def _load(self, *, opens: bool = False) -> None:
        """Read the newest commit records; they count once all are read. ``opens``: the file groups wait for a batch."""
        table, recorded = self.hudi, self.recorded
        positions, source, origin = recorded.positions or {}, recorded.source, recorded.origin
        truncates, ddl, snapshots = recorded.truncates, recorded.ddl or (), recorded.snapshots
        heights, load = recorded.heights, recorded.load
        keyless = recorded.keyless or KeylessState() if is_keyless(table.config) else self.keyless
        (self.rows.forget if opens else self.rows.load)()
        self.positions, self.source, self.origin = positions, source, origin
        self.truncates, self.ddl, self.snapshots = truncates, ddl, snapshots
        self.heights, self.load, self.keyless = heights, load, keyless
        self.brought = NO_RANGES if tells_records(table.config, self.merging) else recorded.brought
        self._seen = table.generation

    @property
    def names(self) -> GroupNames:
        """The ids of its file groups."""
        return self.rows.names

    def tasks_may_write(self, *, shuffled: bool) -> bool:
        """Whether tasks may write rows of a batch: they know what its kind needs, and neither the contents of a table
        without a key nor the TRUNCATEs that end versions. ``shuffled`` as in ``TableRows.written_by_tasks``."""
        return self.keyless is None and not self.truncates.ends and self.rows.written_by_tasks(shuffled=shuffled)

    @property
    def merging(self) -> Merging:
        """How the table's writer merges. Raises CorruptDataError."""
        return self.rows.merging

    def begin(self, schema: pa.Schema, intent: Intent | None = None) -> WriteContext:
        """Start an instant whose files have the columns of ``schema`` (``schema_with``). ``intent`` and errors as
        ``HudiTable.begin``."""
        return self.context(self.hudi.begin(intent), schema)

    def context(self, instant: str, schema: pa.Schema) -> WriteContext:
        """The write context of an instant, for files with the columns of ``schema``, and the order columns of groups
        that are new."""
        hidden = [name for name in self.merging.hidden_fields if name not in schema.names]
        if hidden:
            schema = pa.schema([*schema, *(pa.field(name, pa.int64()) for name in hidden)])
        level = self.rules.compression_level if self.rules.compression == "zstd" else None
        context = self.hudi.write_context(instant, schema, self.rules.compression, level)
        return dataclasses.replace(context, base_from_rows=self.base_from_rows)

    @contextlib.contextmanager
    def undone_on_error(self, instant: str) -> Iterator[None]:
        """Roll an instant back before an error goes on, unless its outcome is unknown or another writer owns it."""
        try:
            yield
        except (CommitUnknownError, LostOwnershipError):
            raise
        except LakeError:
            try:
                self.hudi.abort(instant)
            except LakeError as error:
                fields = {"event": "not_rolled_back", "table": self.rules.path, "instant": instant}
                text = "%s: %s was not rolled back; the next commit does it: %s"
                _log.warning(text, self.rules.path, instant, error, extra=fields)
            raise

    def become(self, wanted: Merging) -> None:
        """Take in the groups of ``wanted``, for all writers from their next instant on (``merging_check``). The next
        commit brings their order columns. Raises ConfigError if the table cannot have them, StorageError."""
        if joined_merging(self.hudi.config, wanted, self.rules.path) == self.merging:
            return
        with self.hudi.exclusively():
            merging = joined_merging(self.hudi.config, wanted, self.rules.path)
            if merging.groups and not self.merging.groups:
                keep_plain_deletes(self.hudi, merging.groups[0])
            self.hudi.state.adopt(self.hudi.config.with_merging(merging))

    def settle_key(self) -> None:
        """Bring ``hoodie.properties`` in line with the newest commit that gave the table a record key: a run may have
        died between the two, or the table may have been restored. Raises LakeError."""
        table, recorded = self.hudi, self.recorded.key
        config = with_key(table.config, *recorded) if recorded is not None else with_first_key(table.config)
        if config != table.config:
            with table.exclusively():
                table.state.adopt(config)

    @property
    def recorded(self) -> RecordReader:
        """The newest value of each key in the table's commit records."""
        return RecordReader.newest_of(self.hudi)

    def refresh(self, stream: str, *, begins: bool = False) -> None:
        """Load commits of other writers; if there are any, read the commit records again.

        ``begins``: an instant begins next.

        Raises LostOwnershipError if another run of ``stream`` has committed, ConfigError if another writer wrote to
        other buckets.
        """
        self.hudi.refresh(begins=begins)
        self._follow(stream)

    def _follow(self, stream: str) -> None:
        """Read the commit records again if the table has taken in commits of other writers. Errors as ``refresh``."""
        if self.hudi.generation == self._seen:
            return
        before = self.standing(stream)
        self.hudi.config.check_writable()
        self._load()
        if self.standing(stream) != before:
            ahead = self.ahead_of(stream, before)
            raise LostOwnershipError(
                "another run of this stream has written to the table" if ahead else "the table was restored meanwhile",
                do_next="stop one of the two"
                if ahead
                else "start again: the stream delivers the taken-back changes again",
                table=self.rules.path,
                stream=stream,
            )

    def check(self, target: Target) -> None:
        """Take in the target's column groups. Raises ConfigError when the target is of another source table, or its
        key, partitioning or merging differ, StorageError."""
        if self.source is not None and self.source != target.source:
            raise ConfigError(
                f"the table at this path holds {self.source}, not {target.source}",
                do_next="set another path for one of them (tables.path)",
                path=self.storage.uri,
            )
        config = self.hudi.config
        config.check_same_identity(target.config.with_bucketing(config.bucketing))  # ``check_routing`` compares these
        self.become(target.merging)

    def check_routing(self, target: Target) -> None:
        """Raise OvertakenError if rows were routed by other buckets than the table has now."""
        if not self.rows.routed_by(target.config.bucketing):
            raise OvertakenError(
                "the table's bucket counts have changed since the rows were routed",
                do_next="none needed: the batch runs again and is routed by the new counts",
                table=self.rules.path,
            )

    def origin_of(self, report: TaskTableReport) -> SourceTable | None:
        """The only source table of this table; None if there may be several (``TaskTableReport.shared``).

        Raises UnsupportedError if there are several and no column distinguishes their rows.
        """
        if report.shared:
            return None
        known = {self.origin or self.source} - {None}
        origins = known | report.origins
        if len(origins) > 1:
            raise UnsupportedError(
                f"{' and '.join(sorted(map(str, origins)))} go to one lake table, and no "
                "column distinguishes their rows",
                do_next="give the route a shard column (tables.routes), or a table of its own to each",
                table=str(report.target.source),
            )
        return next(iter(origins), None)

    def schema_with(self, columns: pa.Schema) -> pa.Schema:
        """The table's schema evolved to hold ``columns`` too; the table's own schema object if it holds them already.

        Raises UnsupportedError if a column's type cannot become the new type, the table's rules refuse the change, or
        another source of a stitched table spells the key's values in another way.
        """
        key = self.hudi.config.record_key_fields if self.hudi.config.merging.groups else ()
        if (why := differing_keys(self.hudi.schema, columns, key)) is not None:
            raise UnsupportedError(why, do_next=_ONE_SPELLING, table=str(self.source))
        return evolved(self.hudi.schema, columns, self.rules.schema_changes)

    def commit(
        self,
        context: WriteContext,
        results: Sequence[WriteResult],
        record: CommitRecord,
        touched: Sequence[GroupIntent] = (),
        replacement: Replacement | None = None,
    ) -> str:
        """Complete an instant with the commit record of its batch. Returns the completion time. ``touched`` and errors
        as ``HudiTable.commit``. ``replacement``: of a replacecommit.

        ``record``: holds the TRUNCATEs of the batch, but no positions. They are derived under the lock from what the
        newest commit recorded, so the newest commit always knows the positions of all streams.
        """
        whole = self._is_whole(context, record)
        if results:
            self.rows.keep_keys(context.instant, results)

        def extra() -> Mapping[str, str]:
            nonlocal record
            self._take_over(record.stream, context.instant)
            self._check_derived(record, context.instant)
            record = record.upon(self.positions, self.truncates, self.snapshots)
            return {**record.to_extra(), **(stated_buckets(replacement.bucketing) if replacement is not None else {})}

        replaced = replacement.groups if replacement is not None else None
        completed = self.hudi.commit(
            context.instant, results, extra, context.arrow_schema, touched=touched, whole=whole, replaced=replaced
        )
        self.positions = record.positions if record.positions is not None else self.positions
        self.truncates, self.source, self.origin = record.truncates, record.source, record.origin
        self.keyless = record.keyless if record.keyless is not None else self.keyless
        self.ddl = record.notes.ddl if record.notes.ddl is not None else self.ddl
        self.snapshots = record.snapshots if record.snapshots.runs else self.snapshots
        self.load, self.brought = record.notes.load or self.load, record.notes.brought or self.brought
        self.heights = record.heights if record.heights is not None else self.heights
        self.registrar.completed(self.storage.uri, context.instant)
        return completed

    def _is_whole(self, context: WriteContext, record: CommitRecord) -> bool:
        """Whether a commit depends on more than the file groups that it writes: on all rows, or on what earlier commits
        recorded of the whole table."""
        notes = record.notes
        return (
            self.keyless is not None
            or record.keyless is not None
            or record.heights is not None
            or record.truncates.news_to(self.truncates)
            or bool(notes.ddl is not None or notes.key is not None or notes.hours is not None or notes.reverts)
            or bool(retyped(self.hudi.schema, context.arrow_schema))
        )

    def _take_over(self, stream: str, instant: str) -> None:
        """Take over what other writers have recorded since the commit began. Raises OvertakenError if it is another
        source of the table's rows, and as ``refresh``."""
        known = self.source, self.origin or self.source  # commits name no origin that is the source
        self._follow(stream)
        if None not in (known[0], self.source) and (self.source, self.origin or self.source) != known:
            raise OvertakenError(
                f"another writer has recorded that the table's rows come from {self.origin or self.source}",
                do_next="roll it back and write again on the current state of the table",
                instant=instant,
                table=self.rules.path,
            )

    def _check_derived(self, record: CommitRecord, instant: str) -> None:
        """Raise OvertakenError if another process has derived rows of this wide table since the commit's were."""
        if (mine := record.notes.derived) is None:
            return
        newest = self.recorded.derived
        if mine.follows_ms != (newest.derived_ms if newest is not None else None):
            raise OvertakenError(
                "another process has derived rows of this table meanwhile",
                do_next="none needed: what it has left is derived anew",
                instant=instant,
                table=self.rules.path,
            )

    def standing(self, stream: str) -> Offsets:
        """The offsets below which everything of a stream is applied."""
        return self.positions.get(stream, NO_OFFSETS)

    def topics(self, stream: str) -> set[str]:
        """The topics that have fed this table."""
        return set(self.standing(stream))

    def ahead_of(self, stream: str, positions: OffsetMap) -> Offsets:
        """The table's positions that are ahead of ``positions``; other partitions are left out."""
        return self.standing(stream).ahead_of(positions)

    def report(self, source: SourceTable) -> TaskTableReport:
        """An empty report, for a batch that concerns this table and has no rows for it."""
        config = self.hudi.config
        partition = PartitionSettings(column=config.partition_fields[0]) if config.partition_fields else None
        target = Target(source, self.rules.path, config, partition)
        columns = TableSchema(source, (), target.key)
        return TaskTableReport(columns, target, pa.schema([]), shared=bool(self.rules.groups))
