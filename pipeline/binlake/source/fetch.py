"""Fetches offset ranges directly from Kafka, inside a task: no record crosses the JVM.

One consumer is kept per process. Reasons for this design (measured): ``consume(n, timeout)`` waits for n messages, so
its time limit is short. Compacted topics and transaction markers leave gaps in the offsets, so a range is finished when
the consumer's position reaches its end, and not when its last message arrives.
"""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from binlake.decode.changes import RawRecords
from binlake.source.client import Complaints, failure, make_consumer
from binlake.source.offsets import OffsetRange, made_anew, missing_error
from hudilake.clock import monotonic_s
from hudilake.errors import LakeError, TransientError

_WAIT_S = 0.02
_AT_ONCE = 20_000
_ASK_S = 5.0
Place = tuple[str, int]
_consumers: dict[tuple[int, str], tuple[Consumer, Complaints]] = {}
_GONE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)


def consumer_for(config: Mapping[str, str]) -> Consumer:
    """This process's consumer for these client settings (librdkafka names), created on first use.

    Raises ConfigError where the client refuses the settings.
    """
    return _client(config)[0]


def broker_failure(config: Mapping[str, str], error: KafkaException, what: str, **where: object) -> LakeError:
    """The error for a failed call of ``consumer_for``'s consumer; see ``client.failure``."""
    consumer, complaints = _client(config)
    with contextlib.suppress(KafkaException):
        consumer.poll(0)  # lets the client report its errors
    return failure(config, error, complaints.take(), what, **where)


def _client(config: Mapping[str, str]) -> tuple[Consumer, Complaints]:
    key = (os.getpid(), repr(sorted(config.items())))
    if key not in _consumers:
        settings = {
            "fetch.wait.max.ms": 20,
            "fetch.error.backoff.ms": 50,
            "fetch.max.bytes": 64 << 20,
            # messages beyond a range are dropped with the assignment: there are few, and they are fetched again at once
            # (librdkafka's own pause with a full queue is one second; one batch in three had that pause)
            "max.partition.fetch.bytes": 1 << 20,
            "fetch.queue.backoff.ms": 5,
            "queued.min.messages": 10_000,
            "queued.max.messages.kbytes": 64 << 10,
            "log_level": 2,  # failures are returned as errors; an unreachable broker would fill the log
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
    """The records of the ranges, in chunks of at most approximately ``chunk_records`` of one topic partition each.

    Raises TransientError when no record arrives for ``timeout_s`` seconds, BadInputError when offsets are deleted,
    ConfigError when the brokers refuse access.
    """
    by_place: dict[Place, list[OffsetRange]] = {}
    for r in ranges:
        by_place.setdefault((r.topic, r.partition), []).append(r)
    # one range of a partition at a time: a task has several only if it got two pieces of a partition
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
    pending = {place: _Piece(r) for place, r in wave.items()}
    last_progress = monotonic_s()
    try:
        while pending:
            missing = sum(piece.missing for piece in pending.values())
            messages = consumer.consume(max(1, min(missing, _AT_ONCE)), _WAIT_S)
            if messages:
                last_progress = monotonic_s()
            elif monotonic_s() - last_progress > timeout_s:
                raise _stalled(config, next(iter(pending.values())).range, timeout_s)
            for place, run in _runs(_without_marks(config, messages, pending)):
                if place in pending:
                    pending[place].take(run)
            for place, piece in list(pending.items()):
                if len(piece) and (piece.missing <= 0 or len(piece) >= chunk_records):
                    yield piece.records()
                if piece.missing <= 0:
                    consumer.incremental_unassign([TopicPartition(*place)])
                    del pending[place]
    finally:
        consumer.unassign()


class _Piece:
    """The received part of one range, as columns, until it is handed on: no message outlives its batch."""

    def __init__(self, of: OffsetRange) -> None:
        self.range, self.reached = of, of.start
        self._clear()

    def _clear(self) -> None:
        self._offsets: list[int] = []
        self._millis: list[int] = []
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def missing(self) -> int:
        """The number of offsets still missing."""
        return self.range.end - self.reached

    def take(self, run: Sequence[Message]) -> None:
        """Add messages of this partition, in order; messages beyond the range are dropped."""
        offsets = [offset or 0 for offset in map(Message.offset, run)]
        self.reached = max(self.reached, offsets[-1] + 1)
        if offsets[-1] >= self.range.end:
            offsets = offsets[: bisect_left(offsets, self.range.end)]
            run = run[: len(offsets)]
        self._offsets += offsets
        self._millis += [stamp[1] for stamp in map(Message.timestamp, run)]
        self._keys += map(Message.key, run)
        self._values += map(Message.value, run)

    def records(self) -> RawRecords:
        """Return and forget all records."""
        chunk = RawRecords(
            topic=self.range.topic,
            partition=self.range.partition,
            offsets=np.array(self._offsets, dtype=np.int64),
            timestamps_ms=np.array(self._millis, dtype=np.int64),
            keys=self._keys,
            values=self._values,
        )
        self._clear()
        return chunk


def _without_marks(
    config: Mapping[str, str], messages: list[Message], pending: Mapping[Place, _Piece]
) -> list[Message]:
    """The messages that are records. An end-of-partition mark gives the position that is reached."""
    marked = [message for message in messages if message.error() is not None]
    if not marked:
        return messages
    for message in marked:
        error, piece = message.error(), pending.get(_place(message))
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise _failed(config, error, message, piece.range if piece is not None else None)
        if piece is not None:
            piece.reached = max(piece.reached, message.offset() or 0)
    return [message for message in messages if message.error() is None]


def _runs(messages: list[Message]) -> Iterator[tuple[Place, list[Message]]]:
    """Runs of messages of one partition, in received order."""
    start = 0
    for place, same in groupby(zip(map(Message.topic, messages), map(Message.partition, messages), strict=True)):
        end = start + len(list(same))
        yield (place[0] or "", place[1] or 0), messages[start:end]
        start = end


def _place(message: Message) -> Place:
    return message.topic() or "", message.partition() or 0


def _failed(config: Mapping[str, str], error: KafkaError, message: Message, wanted: OffsetRange | None) -> LakeError:
    if error.code() in _GONE and wanted is not None:
        with contextlib.suppress(KafkaException):
            low, high = _watermarks(config, wanted)
            if low > wanted.start:
                return missing_error([OffsetRange(wanted.topic, wanted.partition, wanted.start, low)])
            if high < wanted.end:
                return made_anew(wanted.topic, wanted.partition, wanted.end, high)
    where = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
    return failure(config, error, _client(config)[1].take(), "Kafka answered", **where)


def _stalled(config: Mapping[str, str], first: OffsetRange, timeout_s: float) -> LakeError:
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
    return TransientError(what, do_next="check the broker and the network, then start again", **where)


def _watermarks(config: Mapping[str, str], of: OffsetRange) -> tuple[int, int]:
    """The first offset and the end of a range's partition. Raises KafkaException."""
    place = TopicPartition(of.topic, of.partition)
    low, high = consumer_for(config).get_watermark_offsets(place, timeout=_ASK_S)
    return low, high
