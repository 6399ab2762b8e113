"""The changes of the metadata table by one action on the data table, and their records."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.bloom import SIMPLE, BloomFilter
from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.files.file_group_write import KeyChanges
from hudilake.metadata.records.keys import (
    ALL_PARTITIONS,
    bloom_key,
    column_stats_key,
    partition_identifier,
    partition_stats_key,
)
from hudilake.metadata.records.records import (
    BloomRecord,
    RecordType,
    StatsRecord,
    encode_bloom,
    encode_listing,
    encode_stats,
)

#: Records of a metadata partition by key; None deletes the key.
KeyedRecords = dict[str, bytes | None]
#: A data file: partition path ("" in a table without partitions) and bare name.
FileKey = tuple[str, str]
#: A file group of the data table: partition path and file id.
Group = tuple[str, str]

_OPEN_FILTER = BloomFilter.open().to_base64()


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A data file that a commit or compaction wrote.

    ``ranges``: the statistics of its columns over the rows that have them; None for a file that must not be indexed, so
    that no reader skips it. ``lacking``: indexed columns that some of its rows lack, because they are partial.
    ``bloom``: (kind, base64 text) of a base file's record key filter.
    """

    partition_path: str
    name: str
    size: int
    ranges: tuple[ColumnRange, ...] | None = None
    bloom: tuple[str, str] | None = None
    lacking: frozenset[str] = frozenset()


@dataclass(frozen=True)
class MetadataDelta:
    """Files added and files deleted, the latter as (partition path, bare name).

    ``keys``: the record keys that get another place, or none; empty for an action that moves no row. ``listed``: files
    that are listed and nothing more: change logs, which no reader of rows reads.
    """

    added: tuple[AddedFile, ...] = ()
    deleted: tuple[FileKey, ...] = ()
    keys: tuple[KeyChanges, ...] = ()
    listed: tuple[AddedFile, ...] = ()

    def unordered_columns(self) -> set[str]:
        """Columns with a NaN in an added file: they cannot stay in the index.

        Hudi Spark caches the statistics it filters, and the ranges by which Spark's cache skips ignore NaN (measured:
        rows vanish under ``x > 1``).
        """
        ranges = (item for file in self.added for item in file.ranges or ())
        return {item.column for item in ranges if isinstance(item.max, float) and math.isnan(item.max)}

    def partition_paths(self) -> set[str]:
        """The data partitions touched."""
        return {file.partition_path for file in (*self.added, *self.listed)} | {path for path, _ in self.deleted}


@dataclass
class DeltaRecords:
    """Collects the records of one action, metadata partition by metadata partition."""

    instant: str
    by_partition: dict[MetadataPartition, KeyedRecords] = field(default_factory=lambda: defaultdict(dict))

    def add_listings(self, delta: MetadataDelta, new_partitions: Collection[str]) -> None:
        """Files: added files with their sizes, tombstones of deleted files; ``__all_partitions__`` if it grows."""
        listings: dict[str, dict[str, int | None]] = defaultdict(dict)
        for file in (*delta.added, *delta.listed):
            listings[partition_identifier(file.partition_path)][file.name] = file.size
        for path, name in delta.deleted:
            listings[partition_identifier(path)][name] = None
        records = self.by_partition[MetadataPartition.FILES]
        for identifier, files in listings.items():
            records[identifier] = encode_listing(RecordType.FILES, files)
        if new_partitions:
            names = dict.fromkeys(map(partition_identifier, sorted(new_partitions)), 0)
            records[ALL_PARTITIONS] = encode_listing(RecordType.ALL_PARTITIONS, names)

    def add_column_stats(
        self, delta: MetadataDelta, columns: Collection[str], older: Iterable[tuple[FileKey, ColumnRange]] = ()
    ) -> None:
        """Statistics of added files over the indexed columns, and of older files; those of deleted files are
        deleted."""
        records, indexed = self.by_partition[MetadataPartition.COLUMN_STATS], set(columns)
        for file in delta.added:
            for item in file.ranges or ():
                if item.column in indexed:
                    key = column_stats_key(item.column, file.partition_path, file.name)
                    records[key] = encode_stats(RecordType.COLUMN_STATS, StatsRecord(file.name, item))
        for (path, name), item in older:
            record = StatsRecord(name, item)
            records[column_stats_key(item.column, path, name)] = encode_stats(RecordType.COLUMN_STATS, record)
        for path, name in delta.deleted:
            for column in columns:
                records[column_stats_key(column, path, name)] = None

    def add_partition_stats(self, ranges: Mapping[tuple[str, str], ColumnRange | None]) -> None:
        """Whole statistics of (partition path, column), which replace the earlier ones; None deletes them."""
        records = self.by_partition[MetadataPartition.PARTITION_STATS]
        for (path, column), item in ranges.items():
            key = partition_stats_key(column, path)
            if item is None:
                records[key] = None
            else:
                records[key] = encode_stats(RecordType.PARTITION_STATS, StatsRecord(path, item, tight=True))

    def add_bloom_filters(self, delta: MetadataDelta, outgrown: Collection[FileKey]) -> None:
        """Filters of added base files; those of deleted base files are deleted, those of outgrown ones rule nothing
        out.

        An outgrown file keeps a record, because Hudi's lookup logs an error for every file without one.
        """
        records = self.by_partition[MetadataPartition.BLOOM_FILTERS]
        filters = {(file.partition_path, file.name): file.bloom for file in delta.added if file.bloom is not None}
        filters.update(dict.fromkeys(outgrown, (SIMPLE, _OPEN_FILTER)))
        for key, (kind, text) in filters.items():
            records[bloom_key(*key)] = encode_bloom(BloomRecord(kind, self.instant, text.encode("ascii")))
        for key in base_files(delta.deleted):
            records[bloom_key(*key)] = None


def base_files(files: Iterable[FileKey]) -> list[FileKey]:
    """Those of the files that are base files: log files' names begin with a dot."""
    return [(path, name) for path, name in files if not name.startswith(".")]
