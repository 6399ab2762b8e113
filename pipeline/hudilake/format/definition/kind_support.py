"""The operations that tables of a kind do not have, and why: the one home of these refusals.

The table of kinds and operations in ``docs/tables.md`` and the matrix of ``tests/whole/kinds`` are checked against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hudilake.errors import UnsupportedError
from hudilake.format.definition.kind import UNKNOWN, TableKind


class Operation(StrEnum):
    """An operation that some kinds of tables do not have."""

    COMPACTION = "compaction"
    CLUSTERING = "clustering"
    REBUCKET = "rebucket"
    SPLIT = "splits and merges of buckets"
    BACKFILL = "backfill"
    REVERT = "revert"
    KEY_CHANGE = "another key"
    VERIFY = "verify and repair"
    RESYNC = "resync"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a kind of table does not have an operation, and what to do instead."""

    why: str
    do_next: str


def refusal(kind: TableKind, operation: Operation) -> Refusal | None:
    """Why tables of this kind do not have an operation; None if they have it."""
    match operation:
        case Operation.COMPACTION:
            return _NO_LOGS if kind.copies else None
        case Operation.CLUSTERING:
            if kind.index == UNKNOWN:
                return _UNKNOWN_INDEX
            return _IN_BUCKETS if kind.computed else None
        case Operation.REBUCKET:
            return None if kind.index == "bucket" else _no_buckets(kind)
        case Operation.SPLIT:
            return None if kind.hashes else _no_ring(kind)
        case _ if kind.appends:
            return _OF_APPEND.get(operation)
        case _ if kind.looks_up:
            why = _OF_LOOKUP.get(operation)
            return None if why is None else Refusal(f"{why.why} (index {kind.index})", why.do_next)
        case _:
            return None


def refuse(kind: TableKind, operation: Operation, table: str) -> None:
    """Raise UnsupportedError if tables of this kind do not have an operation. ``table``: its name, for the error."""
    if (found := refusal(kind, operation)) is not None:
        raise UnsupportedError(found.why, do_next=found.do_next, table=table)


_NO_LOGS = Refusal(
    "a copy-on-write table has no log files to compact", "leave the table out: its commits write base files"
)
_IN_BUCKETS = Refusal(
    "rows may not leave their bucket", "set compaction.order_by: compaction lays out the rows of each base file"
)
_UNKNOWN_INDEX = Refusal(
    "the table does not say its index, and rows of buckets may not leave them",
    "open it with settings that name its index",
)
_OF_APPEND = {
    Operation.BACKFILL: Refusal(
        "rows of a table without a key cannot be found by a backfill",
        "give the table a key at the source, or compute the column in the settings (columns.computed)",
    ),
    Operation.REVERT: Refusal(
        "the rows have no key, so they cannot be told apart",
        "leave the table out: name the others by --table",
    ),
    Operation.VERIFY: Refusal(
        "it is an append table: its rows have no key and stay when those of the source are changed",
        "compare the counts with a query at the source",
    ),
    Operation.RESYNC: Refusal(
        "an append table cannot be fetched anew: its rows have no key, and none of them would be replaced",
        "load it again under a new path",
    ),
}
_OF_LOOKUP = {
    Operation.BACKFILL: Refusal(
        "a backfill finds rows by their buckets, and this table looks keys up",
        "compute the column in the settings (columns.computed), or send the rows through the stream",
    ),
    Operation.REVERT: Refusal(
        "a revert finds rows by their buckets, and this table looks keys up",
        "leave the table out: name the others by --table",
    ),
    Operation.KEY_CHANGE: Refusal(
        "this table looks keys up, and its index holds the former keys", "load the table again under a new path"
    ),
}


def _no_buckets(kind: TableKind) -> Refusal:
    return Refusal(
        f"the table has no fixed buckets (index {kind.index})", "only tables with the index bucket have a bucket count"
    )


def _no_ring(kind: TableKind) -> Refusal:
    return Refusal(
        f"the table has no hash ring (index {kind.index})",
        "give --buckets, or make the table with the index consistent_bucket",
    )
