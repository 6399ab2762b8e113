"""Lookups in the metadata table by key: files of partitions, statistics of columns, bloom filters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from hudilake.errors import CorruptDataError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.bloom import BloomFilter
from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.files.names import in_partition
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.records.delta import FileKey
from hudilake.metadata.records.file_group import FileGroup, Make, load_file_groups
from hudilake.metadata.records.keys import (
    ALL_PARTITIONS,
    bloom_key,
    column_stats_key,
    file_group_indices,
    partition_identifier,
    partition_stats_key,
)
from hudilake.metadata.records.layout import METADATA_PATH
from hudilake.metadata.records.record_reader import Record, decode_record
from hudilake.metadata.records.records import BloomRecord, StatsRecord
from hudilake.storage.base import FileInfo, Storage


class MetadataReader:
    """Lookups over the file groups of some metadata partitions, as of the time of their listing.

    Every method raises CorruptDataError, StorageError or UnsupportedError if the index cannot be read; the caller then
    reads without it. A method raises KeyError for a partition that is not kept.
    """

    def __init__(self, groups: Mapping[MetadataPartition, list[FileGroup]]) -> None:
        self.groups = groups

    @classmethod
    def open(cls, storage: Storage, partitions: Iterable[str], data_timeline: Timeline) -> MetadataReader:
        """List the metadata table of a table.

        Args:
            storage: rooted at the data table.
            partitions: the metadata partitions its properties list; those that binlake does not know are left out.
            data_timeline: the data table's, loaded before: entries of its pending instants are ignored.
        """
        root = storage.sub(METADATA_PATH)
        timeline = Timeline.load(root)
        supported = [MetadataPartition(name) for name in partitions if name in set(MetadataPartition)]
        return cls(load_groups(root, supported, timeline, data_timeline))

    def has(self, partition: MetadataPartition) -> bool:
        """Whether that metadata partition is kept."""
        return partition in self.groups

    def partition_paths(self) -> list[str]:
        """The table's partition paths, sorted; [""] for a table without partitions that has files."""
        listing = self._listings([ALL_PARTITIONS]).get(ALL_PARTITIONS, {})
        names = [name for name, size in listing.items() if size is not None]
        return sorted("" if name == partition_identifier("") else name for name in names)

    def files(self, partition_paths: Iterable[str]) -> dict[str, dict[str, int]]:
        """For each partition path: size in bytes by file name (base and log files). An unknown partition has no
        files."""
        paths = {partition_identifier(path): path for path in partition_paths}
        listings = self._listings(list(paths))
        return {
            path: {name: size for name, size in listings.get(identifier, {}).items() if size is not None}
            for identifier, path in paths.items()
        }

    def listed(self, partition_paths: Iterable[str]) -> dict[str, list[FileInfo]]:
        """The same in the form of a storage's listing, without the times."""
        sizes_by_path = self.files(partition_paths)
        return {
            path: [FileInfo(in_partition(path, name), size, 0) for name, size in sizes.items()]
            for path, sizes in sizes_by_path.items()
        }

    def _listings(self, keys: list[str]) -> dict[str, dict[str, int | None]]:
        records = self._lookup(MetadataPartition.FILES, keys)
        return {key: record for key, record in records.items() if isinstance(record, dict)}

    def column_ranges(
        self, columns: Collection[str], files: Iterable[FileKey]
    ) -> dict[FileKey, dict[str, ColumnRange]]:
        """The statistics of those columns of those files. A file that is not indexed is not in the result; a column
        that an indexed file lacks is all null in it (see ``stats``)."""
        keys = {column_stats_key(column, *file): file for file in files for column in columns}
        ranges: dict[FileKey, dict[str, ColumnRange]] = defaultdict(dict)
        for key, record in self._lookup(MetadataPartition.COLUMN_STATS, list(keys)).items():
            if isinstance(record, StatsRecord) and not record.deleted:
                ranges[keys[key]][record.range.column] = record.range
        return dict(ranges)

    def partition_ranges(
        self, columns: Collection[str], partition_paths: Iterable[str]
    ) -> dict[str, dict[str, ColumnRange]]:
        """The statistics of those columns of whole partitions; partitions without statistics are not in the result."""
        keys = {partition_stats_key(column, path): path for path in partition_paths for column in columns}
        ranges: dict[str, dict[str, ColumnRange]] = defaultdict(dict)
        for key, record in self._lookup(MetadataPartition.PARTITION_STATS, list(keys)).items():
            if isinstance(record, StatsRecord) and not record.deleted:
                ranges[keys[key]][record.range.column] = record.range
        return dict(ranges)

    def bloom_filters(self, files: Iterable[FileKey]) -> dict[FileKey, BloomFilter]:
        """The record key filters of those base files that have one."""
        keys = {bloom_key(*file): file for file in files}
        return {
            keys[key]: BloomFilter.from_base64(record.kind, record.filter)
            for key, record in self._lookup(MetadataPartition.BLOOM_FILTERS, list(keys)).items()
            if isinstance(record, BloomRecord) and not record.deleted and record.filter
        }

    def _lookup(self, partition: MetadataPartition, keys: list[str]) -> dict[str, Record]:
        groups = self.groups[partition]
        records: dict[str, Record] = {}
        for group, group_keys in split_by_group(groups, keys).items():
            encoded = {key.encode(): key for key in group_keys}
            values = groups[group].lookup(encoded)
            records.update((encoded[key], decode_record(value)) for key, value in values.items())
        return records


def load_groups(
    root: Storage,
    partitions: Iterable[MetadataPartition],
    timeline: Timeline,
    data_timeline: Timeline,
    until: str | None = None,
) -> dict[MetadataPartition, list[FileGroup]]:
    """The file groups of those partitions; ``root`` is the metadata table's.

    An instant counts if it is completed here and not pending on the data table (``getValidInstantTimestamps``), and, if
    ``until`` is given, not after it.
    """
    pending = data_timeline.pending_times()

    def visible(instant: str) -> bool:
        in_time = until is None or instant <= until
        return in_time and instant not in pending and timeline.is_completed(instant)

    groups = {
        partition: load_file_groups(root, partition, timeline, visible, _maker(partition)) for partition in partitions
    }
    for partition, partition_groups in groups.items():
        _check_complete(partition, partition_groups)
    return groups


def _maker(partition: MetadataPartition) -> Make:
    if partition is not MetadataPartition.RECORD_INDEX:
        return FileGroup
    from hudilake.metadata.records.key_group import KeyGroup  # needs compiled loops, seconds to import

    return KeyGroup


def _check_complete(partition: MetadataPartition, groups: list[FileGroup]) -> None:
    """Raise CorruptDataError if numbers are missing. A record index by data partition may have no file group yet."""
    numbers: dict[str | None, list[int]] = defaultdict(list)
    for group in groups:
        numbers[group.owner].append(group.index)
    if any(indexes != list(range(len(indexes))) for indexes in numbers.values()) or (
        not groups and partition is not MetadataPartition.RECORD_INDEX
    ):
        raise CorruptDataError(
            "a metadata partition lacks file groups", do_next="run binlake repair", partition=partition.value
        )


def split_by_group(groups: list[FileGroup], keys: list[str]) -> dict[int, list[str]]:
    """The keys by the file group that holds them."""
    if len(groups) == 1:
        return {0: keys} if keys else {}
    split: dict[int, list[str]] = defaultdict(list)
    for key, index in zip(keys, file_group_indices(keys, len(groups)).tolist(), strict=True):
        split[index].append(key)
    return split
