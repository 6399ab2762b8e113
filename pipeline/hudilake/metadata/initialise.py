"""Initialisation of a metadata table: together with its table, or later from the existing files.

Readers ignore it until the last step, in which ``hoodie.properties`` of the table lists the metadata partitions. The
next attempt deletes the files of one that died before that step.

A store may carry out a deletion late, or once more after it was answered. Such a deletion names files. So each of a
table's successive metadata tables has a number, which is in its initial instants, and a drop leaves the files whose
names have none: the properties, which keep the number, and those of the partitions, which are the same for all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa

from hudilake.clock import InstantClock
from hudilake.commit.commit import drop_markers
from hudilake.errors import ConfigError, CorruptDataError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.properties import PROPERTIES_PATH, load_properties
from hudilake.format.files.column_stats import fits
from hudilake.format.files.names import (
    PARTITION_METADATA,
    BaseFileName,
    ChangeLogName,
    LogFileName,
    parse_change_log_name,
    parse_data_name,
)
from hudilake.format.files.view import partition_paths
from hudilake.format.timeline.instant import WRITE_ACTIONS
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.describe import describe_file
from hudilake.metadata.first_base import empty_file, groups_without_base, write_first_base
from hudilake.metadata.first_groups import first_key_groups, make_partition, publish_partition
from hudilake.metadata.indexed_columns import ColumnTypes, column_types, indexed_columns, read_definitions
from hudilake.metadata.opened_filters import outgrown_of_table
from hudilake.metadata.partition_ranges import PartitionRanges
from hudilake.metadata.records.delta import AddedFile, DeltaRecords, KeyedRecords, MetadataDelta
from hudilake.metadata.records.keys import ALL_PARTITIONS
from hudilake.metadata.records.layout import (
    INDEX_DEFINITIONS_KEY,
    INDEX_DEFINITIONS_PATH,
    METADATA_PATH,
    NUMBER_KEY,
    NUMBERS,
    dump_index_definitions,
    initial_instant,
    metadata_properties,
    with_record_index,
)
from hudilake.metadata.records.reader import MetadataReader
from hudilake.metadata.records.records import RecordType, encode_listing
from hudilake.metadata.unknown_ranges import of_files
from hudilake.storage.base import FileInfo, Storage, StorageNotFoundError, every_file

#: Data files read at once, each whole in memory.
_PARALLEL_FILES = 4
_PARALLEL_DELETIONS = 8
_PROPERTIES = f"{METADATA_PATH}/{PROPERTIES_PATH}"
#: Hadoop's local file system checks the files that it wrote against this checksum file.
_PROPERTIES_CRC_PATH = ".hoodie/.hoodie.properties.crc"


def initialise(
    storage: Storage,
    table: TableConfig,
    data_timeline: Timeline,
    clock: InstantClock,
    schema: pa.Schema,
    config: MetadataConfig,
) -> TableConfig:
    """Initialise the metadata table of a table without one; returns the table's new configuration, which lists it.

    Args:
        storage: rooted at the data table.
        table: its configuration as it is.
        data_timeline: its timeline, up to date.
        clock: its clock.
        schema: its columns.
        config: the metadata table's settings.

    Reads every data file once if statistics or filters are to be kept, and writes an empty base file to file groups
    that have none (``first_base``). Raises ConfigError if the table lists metadata partitions already or
    has pending commits, CorruptDataError, StorageError.
    """
    if table.metadata_partitions:
        raise ConfigError("the table has a metadata table already", do_next="open the table with it", table=table.name)
    if any(instant.action in WRITE_ACTIONS for instant in data_timeline.pending()):
        raise ConfigError(
            "a metadata table cannot be initialised while the table has pending commits",
            do_next="roll them back first",
            table=table.name,
        )
    partitions = kept_partitions(table, config)
    columns = indexed_columns(schema, config.columns) if MetadataPartition.COLUMN_STATS in partitions else ()
    _write_first_bases(storage, data_timeline, schema, table.name)
    delta = MetadataDelta(
        tuple(
            _described(storage, data_timeline, columns, MetadataPartition.BLOOM_FILTERS in partitions, config.bloom_fpp)
        ),
        listed=_change_logs(storage, data_timeline),
    )
    columns = _usable(columns, delta, schema)
    number = _begin_anew(storage, table.name)
    root = storage.sub(METADATA_PATH)
    records = _records_of(delta, data_timeline, column_types(schema, columns), partitions)
    for partition in partitions:
        if partition is not MetadataPartition.RECORD_INDEX:
            groups = _file_group_count(partition, config)
            make_partition(root, partition, number, groups, records[partition], clock)
    if MetadataPartition.RECORD_INDEX in partitions:
        keyed = first_key_groups(storage, root, table, data_timeline, config.record_index_file_groups)
        publish_partition(root, MetadataPartition.RECORD_INDEX, number, keyed, clock)
    defined = _define_indexes(storage, table, columns)
    extra = {**table.extra, **({INDEX_DEFINITIONS_KEY: INDEX_DEFINITIONS_PATH} if defined else {})}
    listed = replace(table, extra=extra).with_metadata_partitions(tuple(p.value for p in partitions))
    write_properties(storage, listed)
    return listed


def _define_indexes(storage: Storage, table: TableConfig, columns: tuple[str, ...]) -> bool:
    """Write ``index.json``, if the table has indexes that Hudi's readers look for in it."""
    definitions = before = read_definitions(storage)
    if columns:
        definitions = dump_index_definitions(definitions, columns)
    index = table.kind.record_index
    if index is not None or before is not None:
        definitions = with_record_index(definitions, index)
    if definitions is not None and definitions != before:
        storage.write(INDEX_DEFINITIONS_PATH, definitions)
    return bool(columns) or index is not None


