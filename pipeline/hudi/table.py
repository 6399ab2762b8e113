"""A table on storage, kept open by its one writer: configuration, schema, timeline, and commits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from pipeline.clock import InstantClock, now_ms, parse_instant
from pipeline.errors import ConfigError, CorruptDataError, LostOwnershipError, UnsupportedError
from pipeline.hudi.commit import CommitPlan, apply_commit, begin_instant
from pipeline.hudi.config import CREATE_SCHEMA, PROPERTIES_BACKUP_PATH, PROPERTIES_PATH, TableConfig
from pipeline.hudi.files.names import parse_log_name
from pipeline.hudi.schema import arrow_schema, avro_schema, check_evolution, value_schema
from pipeline.hudi.services.rollback import roll_back, roll_back_pending
from pipeline.hudi.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from pipeline.hudi.timeline.history import HISTORY_PATH
from pipeline.hudi.timeline.instant import DELTA_COMMIT, Instant, State
from pipeline.hudi.timeline.timeline import Timeline
from pipeline.hudi.write import WriteContext, WriteResult
from pipeline.storage.base import FileInfo, Storage, StorageNotFoundError

#: How far the timeline may lie ahead of this machine's clock before the table refuses new instants.
MAX_CLOCK_SKEW_MS = 2 * 3600 * 1000
#: Makes the timeline directory exist before the first instant: Hudi Spark fails on a table without it (measured).
_SKELETON_FILE = f"{HISTORY_PATH}/.keep"
_INSTANT = re.compile(r"^\d{17}$")


class HudiTable:
    """One writer's view of a table. Not for use from several threads at once."""

    def __init__(self, storage: Storage, config: TableConfig, timeline: Timeline, properties: FileInfo | None) -> None:
        self.storage = storage
        self.config = config
        self.timeline = timeline
        self._properties = properties
        self._clock = InstantClock()
        self._known_partitions: set[str] = set()
        self._observe_times()
        self.schema = self._read_schema()

    @staticmethod
    def exists(storage: Storage) -> bool:
        """Whether there is a table at the storage's root."""
        return storage.stat(PROPERTIES_PATH) is not None or storage.stat(PROPERTIES_BACKUP_PATH) is not None

    @classmethod
    def create(cls, storage: Storage, config: TableConfig, arrow_schema: pa.Schema) -> HudiTable:
        """Make an empty table.

        Args:
            storage: its root.
            config: what it shall be.
            arrow_schema: its columns, the ordering column and the key columns among them, without the meta fields.

        Raises UnsupportedError for a schema Hudi's readers cannot take, AlreadyExistsError if there is a table already.
        """
        _check_columns(config, arrow_schema)
        create_schema = {CREATE_SCHEMA: avro_schema(arrow_schema, config.name, with_meta=False)}
        config = replace(config, extra={**config.extra, **create_schema})
        storage.write(_SKELETON_FILE, b"")
        storage.create(PROPERTIES_PATH, config.to_properties())
        return cls.open(storage, config)

    @classmethod
    def open(cls, storage: Storage, expected: TableConfig | None = None) -> HudiTable:
        """Read a table's configuration and list its timeline.

        Args:
            storage: its root.
            expected: what the settings say it is; None takes it as it is.

        Raises ConfigError if there is no table or it is not as expected, CorruptDataError.
        """
        config, properties = _read_config(storage)
        if expected is not None:
            expected.check_same_identity(config)
        return cls(storage, config, Timeline.load(storage), properties)

    @property
    def clock(self) -> InstantClock:
        """Where all times of this table come from: one clock for its writer and its services."""
        return self._clock

    def refresh(self) -> bool:
        """List the end of the timeline. True if somebody else has written: file slices and schema are new then."""
        news = self.timeline.refresh()
        self._observe_times()
        if news:
            self.schema = self._read_schema()
        return bool(news)

    def begin(self) -> str:
        """A new inflight instant for a delta commit; returns its requested time.

        Raises ConfigError if ``hoodie.properties`` was changed into another table's or the clock is far behind the
        timeline, UnsupportedError for a table that binlake cannot write to.
        """
        self._check_config()
        self.config.check_writable()
        self._check_clock()
        inflight = begin_instant(self.storage, self._clock, DELTA_COMMIT)
        self.timeline.record(inflight)
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

        Raises LostOwnershipError, CommitUnknownError, StorageError as ``commit.apply_commit`` says, UnsupportedError
        for a schema the old files cannot be read under.
        """
        columns = value_schema(schema) if schema is not None else self.schema
        check_evolution(self.schema, columns)
        stats = _stats(instant, results)
        partitions = dict.fromkeys(stat.partition_path for stat in stats)
        plan = CommitPlan(
            inflight=self._inflight(instant),
            completion_time=self._clock.next(),
            metadata=CommitMetadata(stats, {**(extra or {}), SCHEMA_KEY: self._avro(columns)}),
            new_partitions=tuple(p for p in partitions if p not in self._known_partitions),
        )
        completed = apply_commit(self.storage, plan)
        self.timeline.record(completed)
        self.timeline.remember(completed, plan.metadata)
        self._known_partitions.update(partitions)
        self.schema = columns
        return plan.completion_time

    def abort(self, instant: str) -> None:
        """Roll back one of our own inflight instants. Raises StorageError, LostOwnershipError."""
        roll_back(self.storage, self.timeline, self._clock, self._inflight(instant))

    def rollback_pending(self) -> list[str]:
        """Roll back what dead writers left: every pending commit and delta commit, and rollbacks they did not finish.

        Returns the requested times of the commits rolled back. Pending compactions stay. The caller is the table's one
        writer: a pending instant of a living writer would be taken from it, as Hudi's own EAGER policy does.
        """
        self.timeline.refresh()
        self._observe_times()
        return roll_back_pending(self.storage, self.timeline, self._clock)

    def extra_metadata(self, key: str) -> str | None:
        """The value of a key of extraMetadata in the newest completed commit that has it, archived ones included."""
        for instant in reversed(self.timeline.completed()):
            value = self.timeline.commit_metadata(instant).extra.get(key)
            if value is not None:
                return value
        for archived in self.timeline.history().commits():
            value = CommitMetadata.from_bytes(archived.metadata, f"history/{archived.requested_time}").extra.get(key)
            if value is not None:
                return value
        return None

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

    def _inflight(self, instant: str) -> Instant:
        found = self.timeline.find(instant)
        if found is None or found.state is not State.INFLIGHT:
            raise LostOwnershipError(
                "no inflight instant of ours by that time",
                do_next="begin a new one",
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
        if latest is not None and _INSTANT.match(latest):
            self._clock.observe(latest)

    def _check_clock(self) -> None:
        latest = self.timeline.latest_time()
        ahead_ms = parse_instant(latest) - now_ms() if latest is not None and _INSTANT.match(latest) else 0
        if ahead_ms > MAX_CLOCK_SKEW_MS:
            raise ConfigError(
                f"the timeline's newest time lies {ahead_ms // 1000} s ahead of this machine's clock",
                do_next="set the clock right, then start again",
                table=self.config.name,
                instant=latest,
            )

    def _check_config(self) -> None:
        """Case: the table's configuration was changed under us."""
        found = self.storage.stat(PROPERTIES_PATH)
        if found is not None and found == self._properties:
            return
        config, self._properties = _read_config(self.storage)
        self.config.check_same_identity(config)
        self.config = config


