"""The metadata table of its one writer: every commit, compaction, clean and rollback of the data table is recorded here
under the same instant, before it completes on the data table.

State after a crash, for each step of ``apply``:

1. ``index.json``, if the indexed columns change: fewer columns, or new ones that are null in older files.
2. ``<instant>.deltacommit.requested``: no entries yet. The data instant is pending, so the next start rolls it back,
   together with this one (``rollback``).
3. ``.inflight`` and the log files, in parallel: readers ignore log files of an instant that is not completed.
4. ``<instant>_<completion>.deltacommit``: readers still ignore the entries, because the instant is pending on the data
   table. It is rolled back as above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from hudilake.clock import InstantClock
from hudilake.commit.commit import publish
from hudilake.commit.preconditions import is_time
from hudilake.commit.rollback import RollbackPlan
from hudilake.errors import LostOwnershipError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.files.names import parse_base_name, parse_log_name
from hudilake.format.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata
from hudilake.format.timeline.instant import DELTA_COMMIT, ROLLBACK, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.indexed_columns import IndexedColumns
from hudilake.metadata.opened_filters import OutgrownFilters
from hudilake.metadata.partition_ranges import Changes, PartitionRanges
from hudilake.metadata.records.delta import (
    DeltaRecords,
    FileKey,
    Group,
    KeyedRecords,
    MetadataDelta,
)
from hudilake.metadata.records.layout import METADATA_PATH
from hudilake.metadata.records.log_write import GroupLog, encode_logs
from hudilake.metadata.records.reader import MetadataReader, load_groups
from hudilake.metadata.records.records import table_schema
from hudilake.metadata.unknown_ranges import of_files, older_statistics, with_unknown
from hudilake.storage.at_once import at_once
from hudilake.storage.base import AlreadyExistsError, Storage
from hudilake.storage.metered import Meter, MeteredStorage

if TYPE_CHECKING:
    from hudilake.metadata.records.record_index import RecordIndexGroups


class MetadataTable:
    """One writer's view of a table's metadata table. Not for use from several threads at once.

    Args:
        storage: rooted at the data table.
        partitions: the metadata partitions the data table lists.
        data_timeline: the data table's timeline, shared with its writer.
        clock: the data table's clock, shared with its writer.
        schema: the data table's columns.
        config: settings.
        kind: the data table's.
    """

    def __init__(
        self,
        storage: Storage,
        partitions: Sequence[MetadataPartition],
        data_timeline: Timeline,
        clock: InstantClock,
        schema: pa.Schema,
        config: MetadataConfig,
        kind: TableKind,
    ) -> None:
        self.data_storage, self.storage = storage, storage.sub(METADATA_PATH)
        self.partitions = tuple(partitions)
        self.config = config
        self.clock = clock
        self.data_timeline = data_timeline
        self._schema, self._kind = schema, kind
        #: The bytes that lookups read.
        self.meter = Meter()
        self.refresh()

    @classmethod
    def open(
        cls,
        storage: Storage,
        table: TableConfig,
        data_timeline: Timeline,
        clock: InstantClock,
        schema: pa.Schema,
        config: MetadataConfig | None = None,
    ) -> MetadataTable | None:
        """The metadata table of a data table, or None if its properties list none.

        Arguments as for the class; ``table`` holds the data table's properties. Raises UnsupportedError for a table
        that binlake cannot write to, CorruptDataError if a listed metadata partition does not exist.
        """
        if not table.metadata_partitions:
            return None
        table.check_writable()
        partitions = [partition for partition in MetadataPartition if partition in table.metadata_partitions]
        return cls(storage, partitions, data_timeline, clock, schema, config or MetadataConfig(), table.kind)

    def refresh(self, schema: pa.Schema | None = None) -> None:
        """Refresh after another writer's changes: timeline, file groups and index definitions are read again.

        Two storage calls and one for each metadata partition, whatever the table's size. ``schema``: the data table's
        columns now, None if they are the same.
        """
        self._schema = self._schema if schema is None else schema
        self.timeline = Timeline.load(self.storage)
        if is_time(latest := self.timeline.latest_time() or ""):
            self.clock.observe(latest)
        groups = load_groups(
            MeteredStorage(self.storage, self.meter), self.partitions, self.timeline, self.data_timeline
        )
        self.reader = MetadataReader(groups)
        self.record_index = self._record_index()
        self._columns: IndexedColumns | None = None
        if self.keeps(MetadataPartition.COLUMN_STATS):
            self._columns = IndexedColumns(self.data_storage, self._schema, self.config.columns)
        self._ranges = PartitionRanges(self.reader)
        self._outgrown = OutgrownFilters(self.reader, self.data_timeline)
        self._known_partitions: set[str] | None = None
        self._known_groups: set[Group] = set()
        self._settled = False
        self._undone = "", self._schema

    def _record_index(self) -> RecordIndexGroups | None:
        groups = self.reader.groups.get(MetadataPartition.RECORD_INDEX)
        if groups is None:
            return None
        from hudilake.metadata.records.record_index import RecordIndexGroups  # needs compiled loops

        by_partition = self._kind.scope.by_partition
        return RecordIndexGroups(self.storage, groups, by_partition, self.config.record_index_file_groups)

    def keeps(self, partition: MetadataPartition) -> bool:
        """Whether that metadata partition is kept."""
        return partition in self.partitions

    @property
    def columns(self) -> tuple[str, ...]:
        """The indexed columns; empty if no statistics are kept."""
        return () if self._columns is None else self._columns.names

    def columns_under(self, schema: pa.Schema) -> tuple[str, ...]:
        """The columns whose statistics the tasks compute in a commit of this schema."""
        return () if self._columns is None else self._columns.under(schema)

    def partition_paths(self) -> set[str]:
        """The data partitions in the index."""
        if self._known_partitions is None:
            self._known_partitions = set(self.reader.partition_paths())
        return self._known_partitions

    def new_groups(self, files: Iterable[FileKey]) -> set[Group]:
        """The file groups of these log files, (partition path, bare name), that the index lacks: their commit gives
        each an empty base file (``first_base.write_first_base``)."""
        groups = {(path, log.file_id) for path, name in files if (log := parse_log_name(name)) is not None}
        fresh = groups - self._known_groups
        if fresh:
            for path, names in self.reader.files({path for path, _ in fresh}).items():
                parsed = (parse_base_name(name) for name in names)
                self._known_groups |= {(path, base.file_id) for base in parsed if base is not None}
        return fresh - self._known_groups

    def apply(self, instant: str, delta: MetadataDelta, schema: pa.Schema | None = None) -> None:
        """Record an action of the data table, while it is inflight there. Does nothing for an empty delta.

        Args:
            instant: the action's requested time.
            delta: the files it adds and deletes.
            schema: the table's columns from this action on, if they change with it.

        Raises LostOwnershipError if another writer recorded the same instant, CommitUnknownError, StorageError,
        CorruptDataError if the index cannot be read.
        """
        schema = self._schema if schema is None else schema
        before = self.columns, self._left()
        if self._columns is not None:
            self._columns.follow(schema, delta.unordered_columns())
            delta = with_unknown(delta, self._columns.types)
        if not delta.added and not delta.deleted:
            self._schema = schema
            return
        records, kept = self._records(instant, delta, *before)
        if self._is_overruled(instant):
            ranges = records.by_partition.pop(MetadataPartition.PARTITION_STATS, {})
            self.restate({MetadataPartition.PARTITION_STATS: ranges})
        self._write(instant, records.by_partition, self._key_logs(instant, delta))
        kept()
        self._undone = instant, self._schema
        self._schema = schema

    def restate(self, records: Mapping[MetadataPartition, KeyedRecords]) -> None:
        """Record what follows from the entries that there are, under an instant of the metadata table alone. Errors as
        ``apply``."""
        self._write(self.clock.next(), records)

    def _is_overruled(self, instant: str) -> bool:
        """Whether there are ranges of partitions from an instant that was requested later. Log files are read in the
        order of their instants, and ranges of partitions replace those before them. So an action that ends out of turn
        records them under an instant of the metadata table alone, before its own. They only widen, so they stay right
        if the action is rolled back."""
        groups = self.reader.groups.get(MetadataPartition.PARTITION_STATS, [])
        return any(log.name.instant > instant for group in groups for log in group.logs)

    def _key_logs(self, instant: str, delta: MetadataDelta) -> list[GroupLog]:
        return [] if self.record_index is None or not delta.keys else self.record_index.logs(instant, delta.keys)

    def _write(
        self,
        instant: str,
        by_partition: Mapping[MetadataPartition, KeyedRecords],
        further: Sequence[GroupLog] = (),
    ) -> None:
        if not any(by_partition.values()) and not further:
            return
        version = self._version(instant)
        logs = [
            log
            for partition, group in by_partition.items()
            if group
            for log in encode_logs(instant, partition, self.reader.groups[partition], group, version)
        ]
        logs += further
        self._commit(instant, logs)
        for log in logs:
            log.keep(log)

    def _version(self, instant: str) -> int:
        """Of the log files of an action's entries: one more after each attempt that was taken back. A store may carry
        out a deletion late or twice, and would take away what has the same name since."""
        later = [i for i in self.timeline.completed_actions((ROLLBACK,)) if i.requested_time > instant]
        plans = (i.in_state(State.REQUESTED).path for i in later)
        targets = [RollbackPlan.from_bytes(self.storage.read(path), path).target_time for path in plans]
        return 1 + targets.count(instant)

    def schema_without(self, instant: str) -> pa.Schema:
        """The table's columns if that instant is undone."""
        return self._undone[1] if self._undone[0] == instant else self._schema

    def _left(self) -> set[str]:
        return set() if self._columns is None else set(self._columns.left)

    def _records(
        self, instant: str, delta: MetadataDelta, columns: tuple[str, ...], left: set[str]
    ) -> tuple[DeltaRecords, Callable[[], None]]:
        """The records, and the function to call after their commit. ``columns``, ``left``: the columns that were
        indexed before, and those that had left the index."""
        records = DeltaRecords(instant)
        new = delta.partition_paths() - self.partition_paths()
        records.add_listings(delta, new)
        changed: Changes = {}
        if self.keeps(MetadataPartition.COLUMN_STATS):
            by_file = delta if self._columns is None else of_files(delta, self._columns.types)
            records.add_column_stats(by_file, self.columns, self._of_older_files(columns, left))
        if self.keeps(MetadataPartition.PARTITION_STATS) and self._columns is not None:
            changed = self._changed_ranges(self._columns, delta, new, columns, left)
            records.add_partition_stats(changed)
        if self.keeps(MetadataPartition.BLOOM_FILTERS):
            records.add_bloom_filters(delta, self._outgrown.of(instant, delta))

        def kept() -> None:
            self.partition_paths().update(new)
            self._ranges.keep(changed)
            self._settled = True
            self._outgrown.keep(delta)

        return records, kept

    def _of_older_files(self, columns: tuple[str, ...], left: set[str]) -> Iterable[tuple[FileKey, ColumnRange]]:
        """Statistics of the existing files for the columns that enter the index with this action."""
        types = {} if self._columns is None else self._columns.types
        entered = [column for column in types if column not in columns]
        if not entered:
            return ()
        files = self.reader.files(self.partition_paths())
        keys = [(path, name) for path, names in files.items() for name in names]
        return older_statistics(self.reader, keys, types, entered, left)

    def _changed_ranges(
        self, now: IndexedColumns, delta: MetadataDelta, new: set[str], columns: tuple[str, ...], left: set[str]
    ) -> Changes:
        """The partition statistics that change: those of the written partitions, and those of all partitions if the
        indexed columns change or an attempt to change them may have died."""
        entered = [column for column in now.types if column not in columns]
        changed: Changes = {}
        if entered or now.left - left or (left and not self._settled):
            changed = self._ranges.everywhere(self.partition_paths(), now.types, entered, left | now.left)
        return changed | self._ranges.grown_by(delta, now.types, new, left)

    def _commit(self, instant: str, logs: list[GroupLog]) -> None:
        requested = Instant(instant, DELTA_COMMIT, State.REQUESTED)
        try:
            self.storage.create(requested.path, b"")
        except AlreadyExistsError as error:
            raise LostOwnershipError(
                "another writer recorded this instant in the metadata table",
                do_next="another process writes to this table: stop it, or set locking",
                instant=instant,
            ) from error
        inflight = requested.in_state(State.INFLIGHT)
        self.timeline.record(inflight)
        writes = [partial(self.storage.write, log.path, log.data) for log in logs]
        at_once([*writes, partial(self.storage.create, inflight.path, b"")])
        completed = inflight.in_state(State.COMPLETED, self.clock.next())
        body = CommitMetadata(
            stats=tuple(log.stat() for log in logs),
            extra={SCHEMA_KEY: table_schema()},
            operation="UPSERT_PREPPED",
        )
        publish(self.storage, completed, body.to_bytes())
        self.timeline.record(completed)
