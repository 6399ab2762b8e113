"""A task's compaction of one file group: it reads the slice and writes the base file.

It needs the storage, the context and the operation, which can all be pickled. Names and bytes depend on them alone, so
a retried or speculative task overwrites its own files with the same bytes. Markers are written first, so that
unscheduling the compaction finds the files of a dead task. The decoded log files, one row group each of the old and the
new base file, and the bloom filter are in memory; all other data is in temporary files (``hudilake.write``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.commit.compaction_plan import CompactionOperation
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.schema import META_FIELDS
from hudilake.format.files.append import rows_never_merge
from hudilake.format.files.column_stats import column_ranges
from hudilake.format.files.log_events import LogEvents
from hudilake.format.files.log_file import whole_blocks
from hudilake.format.files.log_rows import Flags
from hudilake.format.files.names import BaseFileName, LogFileName, marker_path, parse_log_name
from hudilake.format.layout.order import Order
from hudilake.format.timeline.commit_metadata import WriteStat
from hudilake.format.timeline.instant import WRITE_ACTIONS
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.records.delta import AddedFile
from hudilake.services.compaction.config import CompactionConfig
from hudilake.services.compaction.tombstones import SliceTombstones, restate
from hudilake.storage.base import Storage, StorageNotFoundError
from hudilake.write.base_sink import BaseFileStatistics, mapped
from hudilake.write.base_write import BaseOutline, merge_in_any_order, write_bases, write_joined
from hudilake.write.merge import Counts, SortedLog
from hudilake.write.retention import KeptRows

_PARALLEL_READS = 4


@dataclass(frozen=True)
class CompletedInstants:
    """The visible log blocks: those of completed commits, and those older than the active timeline."""

    times: frozenset[str]
    oldest: str

    @classmethod
    def of(cls, timeline: Timeline) -> CompletedInstants:
        """From the timeline's current state."""
        times = [instant.requested_time for instant in timeline.completed()]
        started = [*times[:1], *(i.requested_time for i in timeline.pending() if i.identity[1] in WRITE_ACTIONS)]
        return cls(frozenset(times), min(started, default=""))

    def __contains__(self, instant: str | None) -> bool:
        return instant is not None and (instant in self.times or instant < self.oldest)


@dataclass(frozen=True)
class CompactionContext:
    """The context that all file groups of a compaction share. ``avro_schema_json`` has the meta fields,
    ``arrow_schema`` has not.

    ``indexed_columns``: whose statistics the metadata table keeps; None for a table without column statistics.
    ``restated_hours``: how long deletes outlive the compaction (``tombstones``). ``kind``: of the table.
    """

    instant: str
    avro_schema_json: str
    arrow_schema: pa.Schema
    ordering_field: str
    completed: CompletedInstants
    config: CompactionConfig
    restated_hours: float
    indexed_columns: tuple[str, ...] | None = None
    kind: TableKind = field(default_factory=TableKind)

    @property
    def schema(self) -> pa.Schema:
        """The columns of a base file, meta fields first."""
        return pa.schema([*(pa.field(name, pa.string()) for name in META_FIELDS), *self.arrow_schema])

    @property
    def outline(self) -> BaseOutline:
        """Of the base files."""
        form = self.config.form
        if not self.kind.keeps(MetadataPartition.BLOOM_FILTERS):
            form = replace(form, bloom_kind=None)  # nobody looks for a key
        return BaseOutline(self.instant, self.schema, self.avro_schema_json, self.indexed_columns, form)


@dataclass(frozen=True)
class CompactedFile:
    """The data of a compacted file group for ``complete``: the base file, the log file of restated tombstones if there
    is one, and the counts of the commit. ``order``: of the rows in the base file, None for that of the keys.
    ``horizon_ms``: readings as of an earlier time may lack rows; None if no row was left out for its age."""

    operation: CompactionOperation
    base: AddedFile
    base_stat: WriteStat
    tombstones: AddedFile | None = None
    tombstone_stat: WriteStat | None = None
    order: Order | None = None
    horizon_ms: int | None = None

    @property
    def added(self) -> list[AddedFile]:
        """The files it adds."""
        return [self.base] if self.tombstones is None else [self.base, self.tombstones]

    @property
    def stats(self) -> list[WriteStat]:
        """Their entries in the commit."""
        return [self.base_stat] if self.tombstone_stat is None else [self.base_stat, self.tombstone_stat]


@dataclass
class LogRead:
    """The log that was read: events, number of visible blocks, bytes, number of events."""

    events: LogEvents
    blocks: int = 0
    size: int = 0
    count: int = 0


