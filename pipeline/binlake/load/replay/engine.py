"""Reads the files of a portion: in Spark tasks, each with a share of the files, or in this process."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pyspark import SparkContext

from binlake.decode.changes import RawRecords, SourceTable
from binlake.decode.messages.format_detection import detect_format
from binlake.decode.options import DecodeOptions, EventFormat, MaxwellOrder
from binlake.load.replay.runner import FILE
from binlake.rows.tasks.append_parcels import append_parcels
from binlake.rows.tasks.decode_and_route import decode_records
from binlake.rows.tasks.plan import BatchPlan, Item, TaskFailure
from binlake.rows.tasks.write_parcels import write_parcels
from binlake.source.dump_layout import DumpFile
from binlake.source.dump_read import read_dump, record_bytes
from binlake.source.offsets import OffsetRange
from binlake.source.scan_read import Scan, read_scan
from binlake.stream.engine import run_shares
from hudilake.errors import BadInputError, LakeError, TransientError
from hudilake.storage import Storage, open_storage


@dataclass(frozen=True)
class DumpPlace:
    """The location of a dump, for tasks. ``options``: options of the store, which are never shown. ``scan``: its files
    are exported scans of a table of an HBase-like store, not dumps of change events."""

    uri: str
    options: Mapping[str, str] = field(repr=False)
    scan: Scan | None = None

    def storage(self) -> Storage:
        """The dump's root."""
        return open_storage(self.uri, self.options)


class SparkEngine:
    """Runs a plan in tasks that read files themselves: only the parcels cross the JVM.

    Args:
        context: Spark's.
        place: the dump's root.
        files: all files of the replay.
    """

    def __init__(self, context: SparkContext, place: DumpPlace, files: Iterable[DumpFile]) -> None:
        self._context, self._place = context, place
        self._files = {file.path: file for file in files}

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """Reads the files that the ranges stand for in Spark tasks; returns the items of all tasks."""
        files = [self._files[r.topic.removeprefix(FILE)] for r in ranges]
        shares = shared_out(files, self._context.defaultParallelism)
        return run_shares(self._context, plan, shares, partial(read_and_decode, self._place), shuffle=shuffle)


class LocalEngine:
    """Runs a plan in this process, one file after the other; arguments as ``SparkEngine``."""

    def __init__(self, place: DumpPlace, files: Iterable[DumpFile]) -> None:
        self._place = place
        self._files = {file.path: file for file in files}

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """Reads the files that the ranges stand for one after the other; returns the items."""
        items = read_and_decode(self._place, plan, [self._files[r.topic.removeprefix(FILE)] for r in ranges])
        items = append_parcels(plan, 0, items)
        return list(write_parcels(plan, items) if shuffle else items)


def shared_out(files: Sequence[DumpFile], tasks: int) -> list[list[DumpFile]]:
    """Whole files distributed over at most ``tasks`` tasks: the largest first, each to the task with the least work."""
    heap: list[tuple[int, int]] = [(0, task_index) for task_index in range(max(1, min(tasks, len(files))))]
    shares: list[list[DumpFile]] = [[] for _ in heap]
    for file in sorted(files, key=lambda f: (-record_bytes(f), f.path)):
        size, task_index = heapq.heappop(heap)
        shares[task_index].append(file)
        heapq.heappush(heap, (size + record_bytes(file) + 1, task_index))
    return [sorted(share) for share in shares if share]


def read_and_decode(place: DumpPlace, plan: BatchPlan, files: Sequence[DumpFile]) -> Iterator[Item]:
    """Read files and decode them; yields parcels, then one report."""
    named = tuple(
        (file.path, SourceTable(file.database, file.table))
        for file in files
        if file.database is not None and file.table is not None
    )
    decoding = dataclasses.replace(plan.decoding, topic_tables=(*plan.decoding.topic_tables, *named), has_emptied=True)
    try:
        yield from decode_records(
            dataclasses.replace(plan, decoding=decoding, notes_records=True), _records(place, plan, files)
        )
    except TransientError:
        raise  # Spark tries the task again
    except LakeError as error:
        yield TaskFailure(error)


def _records(place: DumpPlace, plan: BatchPlan, files: Sequence[DumpFile]) -> Iterator[RawRecords]:
    storage = place.storage()
    if place.scan is not None:
        for file in files:
            yield from read_scan(storage, file, place.scan, plan.chunk_records)
        return
    for file in files:
        for records in read_dump(storage, file, plan.chunk_records):
            if records.topic == file.path and _is_ordered_by_offset(records, plan.decoding):
                raise BadInputError(
                    "events of this format are ordered by their Kafka offsets, and the file does not say them",
                    do_next="dump records with topic, partition and offset, as binlake dump does",
                    path=f"{place.uri}/{file.path}",
                )
            yield records


def _is_ordered_by_offset(records: RawRecords, options: DecodeOptions) -> bool:
    """Whether the events are ordered by their offsets. If no format is set, the format of the first event decides."""
    form = options.format
    if form is EventFormat.AUTO:
        form = detect_format(next((value for value in records.values if value is not None), b""))
    return form in (EventFormat.CANAL, EventFormat.JSON, EventFormat.AVRO, EventFormat.HBASE_AVRO) or (
        form is EventFormat.MAXWELL and options.maxwell_order is MaxwellOrder.OFFSET
    )
