"""A table on storage, kept open by its one writer: configuration, schema, timeline, metadata table, and commits."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from pipeline.clock import InstantClock
from pipeline.errors import BinlakeError, LostOwnershipError, UnsupportedError
from pipeline.hudi.beginning import check_clock, is_time, refuse_foreign
from pipeline.hudi.commit import CommitPlan, OvertakenError, apply_commit, begin_instant, withdraw
from pipeline.hudi.config import CREATE_SCHEMA, PROPERTIES_BACKUP_PATH, PROPERTIES_PATH, TableConfig, load_config
from pipeline.hudi.locking.base import TableLock
from pipeline.hudi.locking.fenced import fenced
from pipeline.hudi.locking.ownership import Locking, Ownership
from pipeline.hudi.metadata import rollback as metadata_rollback
from pipeline.hudi.metadata.config import MetadataConfig
from pipeline.hudi.metadata.delta import MetadataDelta
from pipeline.hudi.metadata.initialise import drop, initialise, kept_partitions
from pipeline.hudi.metadata.noting import added_files
from pipeline.hudi.metadata.services import is_due, maintain, recover
from pipeline.hudi.metadata.table import MetadataTable
from pipeline.hudi.schema import arrow_schema, avro_schema, check_evolution, value_schema
from pipeline.hudi.services.rollback import roll_back, roll_back_pending
from pipeline.hudi.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata
from pipeline.hudi.timeline.history import HISTORY_PATH
from pipeline.hudi.timeline.instant import DELTA_COMMIT, REPLACE_COMMIT, RESTORE, Instant, State
from pipeline.hudi.timeline.timeline import Timeline
from pipeline.hudi.view import FileSlice, file_slices, slices_of_partition
from pipeline.hudi.write import WriteContext, WriteResult, write_stats
from pipeline.storage.base import FileInfo, Storage

#: Makes the timeline directory exist before the first instant: Hudi Spark fails on a table without it (measured).
_SKELETON_FILE = f"{HISTORY_PATH}/.keep"


#: What makes a commit out of date that began before another writer completed it. No compaction: it changes no row.
_OVERTAKING = (DELTA_COMMIT, REPLACE_COMMIT, RESTORE)


class HudiTable:
    """One writer's view of a table. Not for use from several threads at once.

    If the table's properties list a metadata table, every commit and rollback keeps it current.

    Whatever changes the state of an instant happens under the table's lock (``exclusively``). A delta commit builds on
    all that had completed when it began: one that another writer overtakes is refused, and begun anew by its caller.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        timeline: Timeline,
        properties: FileInfo | None,
        metadata: MetadataConfig,
        ownership: Ownership,
    ) -> None:
        self.ownership = ownership
        self.storage = fenced(storage, ownership.lock)
        self.config = config
        self.timeline = timeline
        self._properties = properties
        self._metadata_config = metadata
        self._index: MetadataTable | None = None
        #: Grows whenever a refresh finds that somebody else has written, whoever asked for the refresh.
        self.generation = 0
        self._clock = InstantClock()
        self._entered = 0
        self._foreign_writes = 0
        #: The count of foreign writes that each of our pending instants knows of.
        self._begun: dict[str, int] = {}
        self._known_partitions: set[str] = set()
        self._observe_times()
        self.schema = self._read_schema()

    @staticmethod
    def exists(storage: Storage) -> bool:
        """Whether there is a table at the storage's root."""
        return storage.stat(PROPERTIES_PATH) is not None or storage.stat(PROPERTIES_BACKUP_PATH) is not None

    @classmethod
    def create(
        cls,
        storage: Storage,
        config: TableConfig,
        arrow_schema: pa.Schema,
        metadata: MetadataConfig | None = None,
        locking: Locking | None = None,
    ) -> HudiTable:
        """Make an empty table.

        Args:
            storage: its root.
            config: what it shall be.
            arrow_schema: its columns, the ordering column and the key columns among them, without the meta fields.
            metadata: what its metadata table keeps; None for a table without one.
            locking: how it is shared with other writers; None for a writer that is the only one.

        Raises UnsupportedError for a schema Hudi's readers cannot take, AlreadyExistsError if there is a table already.
        """
        config.check_columns(arrow_schema)
        create_schema = {CREATE_SCHEMA: avro_schema(arrow_schema, config.name, with_meta=False)}
        config = replace(config, extra={**config.extra, **create_schema})
        storage.write(_SKELETON_FILE, b"")
        storage.create(PROPERTIES_PATH, config.to_properties())
        table = cls.open(storage, config, metadata, locking)
        if metadata is not None:
            table.keep_metadata(metadata)
        return table

    @classmethod
    def open(
        cls,
        storage: Storage,
        expected: TableConfig | None = None,
        metadata: MetadataConfig | None = None,
        locking: Locking | None = None,
    ) -> HudiTable:
        """Read a table's configuration and list its timeline.

        Args:
            storage: its root.
            expected: what the settings say it is; None takes it as it is.
            metadata: how to keep its metadata table, if it has one; None for the defaults.
            locking: how it is shared with other writers; None for a writer that is the only one.

        Raises ConfigError if there is no table or it is not as expected, CorruptDataError.
        """
        config, properties = load_config(storage)
        if expected is not None:
            expected.check_same_identity(config)
        ownership = Ownership(storage, locking)
        return cls(storage, config, Timeline.load(storage), properties, metadata or MetadataConfig(), ownership)

    @property
    def lock(self) -> TableLock:
        """The table's lock. ``exclusively`` is the way to hold it."""
        return self.ownership.lock

    @contextlib.contextmanager
    def exclusively(self) -> Iterator[None]:
        """Hold the table's lock, with all that others did before taken in. May be entered again inside.

        Raises LockHeldError if another writer keeps it too long, StorageError, CorruptDataError.
        """
        with self.lock:
            self._entered += 1
            try:
                if self._entered == 1 and self.lock.others_held:
                    self._take_in()
                yield
            finally:
                self._entered -= 1

    def _take_in(self) -> None:
        self.refresh()
        self._check_config()
        if self._index is not None and self._index.timeline.refresh():
            self._index = None
        with contextlib.suppress(BinlakeError):  # said again to whoever needs it
            _ = self.metadata_table  # the times taken from here on lie after those of its own services too

    @property
    def clock(self) -> InstantClock:
        """Where all times of this table come from: one clock for its writer and its services."""
        return self._clock

    @property
    def metadata_table(self) -> MetadataTable | None:
        """The table's metadata table, opened on first use; None if its properties list none.

        Raises UnsupportedError for one that binlake cannot keep current, CorruptDataError, StorageError.
        """
        if self._index is None and self.config.metadata_partitions:
            self._index = MetadataTable.open(
                self.storage, self.config, self.timeline, self._clock, self.schema, self._metadata_config
            )
        return self._index

    def keep_metadata(self, wanted: MetadataConfig | None) -> bool:
        """Make the metadata table, make it anew with other partitions, or drop it, so that it is as wanted.

        Args:
            wanted: what it shall keep; None for no metadata table.

        Returns whether anything was done. Reads the data files once where there are any. Raises ConfigError for a table
        with pending commits, UnsupportedError for one that binlake cannot write to, CorruptDataError, StorageError.
        """
        self.config.check_writable()
        self._metadata_config = wanted or MetadataConfig()
        if self._is_kept(wanted):
            return False
        with self.exclusively():
            self._check_config()
            return not self._is_kept(wanted) and self._keep(wanted)

    def _is_kept(self, wanted: MetadataConfig | None) -> bool:
        partitions = kept_partitions(self.config, wanted) if wanted is not None else []
        return set(partitions) == set(self.config.metadata_partitions)

    def _keep(self, wanted: MetadataConfig | None) -> bool:
        if self.config.metadata_partitions:
            self.config = drop(self.storage, self.config)
        if wanted is not None:
            self.config = initialise(
                self.storage, self.config, self.timeline, self._clock, self.schema, self._metadata_config
            )
        self._index, self._properties = None, self.storage.stat(PROPERTIES_PATH)
        return True

    def file_slices(self) -> list[FileSlice]:
        """The newest file slice of every file group: from the metadata table, without it by listing storage."""
        index = self.metadata_table
        if index is None:
            return file_slices(self.storage, self.timeline)
        listed = index.reader.listed(sorted(index.partition_paths()))
        return [s for path, files in listed.items() for s in slices_of_partition(path, files, self.timeline)]

    def refresh(self) -> bool:
        """List the end of the timeline. True if somebody else has written: file slices and schema are new then."""
        news = self.timeline.refresh()
        self._observe_times()
        if news:
            self.generation += 1
            self._foreign_writes += sum(i.action in _OVERTAKING and (i.completed or i.action == RESTORE) for i in news)
            self.schema = self._read_schema()
            self._index = None
        return bool(news)

    def begin(self) -> str:
        """A new inflight instant for a delta commit, on what is known of the table; returns its requested time.

        Raises ConfigError if ``hoodie.properties`` was changed into another table's or the clock is far behind the
        timeline, UnsupportedError for a table that binlake cannot write to, ForeignActionError while Hudi is at work on
        its file groups.
        """
        self._check_config()
        self.config.check_writable()
        refuse_foreign(self.timeline)
        check_clock(self.timeline, self.config.name)
        inflight = begin_instant(self.storage, self._clock, DELTA_COMMIT, self.ownership)
        self.timeline.record(inflight)
        self._begun[inflight.requested_time] = self._foreign_writes
        return inflight.requested_time

    def write_context(
        self, instant: str, schema: pa.Schema | None = None, compression: str = "zstd", level: int | None = 1
    ) -> WriteContext:
        """What the tasks of a commit need. ``schema``: newer than the table's, to be committed with their files."""
        columns = value_schema(schema) if schema is not None else self.schema
        return WriteContext(
            table_name=self.config.name,
            instant=instant,
            avro_schema_json=avro_schema(columns, self.config.name, with_meta=True),
            arrow_schema=columns,
            ordering_field=self.config.ordering_field,
            compression=compression,
            compression_level=level,
            indexed_columns=self._indexed_columns(columns),
        )

    def commit(
        self,
        instant: str,
        results: Iterable[WriteResult],
        extra: Mapping[str, str] | None = None,
        schema: pa.Schema | None = None,
    ) -> str:
        """Publish what the tasks wrote under an instant from ``begin``; returns the completion time.

        Args:
            instant: the requested time.
            results: one for every file; none for a commit that only records ``extra``.
            extra: the caller's own keys of extraMetadata.
            schema: a newer schema: columns added as nullable, types widened.

        The metadata table is told first. Raises OvertakenError if another writer has committed since ``begin``,
        LockHeldError, LostOwnershipError, CommitUnknownError, StorageError as ``commit.apply_commit`` says,
        UnsupportedError for a schema the old files cannot be read under, CorruptDataError for a metadata table that
        cannot be read.
        """
        files = list(results)
        try:
            with self.exclusively():
                completed = self._commit(instant, files, extra or {}, schema)
        except LostOwnershipError:
            self.ownership.end(instant)
            withdraw(self.storage, instant, [file.path for file in files])
            raise
        self._begun.pop(instant, None)
        self.ownership.end(instant)
        return completed

    def _commit(
        self, instant: str, files: Sequence[WriteResult], extra: Mapping[str, str], schema: pa.Schema | None
    ) -> str:
        inflight = self._inflight(instant)
        self.ownership.check(instant)
        self._check_not_overtaken(instant)
        columns = value_schema(schema) if schema is not None else self.schema
        check_evolution(self.schema, columns)
        stats = write_stats(instant, files)
        self._note(instant, files, columns)
        partitions = dict.fromkeys(stat.partition_path for stat in stats)
        plan = CommitPlan(
            inflight=inflight,
            completion_time=self._clock.next(),
            metadata=CommitMetadata(stats, {**extra, SCHEMA_KEY: self._avro(columns)}),
            new_partitions=tuple(p for p in partitions if p not in self._known_partitions),
        )
        completed = apply_commit(self.storage, plan)
        self.timeline.record(completed)
        self.timeline.remember(completed, plan.metadata)
        self._known_partitions.update(partitions)
        self.schema = columns
        return plan.completion_time

    def _check_not_overtaken(self, instant: str) -> None:
        if self._begun.get(instant, self._foreign_writes) != self._foreign_writes:
            raise OvertakenError(
                "another writer has committed since this instant began",
                do_next="roll it back and write again, on what the table holds now",
                instant=instant,
                table=self.config.name,
            )

    def abort(self, instant: str) -> None:
        """Roll back one of our own inflight instants. Raises StorageError, LostOwnershipError."""
        with self.exclusively():
            roll_back(self.storage, self.timeline, self._clock, self._inflight(instant), self._unnote)
        self._begun.pop(instant, None)
        self.ownership.end(instant)

    def maintain(self) -> str | None:
        """Tidy the metadata table up after a commit, when it is time.

        Returns why it could not be done, if so: the commits stand, and the next call tries again.
        """
        try:
            if self.metadata_table is None or not is_due(self.metadata_table):
                return None
            with self.exclusively():
                if self.metadata_table is not None:
                    maintain(self.metadata_table)
        except BinlakeError as error:
            self._index = None
            return f"the metadata table could not be tidied up: {error}"
        return None

    def rollback_pending(self) -> list[str]:
        """Roll back what dead writers left: pending commits and delta commits, and rollbacks they did not finish.

        Returns the requested times of the commits rolled back. Pending compactions stay. Who is dead the heartbeats
        tell (lazy); for a writer without heartbeats all are, as in Hudi's own EAGER policy.
        """
        with self.exclusively():
            self.timeline.refresh()
            self._observe_times()
            self._index = None
            abandoned = self.ownership.is_abandoned
            done = roll_back_pending(self.storage, self.timeline, self._clock, abandoned, self._unnote)
            if self.metadata_table is not None:
                recover(self.metadata_table)
            self.ownership.sweep({pending.requested_time for pending in self.timeline.pending()})
        return done

    def extra_metadata(self, key: str) -> str | None:
        """The value of a key of extraMetadata in the newest completed commit that has it, archived ones included."""
        for instant in reversed(self.timeline.completed()):
            value = self.timeline.commit_metadata(instant).extra.get(key)
            if value is not None:
                return value
        return self.timeline.history().newest_extra(key)

    def schema_as_of(self, instant: str) -> pa.Schema:
        """The table's columns as of a requested time: those of the newest commit at or before it."""
        for commit in reversed(self.timeline.completed()):
            text = (
                self.timeline.commit_metadata(commit).extra.get(SCHEMA_KEY)
                if commit.requested_time <= instant
                else None
            )
            if text is not None:
                return value_schema(arrow_schema(text))
        return self.schema

    def _indexed_columns(self, schema: pa.Schema) -> tuple[str, ...] | None:
        index = self.metadata_table
        return index.columns_under(schema) if index is not None and index.columns else None

    def _note(self, instant: str, results: Sequence[WriteResult], columns: pa.Schema) -> None:
        """Tell the metadata table what a commit adds: the files written, and base files of new file groups."""
        index = self.metadata_table
        if index is not None and results:
            added = added_files(index, self.config.name, instant, results, columns)
            index.apply(instant, MetadataDelta(added), columns)

    def _unnote(self, instant: str, rollback: str) -> None:
        """Undo in the metadata table what was noted of an instant that is being rolled back."""
        if self.metadata_table is not None:
            metadata_rollback.roll_back(self.metadata_table, instant, rollback)

    def _inflight(self, instant: str) -> Instant:
        found = self.timeline.find(instant)
        if found is None or found.state is not State.INFLIGHT:
            completed = found is not None and found.completed
            raise LostOwnershipError(
                f"this instant was {'completed' if completed else 'rolled back'} by somebody else",
                do_next="find the second writer",
                instant=instant,
                table=self.config.name,
            )
        return found

    def _avro(self, columns: pa.Schema) -> str:
        return avro_schema(columns, self.config.name, with_meta=False)

    def _read_schema(self) -> pa.Schema:
        text = self.extra_metadata(SCHEMA_KEY) or self.config.extra.get(CREATE_SCHEMA)
        if text is None:
            raise UnsupportedError(
                "the table names no schema, neither in a commit nor at its creation", table=self.config.name
            )
        return value_schema(arrow_schema(text))

    def _observe_times(self) -> None:
        latest = self.timeline.latest_time()
        if latest is not None and is_time(latest):
            self._clock.observe(latest)

    def _check_config(self) -> None:
        """Case: the table's configuration was changed under us."""
        found = self.storage.stat(PROPERTIES_PATH)
        if found is not None and found == self._properties:
            return
        config, self._properties = load_config(self.storage)
        self.config.check_same_identity(config)
        self.config, self._index = config, None
        self._foreign_writes += 1  # the metadata table has come or gone, and what was begun does not know
