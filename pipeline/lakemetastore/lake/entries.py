"""What the log of a Hudi table records: what was taken in from its timeline, and its whole state made anew.

The timeline stays the truth. An entry is the difference between the state before it and the table as it was listed
after that state was known, so entries of one log never contradict each other, whoever wrote them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from hudilake.format.files.column_stats import ColumnRange, ValueType
from hudilake.format.timeline.instant import Instant, State

#: min or max of a column (``Any`` in the record, for msgspec takes no such union).
Bound: TypeAlias = bool | int | float | str | bytes | None


class LakeInstant(msgspec.Struct, frozen=True, array_like=True):
    """An instant of the active timeline.

    Args:
        requested: its requested time.
        action: as in its file's name (a pending compaction is ``compaction``, a completed one ``commit``).
        state: ``requested``, ``inflight`` or ``completed``.
        completed: its completion time, "" if it is pending.
        operation: of a completed write, Hudi's name, such as ``UPSERT``.
        schema: of a completed write, the key of its columns in ``LakeState.texts``; "" if its body names none.
        replaced: partition path and file id of the file groups that it replaced.
    """

    requested: str
    action: str
    state: str
    completed: str = ""
    operation: str = ""
    schema: str = ""
    replaced: tuple[tuple[str, str], ...] = ()

    @property
    def instant(self) -> Instant:
        """Returns the instant in the timeline's form; it has no completion time if it is pending."""
        return Instant(self.requested, self.action, State(self.state), self.completed or None)


class FileRange(msgspec.Struct, frozen=True, array_like=True):
    """The statistics of one column of a file, as ``ColumnRange``."""

    column: str
    value_type: int
    low: Any
    high: Any
    nulls: int
    values: int
    info: str | None = None

    @classmethod
    def of(cls, found: ColumnRange) -> FileRange:
        """From the metadata table's entry."""
        kind = found.value_type
        low, high = (_storable(kind, bound) for bound in (found.min, found.max))
        return cls(found.column, int(kind), low, high, found.null_count, found.value_count, found.info)

    @property
    def range(self) -> ColumnRange:
        """Returns the statistics in the form that readers use, bounds of decimals as integers."""
        kind = ValueType(self.value_type)
        low, high = (int(b) if kind is ValueType.DECIMAL and isinstance(b, str) else b for b in (self.low, self.high))
        return ColumnRange(self.column, kind, low, high, self.nulls, self.values, self.info)


def _storable(kind: ValueType, bound: Bound) -> Bound:
    return str(bound) if kind is ValueType.DECIMAL and bound is not None else bound


class LakeFile(msgspec.Struct, frozen=True, array_like=True):
    """A base or log file of a completed write.

    Args:
        name: bare.
        size: in bytes.
        completed: when its write completed.
        ranges: the statistics of its indexed columns; empty if it has none.
    """

    name: str
    size: int
    completed: str
    ranges: tuple[FileRange, ...] = ()


class PartitionChange(msgspec.Struct, frozen=True, array_like=True):
    """The files that a partition lost and got. Those of ``added`` replace earlier ones of their names."""

    removed: tuple[str, ...] = ()
    added: tuple[LakeFile, ...] = ()


class SchemaVersion(msgspec.Struct, frozen=True, array_like=True):
    """The columns of a table from a write on, until the next version. ``schema``: their key in ``LakeState.texts``."""

    requested: str
    schema: str


class TakenIn(msgspec.Struct, frozen=True, tag="taken", omit_defaults=True):
    """What the timeline says that the state did not have.

    Args:
        instants: new ones, and those in a new state.
        gone: requested time and action of those that left the active timeline: archived, or rolled back.
        partitions: the changes of partitions by path.
        texts: Avro schemas by key.
        archived: the schema versions of the archived writes, if they changed.
    """

    instants: tuple[LakeInstant, ...] = ()
    gone: tuple[tuple[str, str], ...] = ()
    partitions: Mapping[str, PartitionChange] = {}
    texts: Mapping[str, str] = {}
    archived: tuple[SchemaVersion, ...] | None = None


class FullState(msgspec.Struct, frozen=True, tag="renewed", omit_defaults=True):
    """The whole state, read anew from the table. It replaces what was before.

    Args:
        uri: the table's root.
        identity: of the table at that place: another one after it was dropped and created again.
        indexed: the columns that have statistics.
        taken: everything that the table has.
    """

    uri: str
    identity: str
    indexed: tuple[str, ...]
    taken: TakenIn


class RegisteredName(msgspec.Struct, frozen=True, tag="named", omit_defaults=True):
    """The table was registered in the catalog by this name, in lower case."""

    database: str
    name: str


#: An entry of the log of a table.
LakeEntry: TypeAlias = TakenIn | FullState | RegisteredName