def _usable(columns: tuple[str, ...], delta: MetadataDelta, schema: pa.Schema) -> tuple[str, ...]:
    """The columns without those that have a NaN, or whose older files have a type with another order."""
    types = column_types(schema, columns)
    ranges = (item for file in delta.added for item in file.ranges or ())
    out = {r.column for r in ranges if r.column in types and not fits(r, *types[r.column])} | delta.unordered_columns()
    return tuple(column for column in columns if column not in out)


def drop(storage: Storage, table: TableConfig) -> TableConfig:
    """Delete a table's metadata table; returns the table's new configuration. ``initialise`` rebuilds it."""
    bare = table.with_metadata_partitions(())
    write_properties(storage, bare)
    _delete_files(storage)
    return bare


def _begin_anew(storage: Storage, table_name: str) -> int:
    """Write the properties of the next metadata table, and delete what an earlier one has left; returns its number.

    Args:
        storage: rooted at the data table, whose properties list no metadata table.
        table_name: of the data table.
    """
    left = _files_of(storage)
    number = _next_number(storage) if left else 0
    storage.write(_PROPERTIES, metadata_properties(table_name, number))
    _delete_all(storage, left)
    return number


def _delete_files(storage: Storage) -> None:
    """Delete a metadata table, but for the files that the next one has too. ``storage`` as for ``_begin_anew``."""
    _delete_all(storage, _files_of(storage))


def _next_number(storage: Storage) -> int:
    with contextlib.suppress(StorageNotFoundError, CorruptDataError, ValueError):
        last = load_properties(storage.read(_PROPERTIES)).get(NUMBER_KEY, "0")
        return (int(last) + 1) % NUMBERS
    return 1


def _files_of(storage: Storage) -> list[str]:
    return [info.path for info in every_file(storage, METADATA_PATH)]


def _delete_all(storage: Storage, paths: list[str]) -> None:
    gone = [path for path in paths if path != _PROPERTIES and path.rpartition("/")[2] != PARTITION_METADATA]
    with ThreadPoolExecutor(_PARALLEL_DELETIONS) as pool:
        list(pool.map(storage.delete, gone))


