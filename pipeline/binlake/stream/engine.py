"""How a batch plan runs on Spark: which rows cross the JVM, and whether parcels are shuffled or collected.

``DirectEngine``: tasks fetch their own offset ranges from Kafka, so no record crosses the JVM (measured 2-4 times
faster than the Kafka source); parcels are collected by the driver, or shuffled to tasks that write them.
``SourceEngine``: Spark's Kafka source carries the records, as a plain DataFrame; the rest is the same.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from binlake.decode.changes import RawRecords
from binlake.rows.tasks.append_parcels import append_parcels
from binlake.rows.tasks.boundary import Survey
from binlake.rows.tasks.decode_and_route import decode_records, fetch_and_decode
from binlake.rows.tasks.plan import BatchPlan, Item
from binlake.rows.tasks.write_parcels import write_parcels
from binlake.rows.upsert.parcel import Parcel
from binlake.source.offsets import OffsetRange, Ranges
from binlake.stream.transactions import fetch_and_survey

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

#: Below this many records a second task costs more than it saves (measured in bench).
MIN_RECORDS_PER_TASK = 1_000
S = TypeVar("S")
_SOURCE_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value")


class Engine(Protocol):
    """Runs a plan over the batch's ranges; parcels that no task wrote and all reports return to the driver."""

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """All items that the tasks returned."""
        ...


class DirectEngine:
    """Tasks fetch from Kafka themselves."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """One share of the ranges for each core, as far as the shares are worth a task."""
        cores = self._context.defaultParallelism
        whole = Ranges(ranges)
        shares = whole.split(max(1, min(cores, whole.records // MIN_RECORDS_PER_TASK)))
        return run_shares(self._context, plan, shares, fetch_and_decode, shuffle=shuffle)

    def survey(self, kafka: Mapping[str, str], topic: str, ranges: Sequence[OffsetRange]) -> Survey:
        """The transaction survey of the records in the ranges; ``topic``: the transaction topic."""
        whole, survey = Ranges(ranges), Survey()
        if not whole.records:
            return survey
        shares = whole.split(max(1, min(self._context.defaultParallelism, whole.records // MIN_RECORDS_PER_TASK)))
        looked = self._context.parallelize(shares, len(shares)).mapPartitions(
            lambda mine: (part for share in mine for part in fetch_and_survey(kafka, topic, share))
        )
        for part in looked.collect():
            survey.add(part)
        return survey


def run_shares(
    context: SparkContext,
    plan: BatchPlan,
    shares: Sequence[S],
    decoded: Callable[[BatchPlan, S], Iterator[Item]],
    *,
    shuffle: bool,
) -> list[Item]:
    """Run one task per share of work. ``decoded`` turns a share into items; with ``shuffle`` other tasks write them."""
    shared = context.broadcast(plan)
    try:
        items = context.parallelize(shares, len(shares)).mapPartitionsWithIndex(
            lambda number, mine: append_parcels(
                shared.value, number, (item for share in mine for item in decoded(shared.value, share))
            )
        )
        if not shuffle:
            return items.collect()
        slots = max(context.defaultParallelism, len(shares))
        placed = items.map(lambda item: (_slot(item, slots), item)).partitionBy(slots, lambda slot: slot)
        return placed.mapPartitions(lambda mine: write_parcels(shared.value, (item for _, item in mine))).collect()
    finally:
        shared.unpersist()


def _slot(item: Item, slots: int) -> int:
    return item.slot(slots) if isinstance(item, Parcel) else 0


class SourceEngine:
    """Spark's Kafka source carries the records of the batch, as the DataFrame that ``foreachBatch`` gave."""

    def __init__(self, batch: DataFrame) -> None:
        self._batch = batch

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """Records outside ``ranges`` are cut off: an earlier run applied them, or this batch may not."""
        cuts = {(r.topic, r.partition): (r.start, r.end) for r in ranges}
        slots = max(2, self._batch.sparkSession.sparkContext.defaultParallelism)
        decoded = self._batch.select(*_SOURCE_COLUMNS).mapInArrow(
            lambda batches: _pickled(decode_records(plan, _raw_records(batches, cuts)), slots),
            "slot int, item binary",
        )
        if shuffle:
            decoded = decoded.repartition(slots, "slot").mapInArrow(
                lambda batches: _pickled(write_parcels(plan, _unpickled(batches)), slots), "slot int, item binary"
            )
        return [pickle.loads(row.item) for row in decoded.collect()]  # noqa: S301 - what our own tasks pickled


def _pickled(items: Iterable[Item], slots: int) -> Iterator[pa.RecordBatch]:
    for item in items:
        slot = pa.array([_slot(item, slots)], pa.int32())
        yield pa.record_batch([slot, pa.array([pickle.dumps(item)], pa.binary())], names=["slot", "item"])


def _unpickled(batches: Iterable[pa.RecordBatch]) -> Iterator[Item]:
    for batch in batches:
        for blob in batch.column("item"):
            yield pickle.loads(blob.as_py())  # noqa: S301 - what our own tasks pickled


def _raw_records(
    batches: Iterable[pa.RecordBatch], cuts: dict[tuple[str, int], tuple[int, int]]
) -> Iterator[RawRecords]:
    """The source's rows as raw records, one chunk for each topic partition and Arrow batch."""
    for batch in batches:
        topics = batch.column("topic").dictionary_encode()
        codes = topics.indices.to_numpy().astype(np.int64) << 32 | batch.column("partition").to_numpy()
        for code in np.unique(codes).tolist():
            rows = batch.filter(pa.array(codes == code))
            topic, partition = topics.dictionary[code >> 32].as_py(), code & 0xFFFFFFFF
            first, end = cuts.get((topic, partition), (0, 0))
            offsets = rows.column("offset").to_numpy()
            rows = rows.filter(pa.array((offsets >= first) & (offsets < end)))
            if len(rows):
                yield RawRecords(
                    topic=topic,
                    partition=partition,
                    offsets=rows.column("offset").to_numpy(),
                    timestamps_ms=rows.column("timestamp")
                    .cast(pa.timestamp("ms", rows.column("timestamp").type.tz))
                    .cast(pa.int64())
                    .to_numpy(),
                    keys=rows.column("key").to_pylist(),
                    values=rows.column("value").to_pylist(),
                )
