"""Fetch offset ranges straight from Kafka, inside a task: no record crosses the JVM.

One consumer is kept per process. Traps that shaped this module (measured): ``consume(n, timeout)`` waits for n
messages, so its time limit is short; compacted topics and transaction markers leave holes in the offsets, so a range
is finished when the consumer's position reaches its end, not when its last message arrives.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from pipeline.clock import monotonic_s
from pipeline.decode.changes import RawRecords
from pipeline.errors import BinlakeError, TransientError
from pipeline.source.client import Complaints, failure, make_consumer
from pipeline.source.missing import made_anew, missing_error
from pipeline.source.ranges import OffsetRange

_WAIT_S = 0.02
_ASK_S = 5.0
Place = tuple[str, int]
_consumers: dict[tuple[int, str], tuple[Consumer, Complaints]] = {}
_GONE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)


def consumer_for(config: Mapping[str, str]) -> Consumer:
    """The consumer of this process for these client settings (librdkafka names); made on first use.

    Raises ConfigError where the client refuses them.
    """
    return _client(config)[0]


def broker_failure(config: Mapping[str, str], error: KafkaException, what: str, **where: object) -> BinlakeError:
    """What a failed call of ``consumer_for``'s consumer means; see ``client.failure``."""
    consumer, complaints = _client(config)
    with contextlib.suppress(KafkaException):
        consumer.poll(0)  # lets the client say what it has to say
    return failure(config, error, complaints.take(), what, **where)


def _client(config: Mapping[str, str]) -> tuple[Consumer, Complaints]:
    key = (os.getpid(), repr(sorted(config.items())))
    if key not in _consumers:
        settings = {
            "fetch.wait.max.ms": 20,
            "fetch.error.backoff.ms": 50,
            "fetch.max.bytes": 64 << 20,
            "max.partition.fetch.bytes": 16 << 20,
            "queued.max.messages.kbytes": 256 << 10,
            "log_level": 2,  # what matters comes back as errors; a broker that is away would fill the log
            **config,
        }
        _consumers[key] = make_consumer(
            settings,
            **{
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            },
        )
    return _consumers[key]


def fetch(
    config: Mapping[str, str], ranges: Sequence[OffsetRange], *, timeout_s: float, chunk_records: int
) -> Iterator[RawRecords]:
    """The records of the ranges, in chunks of at most about ``chunk_records`` of one topic partition each.

    Raises TransientError when nothing arrives for ``timeout_s`` seconds, BadInputError when offsets are gone,
    ConfigError when the brokers refuse us.
    """
    by_place: dict[Place, list[OffsetRange]] = {}
    for r in ranges:
        by_place.setdefault((r.topic, r.partition), []).append(r)
    # one range of a partition at a time: ranges of one task are contiguous unless a task got two cuts of a partition
    while by_place:
        wave = {place: pieces.pop(0) for place, pieces in by_place.items()}
        by_place = {place: pieces for place, pieces in by_place.items() if pieces}
        yield from _fetch_wave(config, wave, timeout_s, chunk_records)


def _fetch_wave(
    config: Mapping[str, str], wave: dict[Place, OffsetRange], timeout_s: float, chunk_records: int
) -> Iterator[RawRecords]:
    consumer, complaints = _client(config)
    complaints.take()
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
                raise _stalled(config, pending, timeout_s)
            for message in messages:
                _take(config, message, pending, held, reached)
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
    config: Mapping[str, str],
    message: Message,
    pending: Mapping[Place, OffsetRange],
    held: Mapping[Place, list[Message]],
    reached: dict[Place, int],
) -> None:
    """Hold a message of a range; note how far the partition is read, also by an end mark or a message beyond."""
    error, topic, partition, offset = message.error(), message.topic(), message.partition(), message.offset()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise _failed(config, error, message, pending)
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


def _failed(
    config: Mapping[str, str], error: KafkaError, message: Message, pending: Mapping[Place, OffsetRange]
) -> BinlakeError:
    topic, partition = message.topic(), message.partition()
    if error.code() in _GONE and (wanted := pending.get((topic or "", partition or 0))) is not None:
        with contextlib.suppress(KafkaException):
            low, high = _watermarks(config, wanted)
            if low > wanted.start:
                return missing_error([OffsetRange(wanted.topic, wanted.partition, wanted.start, low)])
            if high < wanted.end:
                return made_anew(wanted.topic, wanted.partition, wanted.end, high)
    where = {"topic": topic, "partition": partition, "offset": message.offset()}
    return failure(config, error, _client(config)[1].take(), "Kafka answered", **where)


def _stalled(config: Mapping[str, str], pending: Mapping[Place, OffsetRange], timeout_s: float) -> BinlakeError:
    first = next(iter(pending.values()))
    where = {"topic": first.topic, "partition": first.partition, "offsets": f"{first.start}..{first.end}"}
    what = f"nothing arrived from Kafka for {timeout_s:g} s"
    try:
        low, high = _watermarks(config, first)
    except KafkaException as error:
        return broker_failure(config, error, what, **where)
    what = f"{what}; the partition holds offsets {low} to {high}"
    complaints = _client(config)[1].take()
    if complaints:
        return failure(config, complaints[0], complaints, what, **where)
    return TransientError(what, do_next="look at the broker and the network; start again", **where)


def _watermarks(config: Mapping[str, str], of: OffsetRange) -> tuple[int, int]:
    """The first offset and the end of a range's partition. Raises KafkaException."""
    place = TopicPartition(of.topic, of.partition)
    low, high = consumer_for(config).get_watermark_offsets(place, timeout=_ASK_S)
    return low, high
