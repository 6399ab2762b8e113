"""How the file group of a row is decided, a class a way, and what follows from it; what the type of a table decides.

The table of kinds and operations in ``docs/tables.md`` and the matrix of ``tests/whole/kinds`` are checked against the
refusals here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from hudilake.format.definition.kind_support import Operation, Refusal


class Placement:
    """How the file group of a row is decided; this class: nobody knows, another writer made the table."""

    #: Whether the file group is computed from the record key alone.
    computed: ClassVar[bool] = False
    #: Whether the file groups of a partition are the nodes of a hash ring, which are split and merged.
    hashes: ClassVar[bool] = False
    #: Whether the file group is looked up when rows are written.
    looks_up: ClassVar[bool] = False
    #: Whether rows have no key: they are added and never changed.
    appends: ClassVar[bool] = False
    #: Whether a compaction restates the deletes of its log files, so that older rows that come late do not return.
    restates_deletes: ClassVar[bool] = True
    #: The operations that the tables do not have.
    refused: ClassVar[Mapping[Operation, Refusal]] = {}

    def refusal(self, operation: Operation, index: str) -> Refusal | None:
        """Why the tables do not have an operation; None if they have it. ``index``: its name, for the text."""
        match operation:
            case Operation.CLUSTERING:
                return self._clustering()
            case Operation.REBUCKET:
                return _no_buckets(index)
            case Operation.SPLIT:
                return _no_ring(index)
            case _:
                return self.refused.get(operation)

    def _clustering(self) -> Refusal | None:
        return _UNKNOWN_INDEX


class InBuckets(Placement):
    """The bucket is computed from the key; the bucket counts change by a rebucket alone."""

    computed = True

    def refusal(self, operation: Operation, index: str) -> Refusal | None:
        """Its buckets can be counted anew."""
        return None if operation is Operation.REBUCKET else super().refusal(operation, index)

    def _clustering(self) -> Refusal | None:
        return _IN_BUCKETS


class OnRing(InBuckets):
    """The bucket is the node of a hash ring."""

    hashes = True

    def refusal(self, operation: Operation, index: str) -> Refusal | None:
        """Its nodes are split and merged one by one."""
        match operation:
            case Operation.SPLIT:
                return None
            case Operation.REBUCKET:
                return _no_buckets(index)
            case _:
                return super().refusal(operation, index)


class LookedUp(Placement):
    """An index says where the row of a key is; rows of new keys fill small file groups."""

    looks_up = True
    restates_deletes = False  # they are kept for the whole table: the next row of a key may go to any file group

    def refusal(self, operation: Operation, index: str) -> Refusal | None:
        """The text names the index."""
        if (why := _OF_LOOKUP.get(operation)) is not None:
            return Refusal(f"{why.why} (index {index})", why.do_next)
        return super().refusal(operation, index)

    def _clustering(self) -> None:
        return


class Appended(Placement):
    """Rows have no key and go to any open file group."""

    appends = True
    restates_deletes = False

    def _clustering(self) -> None:
        return


_IN_BUCKETS = Refusal(
    "rows may not leave their bucket", "set compaction.order_by: compaction lays out the rows of each base file"
)
_UNKNOWN_INDEX = Refusal(
    "the table does not say its index, and rows of buckets may not leave them",
    "open it with settings that name its index",
)
Appended.refused = {
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
_OF_LOOKUP: Final = {
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
#: Of every copy-on-write table.
NO_LOGS: Final = Refusal(
    "a copy-on-write table has no log files to compact", "leave the table out: its commits write base files"
)


def _no_buckets(index: str) -> Refusal:
    return Refusal(
        f"the table has no fixed buckets (index {index})", "only tables with the index bucket have a bucket count"
    )


def _no_ring(index: str) -> Refusal:
    return Refusal(
        f"the table has no hash ring (index {index})",
        "give --buckets, or make the table with the index consistent_bucket",
    )
