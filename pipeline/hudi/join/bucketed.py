"""A table whose rows lie in buckets of their record key, as a join reads it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pipeline.errors import UnsupportedError
from pipeline.hudi.definition.bucketing import Bucketing
from pipeline.hudi.definition.config import PARTITION_BUCKETS, TableConfig, expressions_of
from pipeline.hudi.definition.key_change import says_key
from pipeline.hudi.definition.keys import PartitionLayout
from pipeline.hudi.read.partition_values import plain_layout
from pipeline.hudi.read.plan import ScanPlan
from pipeline.hudi.read.query import Snapshot
from pipeline.hudi.read.table_reader import TableReader
from pipeline.hudi.table.bucket_counts import bucketing_at

_HASH_FIELD = "hoodie.bucket.index.hash.field"


@dataclass(frozen=True)
class BucketedScan:
    """A plan over a table with a bucket index.

    Args:
        table: its name, for messages.
        plan: the slices to read; its columns are those that a join gets.
        fields: the columns that are hashed to a bucket, in the order of the record key.
        bucketing: the buckets at the moment that the plan reads.
        layout: how partition paths are made from columns; None if that is not known.
    """

    table: str
    plan: ScanPlan
    fields: tuple[str, ...]
    bucketing: Bucketing
    layout: PartitionLayout | None

    @property
    def schema(self) -> pa.Schema:
        """The columns of every row."""
        return self.plan.scan.schema


def bucketed(reader: TableReader, plan: ScanPlan) -> BucketedScan:
    """The plan of a table with what places its rows in buckets.

    Args:
        reader: that made the plan, not refreshed since.
        plan: with exactly the rows that are wanted.

    Raises UnsupportedError for a table without a bucket index (``bucket``), or whose properties do not say its buckets.
    """
    plan.require_exact()
    config = reader.table.config
    _require_buckets(config)
    as_of = plan.query.as_of if isinstance(plan.query, Snapshot) else None
    bucketing = bucketing_at(config, plan.scan.reader.timeline, as_of)
    return BucketedScan(config.name, plan, hash_fields(reader), bucketing, plain_layout(config))


def hash_fields(reader: TableReader) -> tuple[str, ...]:
    """The columns that are hashed to a bucket, in the order of the record key. Raises as ``bucketed``."""
    _require_buckets(reader.table.config)
    return tuple(reader.table.config.properties()[_HASH_FIELD].split(","))


def _require_buckets(config: TableConfig) -> None:
    properties = config.properties()
    why = None
    if config.kind.hashes:
        why = "its index is consistent_bucket: a row's file group depends on the splits and merges of its partition"
    elif config.kind.index != "bucket":
        why = f"its index is {config.kind.index}"
    elif not config.bucket_count:
        why = "its properties lack the bucket count"
    elif properties.get(PARTITION_BUCKETS, "") != expressions_of(config.partition_buckets):
        why = "its bucket counts by partition are not understood"
    elif not says_key(config) or not properties.get(_HASH_FIELD):
        why = "its properties do not name the columns of its bucket key"
    if why is not None:
        raise UnsupportedError(
            f"the table cannot be joined bucket by bucket: {why}",
            do_next="use tables with the index bucket, or join frames of read_dataframe",
            table=config.name,
        )
