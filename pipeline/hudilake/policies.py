"""What metadata tables, compaction, retention and writers of a table shall do: names, defaults, bounds, descriptions.

The settings file shows these policies as sections (``binlake.settings.tables``). The table format takes them with what
only it knows (``hudilake.format.definition.format_config``).
"""

from __future__ import annotations

from typing import Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from hudilake.validation import ColumnNames, Count, Section, Text, mistake

#: What commits of several writers of a table may do side by side.
Conflicts: TypeAlias = Literal["queue", "row", "column"]
#: How the changes of a commit are written: to log files, or by rewriting base files.
TableType: TypeAlias = Literal["merge_on_read", "copy_on_write"]
#: What a commit of a copy-on-write table keeps of each changed row for Hudi's CDC query.
ChangeLog: TypeAlias = Literal["op_key_only", "data_before", "data_before_after"]
#: How the file group of a record key is found (``hudilake.format.definition.kind``).
IndexType: TypeAlias = Literal[
    "bucket",
    "consistent_bucket",
    "bloom",
    "global_bloom",
    "simple",
    "global_simple",
    "in_memory",
    "record_index",
    "partitioned_record_index",
    "external",
    "none",
]
#: Indexes that find a record key in any partition.
GLOBAL_INDEXES: Final = frozenset({"global_bloom", "global_simple", "in_memory", "record_index", "external"})


#: The curve that puts rows of several columns into one order (``hudilake.format.layout``).
Curve: TypeAlias = Literal["linear", "z_order", "hilbert"]


class OrderPolicy(Section):
    """The order of rows in base files.

    Example:
        >>> hudilake.OrderPolicy(columns=("day", "qty"), curve="hilbert").curve
        'hilbert'
    """

    columns: ColumnNames = Field(min_length=1)
    """The columns, the most important one first."""
    curve: Curve = "z_order"
    """``linear``: by the first column, equal values by the next one. ``z_order``, ``hilbert``: rows that are near in
    all columns stand together."""
    values: Literal["sampled", "direct"] = "sampled"
    """What a curve takes of a value. ``sampled``: the number of its range; the ranges hold about equally many rows,
    by a sample. ``direct``: its first bytes."""


class MetadataPolicy(Section):
    """What a metadata table keeps besides the list of files.

    Example:
        >>> policy = hudilake.MetadataPolicy(columns=("qty",), bloom_filters=False)
        >>> schema = pa.schema({"id": pa.int64(), "qty": pa.int64()})
        >>> table = hudilake.create_table(uri, schema, key="id", order_by="qty", metadata=policy)
        >>> table.properties["hoodie.table.metadata.partitions"]
        'column_stats,files'
    """

    columns: ColumnNames | None = None
    """Columns whose ranges are kept; null takes the first 32 of the table."""
    column_stats: bool = True
    """Keep column statistics of files (and of partitions, for a partitioned table)."""
    bloom_filters: bool = True
    """Keep the record key filters of base files."""
    column_stats_file_groups: Count = 2
    """File groups of column_stats. Fixed when the metadata table is created."""
    bloom_file_groups: Count = 4
    """File groups of bloom_filters. Fixed when the metadata table is created."""
    record_index_file_groups: Count = 4
    """File groups of record_index; of each partition, with the index partitioned_record_index. Fixed when they are
    created. A million keys of ten digits need about 5 MB."""


class CompactionPolicy(Section):
    """When log files become base files, and how the base files are written. Compaction begins at the first trigger that
    is met.

    Example:
        >>> policy = hudilake.CompactionPolicy(after_commits=10, tombstone_retention_hours=0)
        >>> orders.compact(policy, now=False)
        0
    """

    after_commits: Count | None = 100
    """Due after so many commits since the last compaction was scheduled; null switches this trigger off."""
    after_minutes: float | None = Field(default=None, gt=0)
    """Due when the oldest of those commits is so old; null switches this trigger off."""
    log_ratio: float | None = Field(default=0.5, gt=0)
    """Due at this ratio of log bytes to base bytes, from 16 MiB of logs on; null switches this trigger off."""
    tombstone_retention_hours: float = Field(default=24.0, ge=0)
    """How long a delete keeps late, older events of its key out after the delete was compacted."""
    row_group_rows: Count | None = None
    """The most rows of a row group of a base file. null: 250,000; 50,000 where the rows have an order, so that readers
    skip more of them."""
    row_group_bytes: Count = 64 << 20
    """The most decoded bytes of a row group, approximately. A base file is as large as its bucket."""
    bloom_filter_fpp: float | None = Field(default=None, gt=0, lt=1)
    """Rate of false positives of the bloom filters in base files. null: 0.001; with the indexes ``bloom`` and
    ``global_bloom`` 0.000001, for they ask a filter for thousands of keys at once."""
    max_file_groups: Count | None = None
    """The most file groups that one compaction takes, those with the most log bytes first; null for all."""
    max_io_bytes: Count | None = None
    """The most bytes that one compaction reads and writes, approximately; null for no bound."""
    order_by: OrderPolicy | None = None
    """The order of the rows in a base file; null for that of the record keys. Rows stay in their file group. The base
    file gets statistics of its row groups and the page index, by which readers skip parts of it."""