def kept_partitions(table: TableConfig, config: MetadataConfig) -> list[MetadataPartition]:
    """The metadata partitions of the settings. Only a partitioned table has partition_stats, as in Hudi. The keys of an
    append table are never asked for, so it has no bloom filters."""
    selected = {
        MetadataPartition.FILES: True,
        MetadataPartition.COLUMN_STATS: config.column_stats,
        MetadataPartition.BLOOM_FILTERS: config.bloom_filters,
        MetadataPartition.PARTITION_STATS: config.column_stats and bool(table.partition_fields),
        MetadataPartition.RECORD_INDEX: True,
    }
    return [partition for partition in MetadataPartition if selected[partition] and table.kind.keeps(partition)]


def write_properties(storage: Storage, table: TableConfig) -> None:
    """Replace ``hoodie.properties`` and delete the checksum file that a Hadoop writer may have left next to it."""
    storage.delete(_PROPERTIES_CRC_PATH)
    storage.write(PROPERTIES_PATH, table.to_properties())


def _file_group_count(partition: MetadataPartition, config: MetadataConfig) -> int:
    counts = {
        MetadataPartition.COLUMN_STATS: config.column_stats_file_groups,
        MetadataPartition.BLOOM_FILTERS: config.bloom_file_groups,
    }
    return counts.get(partition, 1)


def _records_of(
    delta: MetadataDelta, timeline: Timeline, types: ColumnTypes, partitions: list[MetadataPartition]
) -> dict[MetadataPartition, KeyedRecords]:
    """The records of all visible files, as if one commit had added them."""
    paths = delta.partition_paths()
    last = timeline.last_completed()
    records = DeltaRecords(last.requested_time if last is not None else initial_instant(MetadataPartition.FILES))
    records.add_listings(delta, paths)
    records.by_partition[MetadataPartition.FILES].setdefault(
        ALL_PARTITIONS, encode_listing(RecordType.ALL_PARTITIONS, {})
    )
    records.add_column_stats(of_files(delta, types), types)
    records.add_bloom_filters(delta, outgrown_of_table(delta, timeline))
    if MetadataPartition.PARTITION_STATS in partitions:
        records.add_partition_stats(PartitionRanges(MetadataReader({})).grown_by(delta, types, paths))
    return {partition: records.by_partition[partition] for partition in partitions}


def _write_first_bases(storage: Storage, timeline: Timeline, schema: pa.Schema, table_name: str) -> None:
    """Write an empty base file for every file group without a base file, below its oldest log file."""
    files = [(path, file.path.rpartition("/")[2]) for path, file in _files(storage, timeline)]
    for group, instant in groups_without_base(files).items():
        write_first_base(storage, group, instant, empty_file(schema, table_name, ()))
        drop_markers(storage, instant)


def _files(storage: Storage, timeline: Timeline) -> Iterator[tuple[str, FileInfo]]:
    """The table's visible base and log files, with their partition paths."""
    return _visible(storage, timeline, parse_data_name)


def _change_logs(storage: Storage, timeline: Timeline) -> tuple[AddedFile, ...]:
    files = _visible(storage, timeline, parse_change_log_name)
    return tuple(AddedFile(path, file.path.rpartition("/")[2], file.size) for path, file in files)


def _visible(
    storage: Storage, timeline: Timeline, parse: Callable[[str], LogFileName | BaseFileName | ChangeLogName | None]
) -> Iterator[tuple[str, FileInfo]]:
    for path in partition_paths(storage):
        for file in storage.list(path):
            parsed = parse(file.path.rpartition("/")[2])
            if parsed is not None and file.size and timeline.is_completed(parsed.instant):
                yield path, file


def _described(
    storage: Storage, timeline: Timeline, columns: tuple[str, ...], with_bloom: bool, fpp: float
) -> list[AddedFile]:
    def describe(file: tuple[str, FileInfo]) -> AddedFile:
        return describe_file(storage, *file, columns, with_bloom, fpp)

    with ThreadPoolExecutor(_PARALLEL_FILES) as pool:
        return list(pool.map(describe, _files(storage, timeline)))