def compact_file_group(storage: Storage, context: CompactionContext, operation: CompactionOperation) -> CompactedFile:
    """Write the base file of a file group, and the log file of the tombstones that stay.

    Args:
        storage: the table's root.
        context: of the compaction.
        operation: the file group's part of the plan.

    Raises CorruptDataError, UnsupportedError for log blocks that binlake cannot merge, StorageNotFoundError if the plan
    names deleted files, StorageError.
    """
    read = read_log(storage, context, operation)
    name = str(BaseFileName(operation.file_id, context.instant))
    storage.write(marker_path(context.instant, operation.partition_path, name), b"")
    log = None if rows_never_merge(context.kind, operation.log_files) else SortedLog(read.events)
    horizon, kept = _retention(context, log)
    with tempfile.TemporaryDirectory(prefix="binlake-compaction-") as directory:
        source = _base_of(storage, operation)
        if log is None:
            rows = read.events.tables
            made = write_joined(storage, source, rows, context.outline, operation.file_id, Path(directory))
        else:
            own, place = operation.file_id, Path(directory)
            made = write_bases(storage, source, log, context.outline, lambda _: own, place, kept)[0]
        written, content = made.written, mapped(made.path)
        storage.write(operation.path(name), content)
    base = AddedFile(operation.partition_path, name, len(content), written.ranges, written.bloom)
    counts = Counts(read.events.rows) if log is None else log.counts
    stat = _base_stat(operation, base, written, counts, read)
    done = CompactedFile(operation, base, stat, order=context.outline.order, horizon_ms=horizon)
    if log is None:
        return done
    restated = restate(
        log,
        context.restated_hours,
        context.instant,
        context.avro_schema_json,
        operation.partition_path,
        _not_erased(log, context.config.erased_keys),
    )
    if restated is None:
        return done
    tombstones, tombstone_stat = _write_tombstones(storage, context, operation, restated)
    return replace(done, tombstones=tombstones, tombstone_stat=tombstone_stat)


def _retention(context: CompactionContext, log: SortedLog | None) -> tuple[int | None, KeptRows | None]:
    """The horizon of a table whose rows lose their meaning with time, and what leaves such rows out."""
    rule = context.config.row_retention
    if rule is None or log is None:
        return None, None
    horizon = rule.horizon_ms(log.rows.table, context.instant)
    return horizon, partial(rule.kept, horizon_ms=horizon)


def _not_erased(log: SortedLog, keys: frozenset[str]) -> Flags | None:
    """Which of the log's winners have none of those keys; None for all."""
    if not keys:
        return None
    erased = pc.is_in(log.winners.keys, value_set=pa.array(sorted(keys), pa.string()))
    return ~np.asarray(erased.to_numpy(zero_copy_only=False), dtype=np.bool_)


def merged_rows(
    storage: Storage, context: CompactionContext, operation: CompactionOperation, log: SortedLog
) -> Iterator[pa.Table]:
    """The live rows of a slice in any order, with the columns of a base file. Errors as ``compact_file_group``."""
    return merge_in_any_order(storage, _base_of(storage, operation), log, context.outline)


def read_log(storage: Storage, context: CompactionContext, operation: CompactionOperation) -> LogRead:
    """The events of the log files that an operation merges. Errors as ``compact_file_group``."""
    log = LogRead(LogEvents(context.schema, context.ordering_field))
    names = sorted(operation.log_files, key=_order)
    with ThreadPoolExecutor(_PARALLEL_READS) as pool:
        for name, data in zip(names, pool.map(lambda n: storage.read(operation.path(n)), names), strict=True):
            log.size += len(data)
            for block in whole_blocks(data, operation.path(name)):
                if block.instant in context.completed:
                    log.events.add(block, operation.path(name))
                    log.blocks += 1
    log.count = sum(len(part) for part in log.events.row)
    return log


def _order(name: str) -> tuple[str, int, str]:
    parsed = parse_log_name(name)
    return parsed.order if parsed is not None else ("", 0, "")


def _base_of(storage: Storage, operation: CompactionOperation) -> tuple[str, int] | None:
    """Path and bytes of the base file that the plan names."""
    if operation.base_file is None:
        return None
    path = operation.path(operation.base_file)
    info = storage.stat(path)
    if info is None:
        raise StorageNotFoundError("a base file of the plan does not exist", do_next="run binlake fsck", path=path)
    return path, info.size


def _base_stat(
    operation: CompactionOperation, base: AddedFile, written: BaseFileStatistics, counts: Counts, read: LogRead
) -> WriteStat:
    return WriteStat(
        partition_path=operation.partition_path,
        file_id=operation.file_id,
        path=operation.path(base.name),
        prev_commit=operation.base_instant if operation.base_file is not None else "null",
        num_writes=written.rows,
        num_deletes=counts.deletes + counts.dropped,
        num_update_writes=counts.updates,
        num_inserts=counts.inserts,
        file_size=base.size,
        prev_base_file=operation.base_file,
        total_log_records=read.count,
        total_log_blocks=read.blocks,
        total_log_files_compacted=len(operation.log_files),
        total_log_size_compacted=read.size,
        contents=written.contents,
    )


def _write_tombstones(
    storage: Storage, context: CompactionContext, operation: CompactionOperation, restated: SliceTombstones
) -> tuple[AddedFile, WriteStat]:
    name = str(LogFileName(operation.file_id, context.instant))
    storage.write(marker_path(context.instant, operation.partition_path, name), b"")
    storage.write(operation.path(name), restated.data)
    ranges = None if context.indexed_columns is None else column_ranges(None, context.indexed_columns)
    stat = WriteStat(
        partition_path=operation.partition_path,
        file_id=operation.file_id,
        path=operation.path(name),
        prev_commit=context.instant,
        num_deletes=restated.count,
        file_size=len(restated.data),
        log_version=1,
        log_files=(name,),
        contents=restated.contents,
    )
    return AddedFile(operation.partition_path, name, len(restated.data), ranges), stat