class ClusteringPolicy(Section):
    """When rows are laid out anew across file groups, and how: in tables whose rows may go to any file group (append
    tables, and indexes that look keys up). Clustering begins at the first trigger that is met; if all is as by default,
    only on demand.

    Example:
        >>> schema = pa.schema({"device": pa.int64(), "at": pa.int64()})
        >>> events = hudilake.create_table(uri, schema)
        >>> _ = events.append([{"device": 2, "at": 1}, {"device": 1, "at": 2}])
        >>> order = hudilake.OrderPolicy(columns=("device",), curve="linear")
        >>> events.cluster(hudilake.ClusteringPolicy(order_by=order)).rows
        2
        >>> events.scan(["device"]).to_arrow().column("device").to_pylist()
        [1, 2]
    """

    order_by: OrderPolicy | None = None
    """The order of the rows; null keeps the order within the file groups and only makes their sizes even."""
    after_commits: Count | None = 100
    """Due after so many commits since the last clustering; null switches this trigger off."""
    after_minutes: float | None = Field(default=None, gt=0)
    """Due when the oldest of those commits is so old; null switches this trigger off."""
    select: Literal["small", "changed", "all"] = "changed"
    """Which file groups are taken. ``small``: those below ``files.small_bytes``; ``changed``: those of partitions that
    were written since the last clustering; ``all``."""
    partitions: tuple[Text, ...] = ("*",)
    """Glob patterns on partition paths: partitions to take."""
    group_bytes: Count = 2 << 30
    """The most bytes of file groups of a partition that are laid out together, by one task."""
    max_io_bytes: Count | None = None
    """The most bytes that one clustering reads, approximately; null for no bound."""
    seed: int = 0
    """Of the sample: the same rows and seed give the same files."""


class RetentionPolicy(Section):
    """How long older file slices stay: a number of commits, or a number of hours.

    Example:
        >>> orders.clean(hudilake.RetentionPolicy(commits=10)) is None  # it has fewer
        True
    """

    commits: Count | None = 300
    """Keep the states of the last so many commits and compactions."""
    hours: float | None = Field(default=None, gt=0)
    """Keep the states of so many hours, in place of ``commits``. A commit a second makes 86,400 instants a day."""

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Self:
        if (self.commits is None) == (self.hours is None):
            raise mistake("give commits or hours, the other as null")
        return self


class FileSizePolicy(Section):
    """How large base files are, in tables whose rows may go to any file group (append tables, and indexes that look
    keys up).

    Example:
        >>> hudilake.FileSizePolicy(target_bytes=64 << 20, small_bytes=32 << 20).target_bytes
        67108864
    """

    target_bytes: Count = 120 << 20
    """The size of a file that is full: further rows go to another file group."""
    small_bytes: Count = 100 << 20
    """New rows go to files smaller than this before a new file group begins."""

    @model_validator(mode="after")
    def _small_is_smaller(self) -> Self:
        if self.small_bytes > self.target_bytes:
            raise mistake("small_bytes must not be more than target_bytes")
        return self


class ExternalStorePolicy(Section):
    """The key-value store of an external index."""

    store: Literal["lmdb", "hbase"]
    """``lmdb``: files on this machine; ``hbase``: an HBase table, through its REST server."""
    path: Text | None = None
    """lmdb: a directory on a local disk."""
    url: Text | None = None
    """hbase: ``http(s)://host:port`` of the REST server."""
    table: Text = "binlake_index"
    """hbase: the table, which must exist and have the column family ``i``."""
    timeout_seconds: float = Field(default=30.0, gt=0)
    """hbase: how long a request may take."""

    @model_validator(mode="after")
    def _place_is_given(self) -> Self:
        if self.store == "lmdb" and self.path is None:
            raise mistake("lmdb needs path")
        if self.store == "hbase" and self.url is None:
            raise mistake("hbase needs url")
        return self


class LookupPolicy(Section):
    """What an index that is looked up needs besides the table."""

    in_memory_keys: Count = 5_000_000
    """in_memory: the most record keys of a table; about 100 bytes of memory each."""
    external: ExternalStorePolicy | None = None
    """external: where the keys are kept."""
