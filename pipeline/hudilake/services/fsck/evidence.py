"""A table's state on storage, read without trust: no damaged file makes this module fail."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from hudilake.clock import now_ms
from hudilake.commit.clean import pending_cleans, read_plan
from hudilake.commit.late_completion import rolled_back_by
from hudilake.commit.savepoint_record import read_savepoint
from hudilake.errors import ConfigError, CorruptDataError, LakeError
from hudilake.format.definition.config import CREATE_SCHEMA, PROPERTIES_BACKUP_PATH, TableConfig
from hudilake.format.definition.properties import PROPERTIES_PATH
from hudilake.format.definition.schema import META_FIELDS, arrow_schema, value_schema
from hudilake.format.digest.content_sum import NOTHING, ContentSum
from hudilake.format.files.names import (
    TEMP_PATH,
    BaseFileName,
    ChangeLogName,
    LogFileName,
    in_partition,
    parse_base_name,
    parse_change_log_name,
    parse_log_name,
)
from hudilake.format.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata
from hudilake.format.timeline.history import History
from hudilake.format.timeline.instant import ROLLBACK, SAVEPOINT, TIMELINE_PATH, Instant, parse_name
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.records.layout import METADATA_PATH
from hudilake.services.fsck.findings import Check, Finding, Severity
from hudilake.storage.base import FileInfo, Storage, StorageNotFoundError
from hudilake.table.bucket_counts import with_buckets_of
from hudilake.table.rings import Rings

#: The time without a change of an instant or a file after which its writer counts as dead.
GRACE_MS = 3600 * 1000
_HIDDEN = ".hoodie/"
#: Before layout 2 the timeline was ``.hoodie`` itself.
_OLD_INSTANT = re.compile(r"[0-9]{14,17}\.[a-z]+(\.(requested|inflight))?$")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A base or log file, or a change log, on storage."""

    partition_path: str
    name: BaseFileName | LogFileName | ChangeLogName
    info: FileInfo

    @property
    def path(self) -> str:
        """Relative to the table's root."""
        return self.info.path

    @property
    def key(self) -> tuple[str, str]:
        """Its key in the metadata table: partition path, bare name."""
        return self.partition_path, str(self.name)


