"""Sends messages to Kafka: topics, a sender, and two ways of playing."""

from __future__ import annotations

import heapq
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from demo.live import LiveSource
from demo.messages import Message
from hudilake.clock import monotonic_s

TIMEOUT_S = 30.0
_TICK_S = 0.05
#: librdkafka's log level: warnings and errors. At its default (6) it reports each client that is closed.
_LOG_LEVEL = 4

#: (topic, partition) -> offset.
Offsets = dict[tuple[str, int], int]


def create_topics(bootstrap_servers: str, partitions: Mapping[str, int]) -> None:
    """Create topics with the given numbers of partitions, and wait until the broker lists them.

    Raises KafkaException if one exists already, TimeoutError after TIMEOUT_S.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": _LOG_LEVEL})
    topics = [NewTopic(name, num_partitions=count, replication_factor=1) for name, count in partitions.items()]
    for created in admin.create_topics(topics, operation_timeout=TIMEOUT_S).values():
        created.result()
    until = monotonic_s() + TIMEOUT_S
    while missing := partitions.keys() - admin.list_topics(timeout=TIMEOUT_S).topics.keys():
        if monotonic_s() > until:
            raise TimeoutError(f"Kafka does not list the topics {', '.join(sorted(missing))}, which it has created")
        time.sleep(_TICK_S)


def end_offsets(bootstrap_servers: str, partitions: Mapping[str, int]) -> Offsets:
    """The current end of every partition."""
    config = {"bootstrap.servers": bootstrap_servers, "group.id": "binlake-demo", "log_level": _LOG_LEVEL}
    consumer = Consumer(config)
    try:
        return {
            (topic, p): consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=TIMEOUT_S)[1]
            for topic, count in partitions.items()
            for p in range(count)
        }
    finally:
        consumer.close()


class Sender:
    """Sends messages unchanged: partition, key, value, headers and timestamp."""

    def __init__(self, bootstrap_servers: str) -> None:
        # Without idempotence, a batch that a new topic's leader refuses at first comes behind the next one.
        config = {"bootstrap.servers": bootstrap_servers, "linger.ms": 5, "enable.idempotence": True, "log_level": 2}
        self._producer = Producer(config)
        self._failed: list[str] = []
        self.sent = 0

    def send(self, messages: Iterable[Message]) -> None:
        """Hand messages to the producer, in order."""
        for m in messages:
            self._producer.produce(
                m.topic,
                value=m.value,
                key=m.key,
                partition=m.partition,
                timestamp=m.timestamp_ms,
                headers=list(m.headers),
                on_delivery=self._note,
            )
            self.sent += 1
            self._producer.poll(0)

    def flush(self) -> None:
        """Wait until the broker has all messages. Raises RuntimeError if it refused one."""
        left = self._producer.flush(TIMEOUT_S)
        if left or self._failed:
            raise RuntimeError(f"the broker did not take {left or len(self._failed)} messages: {self._failed[:1]}")

    def _note(self, error: object, message: object) -> None:
        if error is not None:
            self._failed.append(str(error))


def interleave(messages: Iterable[Message]) -> Iterator[Message]:
    """Messages of many topics by their timestamps, but in order within each partition."""
    partitions: dict[tuple[str, int], list[Message]] = defaultdict(list)
    for message in messages:
        partitions[(message.topic, message.partition)].append(message)
    return heapq.merge(*partitions.values(), key=lambda m: m.timestamp_ms)


def play(
    messages: Sequence[Message], send: Callable[[Iterable[Message]], None], over_s: float, stop: threading.Event
) -> None:
    """Send messages evenly over a time in seconds; if ``stop`` is set, send the rest at once."""
    started, sent = monotonic_s(), 0
    while sent < len(messages):
        share = 1.0 if stop.is_set() or over_s <= 0 else (monotonic_s() - started) / over_s
        due = min(len(messages), int(share * len(messages)) + 1)
        send(messages[sent:due])
        sent = due
        stop.wait(_TICK_S)


def play_live(
    source: LiveSource, send: Callable[[Iterable[Message]], None], per_second: float, stop: threading.Event
) -> None:
    """Send the live database's transactions at a rate (changes a second) until ``stop`` is set."""
    started, before = monotonic_s(), source.changes
    while not stop.is_set():
        due = before + per_second * (monotonic_s() - started)
        while source.changes < due:
            send(source.transaction())
        stop.wait(_TICK_S)
