"""Names of data files, markers and partition metadata files (table version 9)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

PARTITION_METADATA = ".hoodie_partition_metadata"
TEMP_PATH = ".hoodie/.temp"
#: What repairs took away or replaced (``services.kept``): readers look for data files outside of ``.hoodie`` only.
REPAIRS_PATH = ".hoodie/.repairs"
#: Where binlake keeps the orders of deleted rows that the format has no place for, by the ids of file groups.
TOMBSTONES_PATH = ".hoodie/.binlake/tombstones"
#: The write token of files that a retried task must overwrite: the same for every attempt.
STEADY_TOKEN = "0-0-0"  # noqa: S105 - no secret
#: That of log files with which rows of an append table are deleted: by it they are known from those of added rows.
DELETING_TOKEN = "1-0-0"  # noqa: S105 - no secret

_MARKER = ".marker.CREATE"
_LOG = re.compile(r"^\.([^._]+)_([^.]*)\.(log|archive)\.(\d+)(?:_(\d+-\d+-\d+)(\.cdc)?)?$")
_BASE = re.compile(r"^([^._]+)_(\d+-\d+-\d+)_(\d+)\.(parquet|hfile|lance)$")


@dataclass(frozen=True, slots=True)
class LogFileName:
    """``.<file id>_<instant>.log.<version>_<write token>``; the instant is that of the delta commit.

    ``write_token`` is "" where the name has none; hudi-rs ignores such files, Spark reads them (measured).
    """

    file_id: str
    instant: str
    version: int = 1
    write_token: str = STEADY_TOKEN

    def __str__(self) -> str:
        token = f"_{self.write_token}" if self.write_token else ""
        return f".{self.file_id}_{self.instant}.log.{self.version}{token}"

    @property
    def order(self) -> tuple[str, int, str]:
        """Log files of a slice are merged in this order (``HoodieLogFile.LogFileComparator``)."""
        return self.instant, self.version, self.write_token


@dataclass(frozen=True, slots=True)
class ChangeLogName:
    """``.<file id>_<instant>.log.<version>_<write token>.cdc``: what a commit of a copy-on-write table changed in a
    file group, beside its base file. No reader of rows reads it."""

    file_id: str
    instant: str
    version: int = 1
    write_token: str = STEADY_TOKEN

    def __str__(self) -> str:
        return f".{self.file_id}_{self.instant}.log.{self.version}_{self.write_token}.cdc"


@dataclass(frozen=True, slots=True)
class BaseFileName:
    """``<file id>_<write token>_<instant>.<extension>``."""

    file_id: str
    instant: str
    write_token: str = STEADY_TOKEN
    extension: str = "parquet"

    def __str__(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.instant}.{self.extension}"


def parse_log_name(name: str) -> LogFileName | None:
    """The parts of a log file's name; None for any other file, change logs (``.cdc``) included."""
    match = _LOG.match(name)
    if not match or match.group(3) != "log" or match.group(6):
        return None
    return LogFileName(match.group(1), match.group(2), int(match.group(4)), match.group(5) or "")


def parse_change_log_name(name: str) -> ChangeLogName | None:
    """The parts of a change log's name; None for any other file."""
    match = _LOG.match(name)
    if not match or match.group(3) != "log" or not match.group(6):
        return None
    return ChangeLogName(match.group(1), match.group(2), int(match.group(4)), match.group(5))


def parse_base_name(name: str) -> BaseFileName | None:
    """The parts of a base file's name; None for any other file."""
    match = _BASE.match(name)
    return BaseFileName(match.group(1), match.group(3), match.group(2), match.group(4)) if match else None


def parse_data_name(name: str) -> LogFileName | BaseFileName | None:
    """The parts of the name of a log or base file; None for any other file."""
    return parse_log_name(name) or parse_base_name(name)


def parse_written_name(name: str) -> LogFileName | BaseFileName | ChangeLogName | None:
    """The parts of the name of any file that a commit writes for a file group; None for any other file."""
    return parse_data_name(name) or parse_change_log_name(name)


def in_partition(partition_path: str, name: str) -> str:
    """The path of a file of a partition; "" is the partition of a table without partitions."""
    return f"{partition_path}/{name}" if partition_path else name


def marker_directory(instant: str) -> str:
    """The directory of the markers of an instant's files."""
    return f"{TEMP_PATH}/{instant}"


def marker_path(instant: str, partition_path: str, file_name: str) -> str:
    """The marker of a data file, written before it so that a rollback finds it.

    CREATE for log files too: from table version 8 on every commit owns its files, and Hudi's rollback refuses APPEND
    markers (``MarkerBasedRollbackStrategy``).
    """
    return f"{marker_directory(instant)}/{in_partition(partition_path, file_name)}{_MARKER}"


def marker_list(instant: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Files that stand for the markers of many data files, as Hudi's timeline server writes them: path -> bytes.

    A reader that finds the type looks for no other markers of the instant. ``paths``: of the data files.
    """
    directory = marker_directory(instant)
    lines = "".join(f"{path}{_MARKER}\n" for path in paths)
    return {f"{directory}/MARKERS.type": b"TIMELINE_SERVER_BASED", f"{directory}/MARKERS0": lines.encode()}


def marked_file(marker: str) -> str | None:
    """The data file of a marker, given relative to its instant's marker directory; None if it is not a marker."""
    file_path, dot, kind = marker.rpartition(".marker.")
    return file_path if dot and kind in ("CREATE", "MERGE", "APPEND") else None
