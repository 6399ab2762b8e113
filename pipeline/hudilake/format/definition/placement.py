"""How the file group of a row is decided, a class a way, and what follows from it; what the type of a table decides.

The table of kinds and operations in ``docs/tables.md`` and the matrix of ``tests/whole/kinds`` are checked against the
refusals here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import pyarrow as pa

from hudilake.format.definition.bucketing import (
    Bucketing,
    BucketRows,
    bucket_or_none,
    bucketing_of,
    split_by_bucket,
    split_by_partition,
)
from hudilake.format.definition.consistent import ConsistentBuckets, HashingMetadata
from hudilake.format.definition.kind_support import KindRefusal, TableOperation

#: The bucket that stands for none, of rows whose file group is looked up.
LOOKED_UP_BUCKET: Final = -2


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
    #: What it is for people, with the index for {}.
    words: ClassVar[str] = "index {}"
    #: The operations that the tables do not have.
    refused: ClassVar[Mapping[TableOperation, KindRefusal]] = {}

    def bucketing(
        self, number: int, rules: tuple[tuple[str, int], ...], rings: Mapping[str, HashingMetadata]
    ) -> Bucketing:
        """The buckets of a table. ``number``, ``rules`` and ``rings`` as in ``TableConfig``."""
        return bucketing_of(number, rules)

    def bucket_of(self, bucketing: Bucketing, partition_path: str, file_id: str) -> int | None:
        """The bucket whose rows alone a file group may hold; None if it may hold any row."""
        return None

    def split(
        self, keys: pa.Array | pa.ChunkedArray, partition_paths: pa.Array, bucketing: Bucketing, fields: Sequence[str]
    ) -> BucketRows:
        """The file groups of n rows, as far as keys say them. Arguments as in ``split_by_bucket``."""
        return split_by_bucket(bucketing, keys, fields, partition_paths)

    def keyed(self, key: tuple[str, ...], order: str) -> tuple[tuple[str, ...], str]:
        """The key columns and the ordering column that rows have."""
        return key, order

    def refusal(self, operation: TableOperation, index: str) -> KindRefusal | None:
        """Why the tables do not have an operation; None if they have it. ``index``: its name, for the text."""
        match operation:
            case TableOperation.CLUSTERING:
                return self._clustering()
            case TableOperation.REBUCKET:
                return _no_buckets(index)
            case TableOperation.SPLIT:
                return _no_ring(index)
            case TableOperation.ERASURE if index == "external":
                return _IN_A_STORE
            case _:
                return self.refused.get(operation)

    def _clustering(self) -> KindRefusal | None:
        return _UNKNOWN_INDEX


class InBuckets(Placement):
    """The bucket is computed from the key; the bucket counts change by a rebucket alone."""

    computed = True

    def bucket_of(self, bucketing: Bucketing, partition_path: str, file_id: str) -> int | None:
        """Also None for a file group of no bucket."""
        return bucket_or_none(bucketing, partition_path, file_id)

    def refusal(self, operation: TableOperation, index: str) -> KindRefusal | None:
        """Its buckets can be counted anew."""
        return None if operation is TableOperation.REBUCKET else super().refusal(operation, index)

    def _clustering(self) -> KindRefusal | None:
        return _IN_BUCKETS


class OnRing(InBuckets):
    """The bucket is the node of a hash ring."""

    hashes = True

    def bucketing(
        self, number: int, rules: tuple[tuple[str, int], ...], rings: Mapping[str, HashingMetadata]
    ) -> Bucketing:
        """The nodes of the rings."""
        return ConsistentBuckets(number, rings)

    def refusal(self, operation: TableOperation, index: str) -> KindRefusal | None:
        """Its nodes are split and merged one by one."""
        match operation:
            case TableOperation.SPLIT:
                return None
            case TableOperation.REBUCKET:
                return _no_buckets(index)
            case _:
                return super().refusal(operation, index)


class LookedUp(Placement):
    """An index says where the row of a key is; rows of new keys fill small file groups."""

    looks_up = True
    restates_deletes = False  # they are kept for the whole table: the next row of a key may go to any file group

    def split(
        self, keys: pa.Array | pa.ChunkedArray, partition_paths: pa.Array, bucketing: Bucketing, fields: Sequence[str]
    ) -> BucketRows:
        """Only the partitions, with the bucket LOOKED_UP_BUCKET."""
        return split_by_partition(partition_paths, LOOKED_UP_BUCKET)

    def refusal(self, operation: TableOperation, index: str) -> KindRefusal | None:
        """The text names the index."""
        if (why := _OF_LOOKUP.get(operation)) is not None:
            return KindRefusal(f"{why.why} (index {index})", why.do_next)
        return super().refusal(operation, index)

    def _clustering(self) -> None:
        return


class OpenGroups(Placement):
    """Rows have no key and go to any open file group."""

    appends = True
    words = "append: rows have no key"
    restates_deletes = False

    def keyed(self, key: tuple[str, ...], order: str) -> tuple[tuple[str, ...], str]:
        """Returns none: rows have neither."""
        return (), ""

    def _clustering(self) -> None:
        return


_IN_BUCKETS = KindRefusal(
    "rows may not leave their bucket", "set compaction.order_by: compaction lays out the rows of each base file"
)
_UNKNOWN_INDEX = KindRefusal(
    "the table does not say its index, and rows of buckets may not leave them",
    "open it with settings that name its index",
)
OpenGroups.refused = {
    TableOperation.BACKFILL: KindRefusal(
        "rows of a table without a key cannot be found by a backfill",
        "give the table a key at the source, or compute the column in the settings (columns.computed)",
    ),
    TableOperation.REVERT: KindRefusal(
        "the rows have no key, so they cannot be told apart",
        "leave the table out: name the others by --table",
    ),
    TableOperation.VERIFY: KindRefusal(
        "it is an append table: its rows have no key and stay when those of the source are changed",
        "compare the counts with a query at the source",
    ),
    TableOperation.RESYNC: KindRefusal(
        "an append table cannot be fetched anew: its rows have no key, and none of them would be replaced",
        "load it again under a new path",
    ),
}
_OF_LOOKUP: Final = {
    TableOperation.BACKFILL: KindRefusal(
        "a backfill finds rows by their buckets, and this table looks keys up",
        "compute the column in the settings (columns.computed), or send the rows through the stream",
    ),
    TableOperation.REVERT: KindRefusal(
        "a revert finds rows by their buckets, and this table looks keys up",
        "leave the table out: name the others by --table",
    ),
    TableOperation.KEY_CHANGE: KindRefusal(
        "this table looks keys up, and its index holds the former keys", "load the table again under a new path"
    ),
}
_IN_A_STORE: Final = KindRefusal(
    "the keys of the table are in an external index, too, whose store keeps what was deleted",
    "delete the store, set another index in the settings, and erase then",
)
#: Of every copy-on-write table.
NO_LOGS: Final = KindRefusal(
    "a copy-on-write table has no log files to compact", "leave the table out: its commits write base files"
)


def _no_buckets(index: str) -> KindRefusal:
    return KindRefusal(
        f"the table has no fixed buckets (index {index})", "only tables with the index bucket have a bucket count"
    )


def _no_ring(index: str) -> KindRefusal:
    return KindRefusal(
        f"the table has no hash ring (index {index})",
        "give --buckets, or make the table with the index consistent_bucket",
    )
