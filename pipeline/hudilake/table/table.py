"""A table on storage that a writer keeps open: creation, opening, delta commits, rollbacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import pyarrow as pa

from hudilake.clock import InstantClock
from hudilake.commit.announced import announcement, intent_extra
from hudilake.commit.commit import begin_instant, drop_markers, withdraw
from hudilake.commit.intent import WHOLE_TABLE, GroupIntent, Intent
from hudilake.commit.preconditions import ForeignActionError, check_clock
from hudilake.commit.rollback import roll_back_pending
from hudilake.errors import LostOwnershipError
from hudilake.format.definition.config import (
    PROPERTIES_BACKUP_PATH,
    TableConfig,
    load_config,
)
from hudilake.format.definition.consistent import FIRST_INSTANT
from hudilake.format.definition.hashing_config import hashing_config, hashing_config_path
from hudilake.format.definition.key_change import with_columns
from hudilake.format.definition.properties import PROPERTIES_PATH
from hudilake.format.definition.schema import avro_schema, value_schema
from hudilake.format.files.file_group_write import WriteContext, WriteResult
from hudilake.format.files.view import FileSlice
from hudilake.format.timeline.clustering_plan import ClusteringPlan
from hudilake.format.timeline.commit_metadata import replace_request
from hudilake.format.timeline.history import HISTORY_PATH
from hudilake.format.timeline.instant import CLUSTERING, REPLACE_COMMIT, WRITE_ACTIONS, Instant
from hudilake.format.timeline.timeline import Timeline
from hudilake.locking.ownership import Locking, Ownership
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.table import MetadataTable
from hudilake.policies import Conflicts
from hudilake.storage.base import Storage
from hudilake.table.begun import Begun
from hudilake.table.metadata_upkeep import MetadataUpkeep
from hudilake.table.overtaking import check_pending
from hudilake.table.publisher import Extra, Publisher
from hudilake.table.table_state import TableState

#: Creates the timeline directory before the first instant: Hudi Spark fails on a table without it (measured).
_SKELETON_FILE = f"{HISTORY_PATH}/.keep"


class HudiTable:
    """One writer's view of a table: its state, and the commits that change it. Not for several threads at once.

    If the table's properties list a metadata table, every commit and rollback keeps it current.

    Instants are completed and removed under the table's lock (``exclusively``). A delta commit is based on all instants
    that had completed when it began. If another writer commits meanwhile and the two conflict under the table's policy,
    it is refused, and its caller begins a new one.

    Args:
        state: what is known of the table. It belongs to this object.
    """

    def __init__(self, state: TableState) -> None:
        self.state = state
        self._upkeep = MetadataUpkeep(state)
        self._publisher = Publisher(state, self._upkeep)

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
        conflicts: Conflicts = "queue",
    ) -> HudiTable:
        """Create an empty table.

        Args:
            storage: its root.
            config: its configuration.
            arrow_schema: its columns, the ordering column and the key columns among them, without the meta fields.
            metadata: the settings of its metadata table; None for a table without one.
            locking: how it is shared with other writers; None for a writer that is the only one.
            conflicts: what this writer's commits may do beside those of others.

        Raises UnsupportedError for a schema or a kind of table that Hudi's readers do not support, AlreadyExistsError
        for an existing table.
        """
        config = with_columns(config, arrow_schema)
        storage.write(_SKELETON_FILE, b"")
        if config.partition_buckets:
            storage.write(hashing_config_path(FIRST_INSTANT), hashing_config(config.bucketing, FIRST_INSTANT))
        storage.create(PROPERTIES_PATH, config.to_properties())
        table = cls.open(storage, config, metadata, locking, conflicts)
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
        conflicts: Conflicts = "queue",
    ) -> HudiTable:
        """Read a table's configuration and list its timeline.

        Args:
            storage: its root.
            expected: the configuration in the settings; None accepts any. Its index is taken if it is looked up and
                the table's properties, written by another writer, name none.
            metadata: the settings of its metadata table, if it has one; None for the defaults.
            locking: how it is shared with other writers; None for a writer that is the only one.
            conflicts: what this writer's commits may do beside those of others.

        Raises ConfigError if there is no table or its identity is not the expected one, CorruptDataError.
        """
        config, properties = load_config(storage)
        if expected is not None:
            expected.check_same_identity(config)
            config = config.with_index_of(expected)
        ownership = Ownership(storage, locking)
        settings = metadata or MetadataConfig()
        timeline = Timeline.load(storage, config.timeline_layout)
        return cls(TableState(storage, config, timeline, properties, settings, ownership, conflicts))

    # -- its state -----------------------------------------------------------------------------------------------------

    @property
    def storage(self) -> Storage:
        """The storage at its root; instants are completed through it only under the table's lock."""
        return self.state.storage

    @property
    def config(self) -> TableConfig:
        """Its configuration as of the last refresh."""
        return self.state.config

    @property
    def schema(self) -> pa.Schema:
        """Its columns as of the last refresh, without the meta fields."""
        return self.state.schema

    @property
    def timeline(self) -> Timeline:
        """Its instants."""
        return self.state.timeline

    @property
    def clock(self) -> InstantClock:
        """The source of all times of this table."""
        return self.state.clock

    @property
    def ownership(self) -> Ownership:
        """How it is shared with other writers, and which instants are this one's."""
        return self.state.ownership

    @property
    def generation(self) -> int:
        """Grows with every refresh that finds writes of other writers."""
        return self.state.generation

    @property
    def metadata_table(self) -> MetadataTable | None:
        """Its metadata table; None if its properties list none. Errors as ``TableState.metadata_table``."""
        return self.state.metadata_table

    def exclusively(self) -> AbstractContextManager[None]:
        """Hold the table's lock, refreshed after other holders' changes. Reentrant. Errors as
        ``TableState.exclusively``."""
        return self.state.exclusively()

    def refresh(self, *, begins: bool = False) -> bool:
        """Take in what others have committed. Arguments, result and errors as ``TableState.refresh``."""
        return self.state.refresh(begins=begins)

    def file_slices(self, partitions: Collection[str] | None = None) -> list[FileSlice]:
        """The newest file slice of every file group. Arguments as ``TableState.file_slices``."""
        return self.state.file_slices(partitions)

    def schema_as_of(self, instant: str) -> pa.Schema:
        """The columns as of a requested time: those of the newest commit at or before it."""
        return self.state.schema_as_of(instant)

    def extra_metadata(self, key: str) -> str | None:
        """The value of a key of extraMetadata in the newest completed commit that has it, archived ones included."""
        return self.state.extra_values(key).get(key)

    def extra_values(self, key: str, *further: str) -> Mapping[str, str]:
        """The values of keys in the newest completed commit that has the first. Returns as
        ``TableState.extra_values``."""
        return self.state.extra_values(key, *further)

    # -- its commits ---------------------------------------------------------------------------------------------------

    def key_anew(self, config: TableConfig, arrow_schema: pa.Schema) -> bool:
        """Give a table without files another record key and other columns: who created it has died before the first
        commit, and the source's table has another key now. Whether the table is such a one with the same merging.

        Arguments as ``create``. Raises ConfigError if more than the key differs, UnsupportedError, StorageError.
        """
        mine = self.config
        same = replace(config, record_key_fields=mine.record_key_fields, index_fields=mine.index_fields)
        mine.check_same_identity(same)
        if same == config or mine.merging != config.merging:
            return False
        with self.exclusively():
            writes = map(self.timeline.commit_metadata, self.timeline.completed_actions(WRITE_ACTIONS))
            if self.timeline.pending() or any(write.stats for write in writes):
                return False
            self.state.adopt(with_columns(replace(config, metadata_partitions=mine.metadata_partitions), arrow_schema))
        return True

    def keep_metadata(self, settings: MetadataConfig | None) -> bool:
        """Make the metadata table, make it anew with other partitions, or drop it. Arguments and errors as
        ``MetadataUpkeep.keep``."""
        return self._upkeep.keep(settings)

    def maintain(self) -> str | None:
        """Run the metadata table's services after a commit, if they are due. Returns the reason if they fail: the
        commits stay valid, and the next call tries again."""
        return self._upkeep.maintain()

    def begin(self, intent: Intent | None = None) -> str:
        """Begin a commit on the current state of the table; returns the requested time of its inflight instant.

        Args:
            intent: what it will write, as far as it is known: its inflight file says so. None if it is not known yet.

        Except under the policy ``queue``, an intent is checked against other writers first (``overtaking``). Raises
        OvertakenError for a conflict; nothing is left of the instant then. Raises ConfigError if ``hoodie.properties``
        now has another table's identity, the clock is far behind the timeline or another writer has put rows where they
        do not belong (``OthersWrites.check``), UnsupportedError for a table that binlake cannot write to,
        ForeignActionError while an action of Hudi on its file groups is pending.
        """
        self._check_may_begin()
        self.state.begun.forget_foreign_writes()
        begun = self.state.basis(whole=intent is not None and intent.whole)
        body, check = b"", None
        if intent is not None:
            body, check = announcement(intent), partial(self._check_first, intent, begun)
        state = self.state
        first = check if state.policy != "queue" and state.lock.shared else None
        inflight = begin_instant(self.storage, self.clock.next_begin, state.action, self.ownership, body, first)
        self.timeline.record(inflight)
        state.begun.note(inflight.requested_time, begun)
        return inflight.requested_time

    def begin_replace(self, plan: ClusteringPlan | None = None) -> str:
        """Begin a replacecommit that takes in what others commit until it completes (``rebase``); returns its requested
        time. It is taken under the table's lock. Errors as ``begin``, and LockHeldError.

        Args:
            plan: of a clustering or a resize, which is a clustering until it completes; None for any other
                replacecommit.
        """
        with self.exclusively():
            self._check_may_begin()
            if busy := [i for i in self.timeline.pending() if i.action in (REPLACE_COMMIT, CLUSTERING)]:
                raise ForeignActionError(
                    "another replacecommit or clustering is pending",
                    do_next="wait until it ends; the table's next writer rolls it back if its process is dead",
                    instant=busy[0].requested_time,
                    table=self.config.name,
                )
            action, body, request = REPLACE_COMMIT, announcement(WHOLE_TABLE), replace_request()
            if plan is not None:  # the inflight file of a clustering is empty, so the requested file has the intent
                action, body = CLUSTERING, b""
                said = {**plan.extra, **intent_extra(WHOLE_TABLE, ())}
                request = replace(plan, extra=said).to_bytes(self.storage.uri)
            times, owner = self.clock.next, self.ownership
            inflight = begin_instant(self.storage, times, action, owner, body, request_body=request)
            self.timeline.record(inflight)
            self.rebase(inflight.requested_time)
        return inflight.requested_time

    def _check_may_begin(self) -> None:
        """Raise what ``begin`` does for a table that no instant may begin on."""
        self.state.check_config()
        self.state.check_writable()
        _ = self.metadata_table  # one that cannot be opened refuses the instant, and not its files
        self.state.refuse_foreign()
        self.state.check_others()
        check_clock(self.timeline, self.config.name)

    def rebase(self, instant: str, *, whole: bool = True) -> None:
        """Note that a pending instant of ours is based on the table as of the last refresh.

        ``whole``: whether its content depends on the whole table.
        """
        self.state.begun.note(instant, self.state.basis(whole=whole))

    def _check_first(self, intent: Intent, begun: Begun, requested: Instant) -> None:
        mine = intent.at(requested.requested_time)
        try:
            check_pending(self.state, requested, mine, begun, waits=not self.state.holds_lock)
        except BaseException:
            self.timeline.forget(requested)
            raise

    def write_context(
        self, instant: str, schema: pa.Schema | None = None, compression: str = "zstd", level: int | None = 1
    ) -> WriteContext:
        """The context of a commit's tasks. ``schema``: a newer schema, to be committed with their files."""
        columns = value_schema(schema) if schema is not None else self.schema
        return WriteContext(
            table_name=self.config.name,
            instant=instant,
            avro_schema_json=avro_schema(columns, self.config.name, with_meta=True),
            arrow_schema=columns,
            ordering_field=self.config.ordering_field,
            compression=compression,
            compression_level=level,
            indexed_columns=self._upkeep.indexed_columns(columns),
            states_keys=self.config.kind.keeps_keys,
            change_log=self.config.change_log,
        )

    def commit(
        self,
        instant: str,
        results: Iterable[WriteResult],
        extra: Extra | None = None,
        schema: pa.Schema | None = None,
        *,
        touched: Sequence[GroupIntent] = (),
        whole: bool = False,
        replaced: Mapping[str, tuple[str, ...]] | None = None,
    ) -> str:
        """Publish the files of an instant from ``begin``; returns the completion time.

        Args:
            instant: the requested time.
            results: one for every file; none for a commit that only records ``extra``.
            extra: the caller's own keys of extraMetadata, or a function that is called for them under the lock once the
                checks have passed, with all that others committed taken in.
            schema: a newer schema: columns added as nullable, types widened; any types if every file group gets a new
                base file. Columns that others have added since ``begin`` stay.
            touched: what it decided on beside its files: file groups whose state it looked up and changes elsewhere.
            whole: whether the commit's content depends on the whole table: no other may have completed since ``begin``.
            replaced: of a replacecommit, the ids of the file groups that it replaces, by partition path.

        The metadata table records the files first. Raises OvertakenError if what another writer has committed since
        ``begin`` conflicts under the table's policy, ConfigError as ``begin``, LockHeldError, LostOwnershipError,
        CommitUnknownError, StorageError as ``commit.apply_commit`` says, UnsupportedError for a schema the old files
        cannot be read under, CorruptDataError for a metadata table that cannot be read.
        """
        files = list(results)
        try:
            with self.exclusively():
                begun = self.state.begun.of(instant) or self.state.basis()
                mine = Intent.of_results(files, touched, whole=whole or begun.whole).at(instant)
                self._publisher.roll_back_dead(instant)
                completed = self._publisher.publish(mine, begun, files, extra or {}, schema, replaced)
        except LostOwnershipError:
            self.state.begun.forget(instant)
            self.ownership.end(instant)
            withdraw(self.storage, instant, [path for file in files for path in file.paths])
            raise
        self.state.begun.forget(instant)
        drop_markers(self.storage, instant)
        self.ownership.end(instant)
        return completed

    def abort(self, instant: str) -> None:
        """Roll back one of our own instants, inflight or a planned clustering. Raises StorageError, LostOwnershipError;
        then it is a dead one's to all writers, also to this one, whose next commit rolls it back."""
        self.state.begun.give_up(instant)
        try:
            with self.exclusively():
                self._publisher.abort(instant)
        finally:
            self.ownership.end(instant)

    def rollback_pending(self) -> list[str]:
        """Roll back pending commits and delta commits of dead writers, and finish their rollbacks.

        Completed files that appeared late are deleted first (``actions.late_completion``). Returns the requested times
        of the commits rolled back. Pending compactions stay. Heartbeats show which writers
        are dead (Hudi's LAZY policy); a writer without heartbeats treats all others as dead (Hudi's EAGER policy).
        """
        with self.state.exclusively(starts=True):
            pending, abandoned = self._upkeep.has_pending(), self.ownership.is_abandoned
            rolled_back = roll_back_pending(self.storage, self.timeline, self.clock, abandoned, self._publisher.undo)
            if pending or rolled_back:
                self._upkeep.recover()
            self.ownership.sweep({pending.requested_time for pending in self.timeline.pending()})
        return rolled_back
