"""Findings of a table check: plain values for a terminal, a log or a repair."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """ERROR: rows are lost, wrong or unreadable. WARNING: left over or irregular. INFO: no action needed."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Check(StrEnum):
    """The checked part of a table."""

    CONFIG = "config"
    TIMELINE = "timeline"
    FILES = "files"
    CONTENT = "content"
    INDEX = "index"
    OFFSETS = "offsets"


class Repair(StrEnum):
    """The repairs without data loss, in their order of execution."""

    DISCARD_COMMIT = "take the commit back whose file is empty, with its data files"
    ROLL_BACK = "roll back the pending commits of dead writers"
    FORGET_SAVEPOINT = "remove what is left of a savepoint whose maker died"
    MOVE_FILE = "move the file away"
    MOVE_UNFINISHED = "move the half-written file away"
    MOVE_MARKERS = "move the instant's markers away"
    ADD_PARTITION_METADATA = "write the partition's metadata file"
    RECOVER_INDEX = "finish or undo what is pending in the metadata table"
    REBUILD_INDEX = "rebuild the metadata table from the data"


@dataclass(frozen=True, slots=True)
class Finding:
    """One irregularity of a table.

    Args:
        severity, check: its severity, and the check that reports it.
        what: the irregularity, one sentence.
        path: the file, relative to the table's root; "" in a finding about no file.
        offset: position in the file in bytes; None for the whole file.
        instant: the requested time it belongs to; "" if none.
        repair: the safe repair; None if there is none or it is not safe yet.
        advice: the user's next step without a safe repair.

    Example:
        >>> orders.internal.storage.delete(".hoodie/timeline/" + orders.internal.timeline.last_completed().file_name)
        True
        >>> {str(finding.severity) for finding in orders.fsck().findings} <= {"error", "warning", "info"}
        True
    """

    severity: Severity
    check: Check
    what: str
    path: str = ""
    offset: int | None = None
    instant: str = ""
    repair: Repair | None = None
    advice: str = ""

    @property
    def where(self) -> str:
        """Path, offset and instant in one line."""
        location = self.path if self.offset is None else f"{self.path} at byte {self.offset}"
        return ", ".join(part for part in (location, f"instant {self.instant}" if self.instant else "") if part)

    @property
    def next(self) -> str:
        """The safe repair, or the advice without one."""
        return f"binlake repair: {self.repair.value}" if self.repair is not None else self.advice


@dataclass(frozen=True, slots=True)
class Report:
    """All findings about a table, errors first, and the number and bytes of the files read.

    Example:
        >>> report = orders.fsck()
        >>> report.errors, report.files > 0
        (0, True)
    """

    table: str
    findings: tuple[Finding, ...]
    files: int = 0
    bytes_read: int = 0

    @property
    def errors(self) -> int:
        """The number of findings that are errors."""
        return sum(f.severity is Severity.ERROR for f in self.findings)
