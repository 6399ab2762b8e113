"""The history of a row as lines: each says what it is about, where it was found, and why it won or lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from binlake.decode.formats.trace import Trace
from binlake.decode.order import OFFSET_BITS, OrderPlace
from binlake.hbase.formats.cell_scan import NEWEST_SCANNED
from binlake.proof.history.commits import Commit
from binlake.proof.history.verdicts import Fate
from binlake.settings import TableRules


class LineKind(StrEnum):
    """What a line is about."""

    VERSION = "version"
    SUPERSEDED = "superseded"
    NO_CHANGE = "no change"
    DDL = "ddl"
    CLEANED = "cleaned"
    QUARANTINED = "quarantined"


@dataclass(frozen=True)
class Record:
    """A Kafka record of the row: its place, transaction and time (ms since the epoch, 0 if unknown)."""

    topic: str
    partition: int
    offset: int
    trace: Trace
    source_ms: int


@dataclass(frozen=True)
class Line:
    """One line of a row's history.

    Args:
        kind: what it is about.
        found_in: where it was found: ``lake``, ``Kafka``, ``commits`` or ``quarantine``.
        why: the verdict in words.
        op: ``upsert`` or ``delete``.
        order: the ordering value; None where there is none.
        commit: the commit; None if it is not known.
        fate: of a version.
        values: the row; None for a delete.
        changed: the columns that differ from the version before.
        files: the files that hold the version.
        record: its Kafka record; None if it was not looked up or not found.
        statement: the DDL statement, or the reason of the quarantine.
    """

    kind: LineKind
    found_in: str
    why: str
    op: str = ""
    order: int | None = None
    commit: Commit | None = None
    fate: Fate | None = None
    values: Mapping[str, Any] | None = None
    changed: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    record: Record | None = None
    statement: str = ""


@dataclass
class RowHistory:
    """The history of one record key at one place.

    Args:
        key, path: record key and partition path.
        file_group: the file id.
        lines: by ordering value, then by commit.
        notes: what is not known, and why.
    """

    key: str
    path: str
    file_group: str
    lines: list[Line] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def fate(self) -> Fate | None:
        """Whether the row is live or deleted now; None if the lake stores no version of it."""
        fates = [line.fate for line in self.lines if line.fate in (Fate.LIVE, Fate.DELETED)]
        return fates[0] if fates else None


def rank(line: Line) -> tuple[int, str, int]:
    """The order of lines: by ordering value, then by commit, then by offset."""
    offset = line.record.offset if line.record is not None else 0
    return line.order if line.order is not None else -1, line.commit.completed if line.commit else "", offset


def operation(values: Mapping[str, Any] | None) -> str:
    """The operation that leaves a row, or none."""
    return "delete" if values is None else "upsert"


def place_text(order: int | None, rules: TableRules) -> str:
    """An ordering value of a table with these rules as people read it; - for None."""
    if order is None:
        return "-"
    if rules.wide is not None:
        return f"cells as of {order}"
    if rules.cells is None:
        return str(OrderPlace.of(order))
    if order <= NEWEST_SCANNED:
        return "a scan"
    epoch, sequence = divmod(order, 1 << OFFSET_BITS)
    return f"sequence id {sequence}" + (f", epoch {epoch}" if epoch else "")