@dataclass
class Evidence:
    """One listing of a table. The timeline is read first, so a file of a later commit is young and never counts as
    dead.

    ``bodies`` and ``archived``: commit metadata by requested time. ``unreadable``: completed writes with an unreadable
    file. ``findings``: errors during the listing.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    files: dict[str, FileInfo]
    grace_ms: int = GRACE_MS
    bodies: dict[str, CommitMetadata] = field(default_factory=dict)
    archived: dict[str, CommitMetadata] = field(default_factory=dict)
    unreadable: dict[str, Instant] = field(default_factory=dict)
    history_readable: bool = True
    findings: list[Finding] = field(default_factory=list)
    _columns: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def gather(cls, storage: Storage, grace_ms: int = GRACE_MS) -> Evidence:
        """Read configuration and timeline, list everything. Raises ConfigError if there is no table, StorageError."""
        findings: list[Finding] = []
        config = _config(storage, findings)
        config.refuse_older("fsck", parquet=True)
        timeline = Timeline.load(storage)
        try:
            config = with_buckets_of(config, timeline)
            config = Rings(storage).taken_in(config, timeline)
        except CorruptDataError as error:  # of another file: the timeline's check reports it, or that of the rings
            if error.where.get("path") == PROPERTIES_PATH:
                findings.append(
                    Finding(Severity.ERROR, Check.CONFIG, error.what, PROPERTIES_PATH, advice=error.do_next)
                )
        files = {info.path: info for info in storage.walk("")}
        evidence = cls(storage, config, timeline, files, grace_ms, findings=findings)
        evidence._read_commits()
        evidence._read_history()
        return evidence

    def _read_commits(self) -> None:
        for instant in self.timeline.completed():
            try:
                self.bodies[instant.requested_time] = CommitMetadata.from_bytes(
                    self.storage.read(instant.path), instant.path
                )
            except (CorruptDataError, StorageNotFoundError):
                self.unreadable[instant.requested_time] = instant

    def _read_history(self) -> None:
        try:
            for old in self.timeline.history().commits():
                body = CommitMetadata.from_bytes(old.metadata, f"history of {old.requested_time}")
                self.archived[old.requested_time] = body
        except (LakeError, pa.ArrowException, OSError) as error:
            self.history_readable = False
            self.timeline._history = History(self.storage, ())  # later questions to it must not fail again
            self.findings.append(
                Finding(
                    Severity.ERROR,
                    Check.TIMELINE,
                    f"the archived timeline cannot be read: {error}",
                    f"{TIMELINE_PATH}/history",
                    advice="restore it from a copy; without it, old log files may belong to the wrong file slice",
                )
            )

    @cached_property
    def data_files(self) -> list[DataFile]:
        """Every base and log file, by path."""
        files = []
        for path, info in sorted(self.files.items()):
            if path.startswith(_HIDDEN):
                continue
            partition, _, bare = path.rpartition("/")
            name = parse_log_name(bare) or parse_base_name(bare)
            if name is not None:
                files.append(DataFile(partition, name, info))
        return files

    @cached_property
    def change_logs(self) -> list[DataFile]:
        """Every change log, by path."""
        parts = [
            (path.rpartition("/"), info) for path, info in sorted(self.files.items()) if not path.startswith(_HIDDEN)
        ]
        named = [(partition, parse_change_log_name(bare), info) for (partition, _, bare), info in parts]
        return [DataFile(partition, name, info) for partition, name, info in named if name is not None]

    @cached_property
    def visible(self) -> list[DataFile]:
        """The data files that readers use."""
        return [file for file in self.data_files if self.timeline.is_completed(file.name.instant)]

    @cached_property
    def replaced(self) -> set[tuple[str, str]]:
        """Partition path and file id of the file groups that readable commits have replaced."""
        bodies = [*self.bodies.values(), *self.archived.values()]
        return {(path, name) for body in bodies for path, names in (body.replaced or {}).items() for name in names}

    @cached_property
    def schema(self) -> pa.Schema | None:
        """The table's columns; None if no readable commit and no property has them."""
        schemas = [body.extra.get(SCHEMA_KEY) for _, body in sorted({**self.archived, **self.bodies}.items())]
        text = next((t for t in reversed(schemas) if t), self.config.extra.get(CREATE_SCHEMA))
        return value_schema(arrow_schema(text)) if text else None

    def recorded_contents(self, file: DataFile) -> ContentSum | None:
        """What a file shall hold, as its commit recorded it; None if no readable commit says it.

        A base file that its commit does not name begins a file group of an indexed table, and is empty.
        """
        body = self.bodies.get(file.name.instant) or self.archived.get(file.name.instant)
        if body is None:
            return None
        named = next((stat for stat in body.stats if stat.path == file.path), None)
        if named is not None:
            return named.contents
        says = any(stat.contents is not None for stat in body.stats)
        return NOTHING if says and isinstance(file.name, BaseFileName) else None

    def columns_at(self, instant: str) -> frozenset[str] | None:
        """The table's columns, meta fields included, as the commit of an instant recorded them; None where it does not
        tell them."""
        body = self.bodies.get(instant) or self.archived.get(instant)
        text = body.extra.get(SCHEMA_KEY) if body is not None else None
        if text is None:
            return None
        if text not in self._columns:
            self._columns[text] = frozenset((*META_FIELDS, *value_schema(arrow_schema(text)).names))
        return self._columns[text]

    @cached_property
    def rolled_back(self) -> set[str]:
        """Requested times that a completed rollback of the active timeline names."""
        return rolled_back_times(self.storage, self.timeline)

    @cached_property
    def held(self) -> set[str]:
        """The paths that readable savepoints hold."""
        paths: set[str] = set()
        for completed in self.timeline.completed_actions({SAVEPOINT}):
            with contextlib.suppress(CorruptDataError, StorageNotFoundError):  # the timeline's check reports it
                files = read_savepoint(self.storage, completed).files
                paths.update(in_partition(partition, name) for partition, names in files.items() for name in names)
        return paths

    @cached_property
    def doubt(self) -> str:
        """Why a file that no commit names may still be one of a commit: what of the timeline is missing or cannot be
        read. "" for a whole timeline, on which a writer's instant stands before its first file."""
        if not self.timeline.completed():
            return "the timeline has no completed commit"
        if self.unreadable:
            return f"the commit of {min(self.unreadable)} cannot be read"
        if not self.history_readable:
            return "the archived timeline cannot be read"
        for info in self.files.values():
            directory, _, name = info.path.rpartition("/")
            if directory == TIMELINE_PATH and not name.startswith(".") and parse_name(name) is None:
                return f"{info.path} is not an instant of this timeline layout"
            if directory == ".hoodie" and _OLD_INSTANT.match(name):
                return f"{info.path} is an instant of an older timeline layout"
        return ""

    def is_lost(self, instant: str) -> bool:
        """Whether the commit of an instant was completed, as others say, and is on the timeline no more."""
        return instant in self._named_elsewhere and instant not in self.rolled_back

    @cached_property
    def _named_elsewhere(self) -> set[str]:
        """Requested times of completed writes that commits and the metadata table's timeline name."""
        bodies = [*self.bodies.values(), *self.archived.values()]
        times = {stat.prev_commit for body in bodies for stat in body.stats if stat.prev_commit}
        for info in self.below(f"{METADATA_PATH}/{TIMELINE_PATH}"):
            instant = parse_name(info.path.rpartition("/")[2])
            if instant is not None and instant.completed:
                times.add(instant.requested_time)
        return times

    @cached_property
    def going(self) -> set[str]:
        """The paths that pending cleans are about to delete, or have deleted."""
        paths: set[str] = set()
        for clean in pending_cleans(self.timeline):
            try:
                plan = read_plan(self.storage, clean)
            except (CorruptDataError, StorageNotFoundError):
                continue  # the timeline's check reports it
            paths.update(in_partition(partition, name) for partition, names in plan.files.items() for name in names)
        return paths

    def below(self, prefix: str) -> Iterator[FileInfo]:
        """The files at or below a directory."""
        return (info for path, info in self.files.items() if path.startswith(f"{prefix}/"))

    def is_old(self, info: FileInfo) -> bool:
        """Whether no writer can still work on a file."""
        return now_ms() - info.modified_ms >= self.grace_ms

    def is_dead(self, instant: Instant) -> bool:
        """Whether nothing of a pending instant (timeline, markers, heartbeat) has changed for the grace time."""
        time = instant.requested_time
        traces = [i for p, i in self.files.items() if p.startswith(f"{TIMELINE_PATH}/{time}")]
        traces += [*self.below(f"{TEMP_PATH}/{time}"), *self.below(f".hoodie/.heartbeat/{time}")]
        traces += [i for i in [self.files.get(f".hoodie/.heartbeat/{time}")] if i is not None]
        return all(self.is_old(info) for info in traces)

    def data_path(self, partition_path: str, name: str) -> FileInfo | None:
        """A file of a partition, if it exists."""
        return self.files.get(in_partition(partition_path, name))


def rolled_back_times(storage: Storage, timeline: Timeline) -> set[str]:
    """Requested times that the readable completed rollbacks of the active timeline name."""
    times: set[str] = set()
    for rollback in timeline.completed_actions({ROLLBACK}):
        with contextlib.suppress(CorruptDataError, StorageNotFoundError):  # the timeline's check reports it
            times.update(rolled_back_by(storage, rollback))
    return times


def _config(storage: Storage, findings: list[Finding]) -> TableConfig:
    for path in (PROPERTIES_PATH, PROPERTIES_BACKUP_PATH):
        try:
            return TableConfig.from_properties(storage.read(path))
        except StorageNotFoundError:
            continue
        except CorruptDataError as error:
            findings.append(
                Finding(Severity.ERROR, Check.CONFIG, error.what, path, advice="restore it from its backup or a copy")
            )
    raise ConfigError("there is no readable Hudi table at this path", do_next="check the path", path=storage.uri)
