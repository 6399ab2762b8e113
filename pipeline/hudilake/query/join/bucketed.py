"""A table whose rows lie in buckets of their record key, as a join reads it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.definition.bucketing import Bucketing, expressions_of
from hudilake.format.definition.config import PARTITION_BUCKETS, TableConfig
from hudilake.format.definition.key_change import says_key
from hudilake.format.definition.keys import PartitionLayout
from hudilake.format.definition.kind import UNKNOWN
from hudilake.read.partition_values import plain_layout
from hudilake.read.plan import ScanPlan
from hudilake.read.query import Snapshot
from hudilake.read.table_reader import TableReader
from hudilake.table.bucket_counts import bucketing_at

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


def bucketed(reader: TableReader, plan: ScanPlan, given: Bucketing | None = None) -> BucketedScan:
    """The plan of a table with what places its rows in buckets.

    Args:
        reader: that made the plan, not refreshed since.
        plan: with exactly the rows that are wanted.
        given: the buckets of a table of another writer, whose properties do not say them.

    Raises UnsupportedError for a table without a bucket index (``bucket``), or whose properties do not say its buckets;
    ConfigError if buckets are passed that the properties say.
    """
    plan.require_exact()
    config = reader.table.config
    if given is not None and config.kind.index != UNKNOWN:
        raise ConfigError(
            "the table says its index itself", do_next="leave the argument buckets out", table=config.name
        )
    fields = hash_fields(reader, given)
    as_of = plan.query.as_of if isinstance(plan.query, Snapshot) else None
    bucketing = given or bucketing_at(config, plan.scan.reader.timeline, as_of)
    return BucketedScan(config.name, plan, fields, bucketing, plain_layout(config))


def hash_fields(reader: TableReader, given: Bucketing | None = None) -> tuple[str, ...]:
    """The columns that are hashed to a bucket, in the order of the record key. Arguments and errors as ``bucketed``."""
    config = reader.table.config
    _require_buckets(config, given)
    return tuple(config.properties()[_HASH_FIELD].split(","))


def _require_buckets(config: TableConfig, given: Bucketing | None) -> None:
    why = None if given is not None else _silence(config)
    if why is None and not (says_key(config) and config.properties().get(_HASH_FIELD)):
        why = "its properties do not name the columns of its bucket key"
    if why is not None:
        raise UnsupportedError(
            f"the table cannot be joined bucket by bucket: {why}",
            do_next="use tables with the index bucket, or join frames of read_dataframe",
            table=config.name,
        )


def _silence(config: TableConfig) -> str | None:
    """Why the properties do not say the buckets of the table; None if they do."""
    if config.kind.hashes:
        return "its index is consistent_bucket: a row's file group depends on the splits and merges of its partition"
    if config.kind.index != "bucket":
        return f"its index is {config.kind.index}"
    if not config.bucket_count:
        return "its properties lack the bucket count"
    if config.properties().get(PARTITION_BUCKETS, "") != expressions_of(config.partition_buckets):
        return "its bucket counts by partition are not understood"
    return None
