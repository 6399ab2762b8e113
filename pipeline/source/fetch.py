"""Fetch offset ranges straight from Kafka, inside a task: no record crosses the JVM.

One consumer is kept per process. Traps that shaped this module (measured): ``consume(n, timeout)`` waits for n
messages, so its time limit is short; compacted topics and transaction markers leave holes in the offsets, so a range
is finished when the consumer's position reaches its end, not when its last message arrives.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from pipeline.clock import monotonic_s
from pipeline.decode.changes import RawRecords
from pipeline.errors import BadInputError, TransientError
from pipeline.source.ranges import OffsetRange

_WAIT_S = 0.02
Place = tuple[str, int]
_consumers: dict[tuple[int, str], Consumer] = {}


def consumer_for(config: Mapping[str, str]) -> Consumer:
    """The consumer of this process for these client settings (librdkafka names); made on first use."""
    key = (os.getpid(), repr(sorted(config.items())))
    if key not in _consumers:
        _consumers[key] = Consumer(
            {
                "group.id": "binlake-fetch",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,
                "fetch.error.backoff.ms": 50,
                "fetch.max.bytes": 64 << 20,
                "max.partition.fetch.bytes": 16 << 20,
                "queued.max.messages.kbytes": 256 << 10,
                "isolation.level": "read_committed",
                "log_level": 2,  # what matters comes back as errors; a broker that is away would fill the log
                **config,
            }
        )
    return _consumers[key]


def fetch(
    config: Mapping[str, str], ranges: Sequence[OffsetRange], *, timeout_s: float, chunk_records: int
) -> Iterator[RawRecords]:
    """The records of the ranges, in chunks of at most about ``chunk_records`` of one topic partition each.

    Raises TransientError when nothing arrives for ``timeout_s`` seconds, BadInputError when offsets are gone.
    """
    consumer = consumer_for(config)
    by_place: dict[Place, list[OffsetRange]] = {}
    for r in ranges:
        by_place.setdefault((r.topic, r.partition), []).append(r)
    # one range of a partition at a time: ranges of one task are contiguous unless a task got two cuts of a partition
    while by_place:
        wave = {place: pieces.pop(0) for place, pieces in by_place.items()}
        by_place = {place: pieces for place, pieces in by_place.items() if pieces}
        yield from _fetch_wave(consumer, wave, timeout_s, chunk_records)


def _fetch_wave(
    consumer: Consumer, wave: dict[Place, OffsetRange], timeout_s: float, chunk_records: int
) -> Iterator[RawRecords]:
    consumer.assign([TopicPartition(r.topic, r.partition, r.start) for r in wave.values()])
    pending = dict(wave)
    held: dict[Place, list[Message]] = {place: [] for place in wave}
    reached = {place: r.start for place, r in wave.items()}
    last_progress = monotonic_s()
    try:
        while pending:
            messages = consumer.consume(min(chunk_records, 20_000), _WAIT_S)
            if messages:
                last_progress = monotonic_s()
            elif monotonic_s() - last_progress > timeout_s:
                raise _stalled(consumer, pending, timeout_s)
            for message in messages:
                _take(message, pending, held, reached)
            for place in list(held):
                done = place in pending and reached[place] >= pending[place].end
                if held[place] and (done or len(held[place]) >= chunk_records):
                    yield _records(place, held[place])
                    held[place] = []
                if done:
                    consumer.incremental_unassign([TopicPartition(*place)])
                    del pending[place]
    finally:
        consumer.unassign()


def _take(
    message: Message,
    pending: Mapping[Place, OffsetRange],
    held: Mapping[Place, list[Message]],
    reached: dict[Place, int],
) -> None:
    """Hold a message of a range; note how far the partition is read, also by an end mark or a message beyond."""
    error, topic, partition, offset = message.error(), message.topic(), message.partition(), message.offset()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise _failed(error, message)
    if topic is None or partition is None or offset is None or (topic, partition) not in pending:
        return
    place = (topic, partition)
    if error is not None:
        reached[place] = max(reached[place], offset)
        return
    reached[place] = max(reached[place], offset + 1)
    if offset < pending[place].end:
        held[place].append(message)


def _records(place: Place, messages: list[Message]) -> RawRecords:
    count = len(messages)
    return RawRecords(
        topic=place[0],
        partition=place[1],
        offsets=np.fromiter((m.offset() for m in messages), dtype=np.int64, count=count),
        timestamps_ms=np.fromiter((m.timestamp()[1] for m in messages), dtype=np.int64, count=count),
        keys=[m.key() for m in messages],
        values=[m.value() for m in messages],
    )


def _failed(error: KafkaError, message: Message) -> Exception:
    where = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        return BadInputError(
            f"offsets that were asked for are gone from Kafka: {error.str()}",
            do_next="the events were deleted by retention: take a new snapshot of the tables of this topic",
            **where,
        )
    return TransientError(f"Kafka answered: {error.str()}", do_next="look at the broker; start again", **where)


def _stalled(consumer: Consumer, pending: Mapping[Place, OffsetRange], timeout_s: float) -> TransientError:
    first = next(iter(pending.values()))
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(first.topic, first.partition), timeout=5)
    except KafkaException:
        low, high = -1, -1
    return TransientError(
        f"nothing arrived from Kafka for {timeout_s:g} s; the partition holds offsets {low} to {high}",
        do_next="look at the broker and the network; start again",
        topic=first.topic,
        partition=first.partition,
        offsets=f"{first.start}..{first.end}",
    )
