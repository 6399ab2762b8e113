"""File slices: the base file and the log files that hold a file group's rows at a moment.

A log file belongs to the newest base file whose instant was requested at or before the log file's commit completed:
a commit that completes while a compaction runs is in the next slice, whatever its requested time (Hudi 1.2.0,
``HoodieFileGroup.addLogFile``). Files of instants that are not completed are ignored, and so are file groups that a
completed replacecommit has replaced (clustering, insert overwrite, other buckets).

In timeline layout 1 a log file has the name of the base file that it follows, or of a pending compaction, and grows by
blocks of several commits: the blocks say which of them count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from hudilake.format.files.names import (
    PARTITION_METADATA,
    BaseFileName,
    LogFileName,
    in_partition,
    parse_base_name,
    parse_log_name,
)
from hudilake.format.timeline.timeline import FileGroupId, Timeline
from hudilake.storage.base import FileInfo, Storage


class Visibility(Protocol):
    """What decides which files are seen: a timeline, or what was recorded of one."""

    @property
    def logs_name_base(self) -> bool:
        """Whether log files are named by the instant of the base file that they follow."""
        ...

    def is_completed(self, requested_time: str) -> bool:
        """Tells whether the files of the instant are visible."""
        ...

    def completion_time(self, requested_time: str) -> str | None:
        """Returns when the write of that requested time completed; None while it is pending or unknown."""
        ...

    def replaced(self) -> Mapping[FileGroupId, str]:
        """Returns the replaced file groups, each with the requested time of the write that replaced it."""
        ...


@dataclass(frozen=True, slots=True)
class BaseFile:
    """A base file: partition path, parsed name, size in bytes."""

    partition_path: str
    name: BaseFileName
    size: int

    @property
    def path(self) -> str:
        """Relative to the table's root."""
        return in_partition(self.partition_path, str(self.name))


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file: partition path, parsed name, size in bytes."""

    partition_path: str
    name: LogFileName
    size: int

    @property
    def path(self) -> str:
        """Relative to the table's root."""
        return in_partition(self.partition_path, str(self.name))


@dataclass(frozen=True, slots=True)
class FileSlice:
    """The files to read for one file group: at most one base file, and log files in merge order."""

    partition_path: str
    file_id: str
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...]

    @property
    def base_size(self) -> int:
        """Bytes of the base file."""
        return self.base_file.size if self.base_file is not None else 0

    @property
    def log_size(self) -> int:
        """Bytes of the log files."""
        return sum(file.size for file in self.log_files)


def first_instant(piece: FileSlice) -> str:
    """The requested time of the commit that began a file slice."""
    if piece.base_file is not None:
        return piece.base_file.name.instant
    return min(file.name.instant for file in piece.log_files)


def partition_paths(storage: Storage) -> list[str]:
    """The partitions of a table, sorted: directories with ``.hoodie_partition_metadata``; "" is the root itself."""
    return sorted(_partitions_below(storage, ""))


def file_slices(
    storage: Storage, timeline: Timeline, as_of: str | None = None, partitions: Iterable[str] | None = None
) -> list[FileSlice]:
    """The latest file slice of every file group, found by listing storage.

    Args:
        storage: the table's root.
        timeline: loaded; decides which files are visible.
        as_of: only commits requested at or before this instant; None for all.
        partitions: partition paths; None for all.

    Raises CorruptDataError for a replacecommit that cannot be read, StorageError.
    """
    paths = partition_paths(storage) if partitions is None else list(partitions)
    return [s for path in paths for s in slices_of_partition(path, storage.list(path), timeline, as_of)]


def slices_of_partition(
    partition_path: str, files: Iterable[FileInfo], timeline: Visibility, as_of: str | None = None
) -> list[FileSlice]:
    """The latest file slices of one partition from its files, by file id. Arguments and errors as ``file_slices``."""
    replaced = timeline.replaced()
    bases: dict[str, list[BaseFile]] = {}
    logs: dict[str, list[LogFile]] = {}
    for info in files:
        name = info.path.rpartition("/")[2]
        if (log := parse_log_name(name)) is not None and _log_counts(log.instant, timeline, as_of):
            logs.setdefault(log.file_id, []).append(LogFile(partition_path, log, info.size))
        elif (base := parse_base_name(name)) is not None and _counts(base.instant, timeline, as_of):
            bases.setdefault(base.file_id, []).append(BaseFile(partition_path, base, info.size))
    ids = [i for i in sorted(bases.keys() | logs.keys()) if not _is_gone(replaced.get((partition_path, i)), as_of)]
    return [_latest_slice(partition_path, i, bases.get(i, []), logs.get(i, []), timeline) for i in ids]


def _latest_slice(
    partition_path: str, file_id: str, bases: list[BaseFile], logs: list[LogFile], timeline: Visibility
) -> FileSlice:
    base = max(bases, key=lambda b: b.name.instant, default=None)
    ordered = sorted(logs, key=lambda log: log.name.order)
    if base is not None:
        ordered = [log for log in ordered if _later_than(log.name.instant, timeline) >= base.name.instant]
    return FileSlice(partition_path, file_id, base, tuple(ordered))


def _later_than(instant: str, timeline: Visibility) -> str:
    """A log file belongs to base files requested at or before this time. ``instant``: that of its name."""
    return instant if timeline.logs_name_base else timeline.completion_time(instant) or ""


def _log_counts(instant: str, timeline: Visibility, as_of: str | None) -> bool:
    if timeline.logs_name_base:
        return as_of is None or instant <= as_of
    return _counts(instant, timeline, as_of)


def _counts(instant: str, timeline: Visibility, as_of: str | None) -> bool:
    return (as_of is None or instant <= as_of) and timeline.is_completed(instant)


def _is_gone(replaced: str | None, as_of: str | None) -> bool:
    """Whether a file group is not seen any more. ``replaced``: the requested time of the write that replaced it."""
    return replaced is not None and (as_of is None or replaced <= as_of)


def _partitions_below(storage: Storage, path: str) -> Iterator[str]:
    if storage.stat(in_partition(path, PARTITION_METADATA)) is not None:
        yield path
        return
    for name in storage.list_dirs(path):
        if path or not name.startswith("."):
            yield from _partitions_below(storage, in_partition(path, name))
