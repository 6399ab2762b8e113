"""The state of an open table in a process, and its refresh after other writers' changes."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa

from hudilake.clock import InstantClock
from hudilake.commit.late_completion import completed_again, delete_late, rolled_back_since
from hudilake.commit.planned import PendingClustering, PlannedClusterings, groups_of
from hudilake.commit.preconditions import is_time, refuse_foreign
from hudilake.errors import LakeError, UnsupportedError
from hudilake.format.definition.config import TableConfig, load_config
from hudilake.format.definition.properties import PROPERTIES_PATH
from hudilake.format.definition.schema import arrow_schema, value_schema
from hudilake.format.files.view import FileSlice, file_slices, slices_of_partition
from hudilake.format.timeline.instant import (
    COMMIT,
    COMPACTION,
    REPLACE_COMMIT,
    RESTORE,
    ROLLBACK,
    WRITE_ACTIONS,
    Instant,
)
from hudilake.format.timeline.timeline import Timeline
from hudilake.locking.base import TableLock
from hudilake.locking.fenced import fenced
from hudilake.locking.ownership import Ownership
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.initialise import write_properties
from hudilake.metadata.table import MetadataTable
from hudilake.policies import Conflicts
from hudilake.storage.at_once import at_once
from hudilake.storage.base import FileInfo, Storage
from hudilake.table.begun import Begun, BegunInstants
from hudilake.table.bucket_counts import with_buckets_of
from hudilake.table.columns import avro_schema_of, columns_as_of, columns_of
from hudilake.table.others_writes import OthersWrites
from hudilake.table.rings import Rings

#: Actions that may overtake a commit if another writer completes one after its begin, besides that of commits of rows.
#: A compaction changes no row.
_OVERTAKING = (REPLACE_COMMIT, RESTORE)


class TableState:
    """Configuration, schema, timeline and metadata table of a table as of the last refresh, and the table's lock."""

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        timeline: Timeline,
        properties: FileInfo | None,
        metadata: MetadataConfig,
        ownership: Ownership,
        conflicts: Conflicts = "queue",
        *,
        avro_schema: str | None = None,
    ) -> None:
        """``avro_schema``: of the newest columns, if it is known; None to read the newest commit."""
        self.ownership = ownership
        #: What this writer's commits may do beside those of others.
        self.policy = conflicts
        self.storage = fenced(storage, ownership.lock)
        self._rings = Rings(self.storage)
        self.timeline = timeline
        counted = with_buckets_of(config, timeline)
        #: Whether ``hoodie.properties`` has the buckets that count.
        self._settled = counted == config
        self.config = self._rings.taken_in(counted, timeline)
        self._properties = properties
        #: ``hoodie.properties`` as the last refresh before a begin saw them, once.
        self._looked_at: tuple[FileInfo | None] | None = None
        #: The settings of the metadata table.
        self.metadata_config = metadata
        self._index: MetadataTable | None = None
        #: Grows with every refresh, by any caller, that finds writes of other writers.
        self.generation = 0
        #: The source of all times of this table: one clock for its writer and its services.
        self.clock = InstantClock()
        self._entered = 0
        #: The pending instants of this writer.
        self.begun = BegunInstants()
        self._clusterings = PlannedClusterings(self.storage)
        #: Completed files that appeared late, until they are deleted under the lock.
        self._late: list[Instant] = []
        self._others = OthersWrites()
        #: Whether what was to be taken in was not: this may be older than the timeline.
        self._behind = False
        self._observe_times()
        self._read_only_type: str | None = None
        if avro_schema is None:
            self.schema, self._read_only_type = self._read_schema()
        else:
            self.schema = value_schema(arrow_schema(avro_schema))

    @property
    def action(self) -> str:
        """The action of the commits of rows: a table without log files has no delta commits."""
        return self.config.kind.action

    @property
    def lock(self) -> TableLock:
        """The table's lock. Use ``exclusively`` to hold it."""
        return self.ownership.lock

    @contextlib.contextmanager
    def exclusively(self, *, starts: bool = False) -> Iterator[None]:
        """Hold the table's lock, refreshed after other holders' changes. Reentrant.

        ``starts``: a writer starts, which looks at all of the timeline and deletes completed files that appeared late.

        Raises LockHeldError if another writer keeps it too long, StorageError, CorruptDataError.
        """
        with self.lock:
            self._entered += 1
            try:
                if starts:
                    self._take_in_all()
                elif self._entered == 1 and (self.lock.others_held or self._behind):
                    self._take_in()
                if self._late:
                    delete_late(self.storage, self._late)
                    self._late = []
                yield
            except BaseException:
                self._index = None  # it may know half of what was to be done
                raise
            finally:
                self._entered -= 1

    @contextlib.contextmanager
    def _or_behind(self) -> Iterator[None]:
        """After an error the next refresh, and who enters next, takes all in anew."""
        try:
            yield
        except BaseException:
            self._behind = True
            raise

    def _take_in(self) -> None:
        with self._or_behind():
            self.refresh()
            self.check_config()
            if self._index is not None and self._index.timeline.refresh():
                self._index = None
        with contextlib.suppress(LakeError):  # raised again on the next use
            _ = self.metadata_table  # later times must be after those of its own services too

    def _take_in_all(self) -> None:
        with self._or_behind():
            self.delete_late_completions()
            if self._entered == 1:
                self.check_config()
        self._index = None  # opened on its next use

    @property
    def holds_lock(self) -> bool:
        """Whether this object is inside ``exclusively``."""
        return self._entered > 0

    def basis(self, *, whole: bool = False) -> Begun:
        """What an instant that begins now begins upon. ``whole``: whether its content depends on the whole table."""
        return Begun(self.begun.seen, self.schema, whole, self.compactions())

    def compactions(self) -> frozenset[str]:
        """The requested times of all compactions, pending or completed, that the active timeline has as of the last
        refresh; none for a table whose commits need not know them, because they look no keys up in base files that a
        compaction rewrites."""
        kind = self.config.kind
        if kind.copies or not kind.looks_up:
            return frozenset()
        pending = [instant for instant in self.timeline.pending() if instant.action == COMPACTION]
        return frozenset(i.requested_time for i in (*pending, *self.timeline.completed_actions((COMMIT,))))

    def planned(self) -> list[PendingClustering]:
        """The pending clusterings as of the last refresh, oldest first. Raises StorageError."""
        return self._clusterings.of(self.timeline)

    def slices_to_fill(self) -> list[FileSlice]:
        """The newest file slices of the file groups that new rows may go to: of all that no pending clustering will
        replace. Raises CorruptDataError, StorageError."""
        planned = groups_of(self.planned())
        return [piece for piece in self.file_slices() if (piece.partition_path, piece.file_id) not in planned]

    def refuse_foreign(self) -> None:
        """Raise ForeignActionError while an action is pending beside which no commit may be made."""
        refuse_foreign(self.storage, self.timeline, self.planned(), computed=self.config.kind.computed)

    def check_others(self) -> None:
        """Check what others have written. Errors as ``OthersWrites.check``."""
        self._others.check(self.storage, self.config, self.timeline)

    @property
    def metadata_table(self) -> MetadataTable | None:
        """The table's metadata table, opened on first use; None if its properties list none.

        Raises UnsupportedError for one that binlake cannot keep current, CorruptDataError, StorageError.
        """
        if self._index is None and self.config.metadata_partitions:
            self._index = MetadataTable.open(
                self.storage, self.config, self.timeline, self.clock, self.schema, self.metadata_config
            )
        return self._index

    def file_slices(self, partitions: Collection[str] | None = None) -> list[FileSlice]:
        """The newest file slice of every file group, from the metadata table or else from listing storage.

        ``partitions``: partition paths, which need not exist; None for all.
        """
        index = self.metadata_table
        if index is None:
            return file_slices(self.storage, self.timeline, partitions=partitions)
        known = index.partition_paths()
        listed = index.reader.listed(sorted(known if partitions is None else known.intersection(partitions)))
        return [s for path, files in listed.items() for s in slices_of_partition(path, files, self.timeline)]

    def refresh(self, *, begins: bool = False) -> bool:
        """List the end of the timeline. True if another writer has written, or the newest commit is gone, as when an
        older copy of the table was put in its place: file slices and schema may have changed. One that fails changes
        nothing, and the next one finds all of it.

        ``begins``: an instant begins next. What ``check_config`` looks at is asked for at the same time.
        """
        last, looked_at = self.timeline.last_completed(), None
        self._looked_at = None
        with self._or_behind(), self.timeline.taken_in():
            if begins:
                changed = list[Instant]()
                looks = partial(self.storage.stat, PROPERTIES_PATH), lambda: changed.extend(self.timeline.refresh())
                looked_at = (at_once(looks, reads=self.storage)[0],)
            else:
                changed = self.timeline.refresh()
            news = self._follow_listing(last, changed)
        self._looked_at = looked_at
        return news

    def _follow_listing(self, last: Instant | None, changed: Sequence[Instant], *, whole: bool = False) -> bool:
        """Follow what a listing has changed; what rollbacks have taken back is looked for from now on. Returns as
        ``_follow``. ``last``: the newest commit before it. ``whole``: of the whole timeline, whose commits are all
        examined."""
        taken_back = self._behind or (not changed and self.timeline.last_completed() != last)
        rolled_back = any(instant.action == ROLLBACK for instant in changed)
        among = self.timeline.completed() if whole or rolled_back else changed  # one may have been taken in before
        writes = [instant for instant in among if instant.completed and instant.action in WRITE_ACTIONS]
        rollbacks = rolled_back_since(self.storage, self.timeline, writes)
        self.timeline.note_rollbacks(rollbacks)
        late = [write for write in writes if write.requested_time in rollbacks]
        return self._follow(changed, late, anew=taken_back or (whole and bool(late)))

    def _follow(self, changed: Sequence[Instant], late: Sequence[Instant], *, anew: bool = False) -> bool:
        """Follow the timeline, all reads first. Returns whether anything is another than before.

        Args:
            changed: what others have changed.
            late: commits that are not to be believed.
            anew: whether to look even if nothing was changed.
        """
        self._observe_times()
        if late:
            # Readers believe it until it is gone: of a replacecommit they see neither the old files nor the new ones.
            self.timeline.archived(late)
            changed = [instant for instant in changed if instant not in late]
        if changed or anew:
            schema, read_only = self._read_schema()
            counted, config = self._counted_buckets()
            self.generation += 1
            overtaking = (self.action, *_OVERTAKING)
            self.begun.take_in(i for i in changed if i.action in overtaking and (i.completed or i.action == RESTORE))
            self.schema, self._read_only_type = schema, read_only
            self._settled, self.config = self._settled and counted == self.config, config
            self._index = None
        self._late += late
        self._behind = False
        return bool(changed) or anew

    def delete_late_completions(self) -> bool:
        """List the whole timeline, and delete the completed files that appeared late (``actions.late_completion``).
        Returns whether the timeline is another one than before.

        Call it under the table's lock. Raises StorageError.
        """
        last = self.timeline.last_completed()
        with self._or_behind(), self.timeline.taken_in():
            news = self._follow_listing(last, self.timeline.refresh(whole=True), whole=True)
        delete_late(self.storage, (*completed_again(self.timeline, self.action), *self._late))
        self._late = []
        return news

    def reload(self) -> None:
        """Read the timeline anew after a restore: the instants that it took back are gone, with their columns and other
        metadata. Raises CorruptDataError, StorageError."""
        with self._or_behind(), self.timeline.taken_in():
            self.timeline.reload()
            self._follow((), (), anew=True)

    def extra_values(self, key: str, *further: str) -> Mapping[str, str]:
        """The value of a key of extraMetadata in the newest completed commit that has it, archived ones included, and
        the values of ``further`` keys in the same commit.

        The newest commit is the one that completed last: it knows what all others recorded. In archived commits each
        key has its newest value of any commit. Keys without a value are left out; without a value of ``key`` the result
        is empty.
        """
        for instant in self.timeline.newest_first():
            extra = self.timeline.extra_of(instant, key)
            if extra is not None:
                return {name: extra[name] for name in (key, *further) if name in extra}
        return self.timeline.history().extra_values(key, *further)

    def schema_as_of(self, instant: str) -> pa.Schema:
        """The table's columns as of a requested time: those of the newest commit at or before it."""
        columns = columns_as_of(self.timeline, instant)
        return self.schema if columns is None else columns

    def newest_avro_schema(self) -> str:
        """The Avro schema of the columns as of the last refresh, as JSON. Errors as ``avro_schema_of``."""
        return avro_schema_of(self.config, self.timeline)

    def check_writable(self) -> None:
        """Raise UnsupportedError for a table that binlake cannot write to, by its properties or by its columns."""
        self.config.check_writable()
        if (kind := self._read_only_type) is not None:
            raise UnsupportedError(
                f"the table has a column of Avro's logical type {kind}, which binlake reads and does not write",
                do_next="write to it with Hudi",
                table=self.config.name,
            )

    def _read_schema(self) -> tuple[pa.Schema, str | None]:
        """The columns, and the type among them that is only read, if there is one."""
        return columns_of(self.newest_avro_schema())

    def _observe_times(self) -> None:
        latest = self.timeline.latest_time()
        if latest is not None and is_time(latest):
            self.clock.observe(latest)

    def take_in_buckets(self) -> None:
        """Take in the bucket counts and the hash rings that count as of the timeline. Raises CorruptDataError,
        StorageError."""
        with self._or_behind():
            counted, config = self._counted_buckets()
            self._settled, self.config = self._settled and counted == self.config, config

    def _counted_buckets(self) -> tuple[TableConfig, TableConfig]:
        """The configuration with the bucket counts that count, and with the hash rings too."""
        counted = with_buckets_of(self.config, self.timeline)
        return counted, self._rings.taken_in(counted, self.timeline)

    def begin_partitions(self, partition_paths: tuple[str, ...]) -> None:
        """Begin the hash rings of new partitions. Errors as ``Rings.begin``."""
        self._rings.begin(self.config, partition_paths)

    def settle_buckets(self) -> None:
        """Bring ``hoodie.properties`` in line with the buckets that count (``bucket_counts``): a run may have died
        between the replacecommit and the properties, or the table was restored. Raises LakeError."""
        if not self._settled:
            with self.exclusively():
                self.adopt(self.config)

    def adopt(self, config: TableConfig) -> None:
        """Replace ``hoodie.properties``. Call it under the lock. Raises StorageError."""
        write_properties(self.storage, config)
        self.config, self._settled = config, True
        self.note_properties()

    def note_properties(self) -> None:
        """Take ``hoodie.properties`` as they are for those of this object, which has changed them."""
        self._index = None
        self._properties, self._looked_at = self.storage.stat(PROPERTIES_PATH), None

    def forget_index(self) -> None:
        """Open the metadata table anew on its next use."""
        self._index = None

    def check_config(self) -> None:
        """Load the configuration again if another process changed it. Raises ConfigError for another table's,
        CorruptDataError, StorageError."""
        looked_at, self._looked_at = self._looked_at, None
        properties = self.storage.stat(PROPERTIES_PATH) if looked_at is None else looked_at[0]
        if properties is not None and properties == self._properties:
            return
        loaded, properties = load_config(self.storage)
        counted = with_buckets_of(loaded, self.timeline)
        self.config.check_same_identity(counted)
        config = self._rings.taken_in(counted.with_index_of(self.config), self.timeline)
        self._settled, self.config, self._properties = counted == loaded, config, properties
        self._index = None
        self.begun.take_in([None])  # the metadata table was added or dropped after our pending instants began
