"""The metadata table without what it keeps of files that are gone: ranges of partitions become as narrow as the files
that are left, entries of other files go, all groups are compacted, and only the newest slices stay.

Ranges of partitions only widen otherwise, and entries of columns that have left the index outlive their files. Each
step is an action of its own that can be repeated; readers of a former slice fail, and begin again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import reduce

from hudilake.errors import TransientError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.column_stats import ColumnRange, says_the_same, unknown_range, widen
from hudilake.format.timeline.instant import COMMIT
from hudilake.metadata.records.delta import DeltaRecords, FileKey, KeyedRecords
from hudilake.metadata.records.keys import bloom_key, column_stats_key
from hudilake.metadata.services import compaction
from hudilake.metadata.services.upkeep import clean, finish_cleans
from hudilake.metadata.table import MetadataTable

#: The part of a key of column statistics before those of the partition and the file: of the column.
_COLUMN_PART = len(column_stats_key("", "", "")) - len(bloom_key("", ""))


def purge(table: MetadataTable, partition_paths: Collection[str]) -> None:
    """Leave nothing of files that are gone. Call it under the data table's lock.

    Args:
        table: as of now.
        partition_paths: the data partitions whose ranges are worked out anew.

    Raises TransientError while an instant is pending whose entries are there, CorruptDataError, StorageError: then call
    again.
    """
    compaction.finish_pending(table)
    finish_cleans(table)
    if compaction.noted_pending(table):
        raise TransientError(
            "a commit of the table is pending and has entries in the metadata table",
            do_next="run it again when that writer is done; if it is dead, start it again: it rolls the commit back",
        )
    files = table.reader.files(table.reader.partition_paths())
    living = [(path, name) for path, names in files.items() for name in names]
    narrowed = DeltaRecords(table.clock.next())
    narrowed.add_partition_stats(dict(_narrower(table, files, partition_paths)))
    records: dict[MetadataPartition, KeyedRecords] = {
        **narrowed.by_partition,
        MetadataPartition.COLUMN_STATS: dict.fromkeys(_stale_statistics(table, living)),
        MetadataPartition.BLOOM_FILTERS: dict.fromkeys(_stale_filters(table, living)),
    }
    table.restate({partition: those for partition, those in records.items() if those})
    compaction.compact(table)
    newest = next((i for i in reversed(table.timeline.completed()) if i.action == COMMIT), None)
    if newest is not None:
        clean(table, newest.requested_time)
    table.refresh()


def _narrower(
    table: MetadataTable, files: Mapping[str, Collection[str]], paths: Collection[str]
) -> Iterator[tuple[tuple[str, str], ColumnRange]]:
    """The ranges of partitions that are wider than their files' ranges, by (partition path, column)."""
    if not table.keeps(MetadataPartition.PARTITION_STATS):
        return
    for path, known in table.reader.partition_ranges(table.columns, paths).items():
        of_files = table.reader.column_ranges(table.columns, [(path, name) for name in files.get(path, ())])
        for column, before in known.items():
            known_of = [of_files.get((path, name)) for name in files.get(path, ())]
            ranges = [_unknown(before) if one is None else one.get(column, _null(before)) for one in known_of]
            whole = _over(before, ranges)
            if not says_the_same(before, whole):
                yield (path, column), whole


def _unknown(of: ColumnRange) -> ColumnRange:
    return unknown_range(of.column, of.value_type, of.info)


def _null(of: ColumnRange) -> ColumnRange:
    """Of a file that is older than the column."""
    return ColumnRange(of.column, of.value_type, None, None, 1, 1, of.info)


def _over(before: ColumnRange, ranges: list[ColumnRange]) -> ColumnRange:
    """The range over those of all files; of none, one without values."""
    return reduce(lambda one, other: widen(one, other) or _unknown(before), [*ranges] or [_null(before)])


def _stale_statistics(table: MetadataTable, living: Collection[FileKey]) -> Iterator[str]:
    """The keys of statistics of files that are gone."""
    there = {column_stats_key("", *file)[_COLUMN_PART:] for file in living}
    for group in table.reader.groups.get(MetadataPartition.COLUMN_STATS, ()):
        keys = (key.decode() for key, _ in group.entries())
        yield from (key for key in keys if key[_COLUMN_PART:] not in there)


def _stale_filters(table: MetadataTable, living: Collection[FileKey]) -> Iterator[str]:
    """The keys of bloom filters of files that are gone."""
    there = {bloom_key(*file) for file in living}
    for group in table.reader.groups.get(MetadataPartition.BLOOM_FILTERS, ()):
        keys = (key.decode() for key, _ in group.entries())
        yield from (key for key in keys if key not in there)