def _read_config(storage: Storage) -> tuple[TableConfig, FileInfo | None]:
    """``hoodie.properties``, or its backup while another writer is changing it."""
    for path in (PROPERTIES_PATH, PROPERTIES_BACKUP_PATH):
        properties = storage.stat(path)
        try:
            data = storage.read(path)
        except StorageNotFoundError:
            continue
        try:
            return TableConfig.from_properties(data), properties if path == PROPERTIES_PATH else None
        except CorruptDataError:
            if path == PROPERTIES_BACKUP_PATH or storage.stat(PROPERTIES_BACKUP_PATH) is None:
                raise
    raise ConfigError("there is no Hudi table here", do_next="check the path", path=storage.uri)


def _stats(instant: str, results: Iterable[WriteResult]) -> tuple[WriteStat, ...]:
    stats = tuple(result.stat(instant) for result in results)
    names = [parse_log_name(stat.file_name) for stat in stats]
    if len({stat.path for stat in stats}) != len(stats) or any(n is None or n.instant != instant for n in names):
        raise UnsupportedError(
            "two files bear one name, or a file bears another instant: rows would be lost", instant=instant
        )
    return stats


def _check_columns(config: TableConfig, schema: pa.Schema) -> None:
    names = set(schema.names)
    needed = {*config.record_key_fields, *config.partition_fields, config.ordering_field}
    if missing := sorted(needed - names):
        raise ConfigError(f"columns {missing} are named by the table but not in its schema", table=config.name)
    if clash := sorted(name for name in names if name.startswith("_hoodie_")):
        raise UnsupportedError(f"columns {clash} bear names that Hudi keeps for itself", table=config.name)
    if len({name.lower() for name in names}) != len(schema.names):
        raise UnsupportedError("two columns differ only in case, or are the same", table=config.name)
