"""What a check of a table says: plain values, for a terminal, a log or a repair."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """ERROR: rows are lost, wrong or unreadable. WARNING: left behind, or not as it should be. INFO: for the record."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Check(StrEnum):
    """What was looked at."""

    CONFIG = "config"
    TIMELINE = "timeline"
    FILES = "files"
    CONTENT = "content"
    INDEX = "index"
    OFFSETS = "offsets"


class Repair(StrEnum):
    """The repairs that lose nothing, in the order in which they are done."""

    DISCARD_COMMIT = "take the commit back whose file is empty, with its data files"
    ROLL_BACK = "roll back the pending commits of dead writers"
    DELETE_FILE = "delete the file"
    DELETE_UNFINISHED = "delete the half-written file"
    DELETE_MARKERS = "delete the instant's markers"
    ADD_PARTITION_METADATA = "write the partition's metadata file"
    RECOVER_INDEX = "finish or undo what is pending in the metadata table"
    REBUILD_INDEX = "rebuild the metadata table from the data"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    Args:
        severity, check: how bad, and which check says so.
        what: a sentence.
        path: the file, relative to the table's root; "" in a finding about no file.
        offset: where in the file, in bytes; None for the whole file.
        instant: the requested time it belongs to; "" if none.
        repair: the safe repair; None if there is none, or it is not safe yet.
        advice: what to do where there is no safe repair.
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
        place = self.path if self.offset is None else f"{self.path} at byte {self.offset}"
        return ", ".join(part for part in (place, f"instant {self.instant}" if self.instant else "") if part)

    @property
    def next(self) -> str:
        """The safe repair, or what to do without one."""
        return f"binlake repair: {self.repair.value}" if self.repair is not None else self.advice


@dataclass(frozen=True, slots=True)
class Report:
    """All findings about a table, errors first, and how much was looked at: files read, and their bytes."""

    table: str
    findings: tuple[Finding, ...]
    files: int = 0
    bytes_read: int = 0

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(f.severity is Severity.ERROR for f in self.findings)
