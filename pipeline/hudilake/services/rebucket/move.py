"""The move of rows to the file groups of new buckets.

Each slice is merged as a compaction merges it, so a row keeps its commit time, its sequence number and its ordering
value, and deletes are stated again. The merged rows go to one temporary file a new bucket; from there they are written
in the order of the table's base files. In memory are the decoded log files of one slice, what sorts the rows of one new
bucket, and a row group.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from hudilake.commit.compaction_plan import CompactionOperation
from hudilake.format.definition.bucket import next_file_id
from hudilake.format.definition.bucketing import Bucketing, buckets_of
from hudilake.format.definition.consistent import ConsistentBuckets
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.digest.content_sum import NOTHING, ContentSum
from hudilake.format.files.column_stats import column_ranges
from hudilake.format.files.file_group_write import WriteResult
from hudilake.format.files.names import BaseFileName, LogFileName, in_partition, marker_path
from hudilake.services.compaction.task import CompactionContext, merged_rows, read_log
from hudilake.services.compaction.tombstones import restate
from hudilake.services.rebucket.units import RebucketUnit
from hudilake.storage.base import Storage
from hudilake.write.base_sink import BaseFileSink, BaseFileStatistics, mapped
from hudilake.write.merge import SortedLog
from hudilake.write.ordered import OrderedRows


@dataclass(frozen=True)
class MoveContext:
    """What all units of a move share. Picklable.

    Args:
        merging: how slices are merged and base files written; its instant is the replacecommit's.
        bucketing: the new one.
        key_fields: those whose values decide the bucket.
        table_name: of the table.
    """

    merging: CompactionContext
    bucketing: Bucketing
    key_fields: tuple[str, ...]
    table_name: str

    def file_id(self, partition_path: str, bucket: int) -> str:
        """The id of the file group of a new bucket: none that a file group had before."""
        if isinstance(self.bucketing, ConsistentBuckets):
            return self.bucketing.file_id(self.table_name, partition_path, bucket)
        return next_file_id(self.table_name, partition_path, bucket, self.merging.instant)


@dataclass(frozen=True)
class MovedUnit:
    """The files that were written for a unit."""

    unit: RebucketUnit
    results: tuple[WriteResult, ...]


@dataclass
class _Bucket:
    """The rows of one new bucket on local disk, and the blocks of its deletes."""

    aside: OrderedRows
    deletes: list[bytes] = field(default_factory=list)
    deleted: ContentSum = NOTHING


def move(storage: Storage, context: MoveContext, unit: RebucketUnit) -> MovedUnit:
    """Write the file groups of a unit's new buckets: a base file each, and a log file for the deletes. A bucket without
    rows and deletes gets none.

    Args:
        storage: the table's root.
        context: of the move.
        unit: what to move.

    A task that runs again replaces its own files with the same bytes. Raises CorruptDataError, UnsupportedError for log
    blocks that binlake cannot merge, StorageNotFoundError if a source was deleted, StorageError.
    """
    with tempfile.TemporaryDirectory(prefix="binlake-rebucket-") as name:
        directory = Path(name)
        schema = context.merging.schema
        order = context.merging.outline.order
        buckets = {b: _Bucket(OrderedRows(directory / str(b), schema, order)) for b in unit.buckets}
        for source in unit.sources:
            _spill(storage, context, source, buckets)
        for bucket in buckets.values():
            bucket.aside.close()
        results = [result for b in unit.buckets for result in _write(storage, context, unit, b, buckets[b], directory)]
    return MovedUnit(unit, tuple(results))


def begin_bucket(storage: Storage, context: MoveContext, partition_path: str, number: int) -> WriteResult:
    """Write the empty base file of a new bucket that has no rows, only deletes that are kept beside the files: a bucket
    without a file has no file id that lasts. Raises StorageError."""
    with tempfile.TemporaryDirectory(prefix="binlake-rebucket-") as name:
        rows = OrderedRows(Path(name) / "rows", context.merging.schema, context.merging.outline.order)
        rows.close()
        return _base_file(storage, context, partition_path, number, _Bucket(rows), Path(name))


def _spill(storage: Storage, context: MoveContext, source: CompactionOperation, buckets: Mapping[int, _Bucket]) -> None:
    """Put the merged rows of a slice, and its deletes, to their new buckets."""
    merging, path = context.merging, source.partition_path
    log = SortedLog(read_log(storage, merging, source).events)
    for rows in merged_rows(storage, merging, source, log):
        for bucket, mask in _split(rows.column(RECORD_KEY_FIELD), context, path):
            buckets[bucket].aside.add(rows.filter(mask))
    if not merging.restated_hours or not len(log):
        return
    for bucket, mask in _split(log.winners.keys, context, path):
        chosen = mask.to_numpy(zero_copy_only=False)
        restated = restate(log, merging.restated_hours, merging.instant, merging.avro_schema_json, path, chosen)
        if restated is not None:
            buckets[bucket].deletes.append(restated.data)
            buckets[bucket].deleted += restated.contents


def _split(
    keys: pa.Array | pa.ChunkedArray, context: MoveContext, partition_path: str
) -> Iterator[tuple[int, pa.Array]]:
    """(bucket, which of n keys belong to it, bool array of n)."""
    buckets = buckets_of(context.bucketing, keys, context.key_fields, partition_path)
    for bucket in np.unique(buckets).tolist():
        yield bucket, pa.array(buckets == bucket)


def _write(
    storage: Storage, context: MoveContext, unit: RebucketUnit, number: int, bucket: _Bucket, directory: Path
) -> Sequence[WriteResult]:
    """The files of one new bucket."""
    if not bucket.aside.rows and not bucket.deletes:
        return ()
    merging, path = context.merging, unit.partition_path
    base = _base_file(storage, context, path, number, bucket, directory)
    return (base, *_log(storage, merging, path, base.file_id, bucket))


def _base_file(
    storage: Storage, context: MoveContext, path: str, number: int, bucket: _Bucket, directory: Path
) -> WriteResult:
    merging, file_id = context.merging, context.file_id(path, number)
    name = str(BaseFileName(file_id, merging.instant))
    storage.write(marker_path(merging.instant, path, name), b"")
    written = _base(merging, bucket, name, directory / "base")
    content = mapped(directory / "base")
    storage.write(in_partition(path, name), content)
    low, high = written.keys or ("", "")
    return WriteResult(
        path,
        file_id,
        name,
        len(content),
        written.rows,
        0,
        low,
        high,
        written.ranges,
        written.bloom,
        num_inserts=0,
        contents=written.contents,
    )


def _base(merging: CompactionContext, bucket: _Bucket, name: str, path: Path) -> BaseFileStatistics:
    form = merging.config.form
    sink = BaseFileSink(path, merging.schema, name, bucket.aside.rows, merging.indexed_columns, form)
    with contextlib.ExitStack() as stack:
        stack.callback(sink.abandon)
        for rows in bucket.aside.in_order(form.at_once):
            sink.write(rows)
        stack.pop_all()
    return sink.close(merging.avro_schema_json)


def _log(
    storage: Storage, merging: CompactionContext, path: str, file_id: str, bucket: _Bucket
) -> Iterator[WriteResult]:
    """The log file of a new bucket's deletes, if it has any."""
    if not bucket.deletes:
        return
    name, data = str(LogFileName(file_id, merging.instant)), b"".join(bucket.deletes)
    storage.write(marker_path(merging.instant, path, name), b"")
    storage.write(in_partition(path, name), data)
    ranges = None if merging.indexed_columns is None else column_ranges(None, merging.indexed_columns)
    yield WriteResult(path, file_id, name, len(data), 0, bucket.deleted.rows, "", "", ranges, contents=bucket.deleted)
