"""Writes the workload to topics, and queries their content."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.events import Shape, events
from bench.workloads import Workload
from binlake.source.offsets import Offsets
from hudilake.clock import monotonic_s

_LEADER_S = 60.0


def create_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Create one topic."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.create_topics([NewTopic(topic, partitions, 1)])[topic].result()


def delete_topics(bootstrap: str, topics: Iterable[str]) -> None:
    """Delete the given topics that exist."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    there = set(client.list_topics(timeout=30).topics) & set(topics)
    if there:
        for done in client.delete_topics(list(there)).values():
            done.result()


def _producer(bootstrap: str, linger_ms: int = 20) -> Producer:
    """A producer that keeps the order of a key's events: a new topic refuses its first batches; they are resent."""
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": linger_ms,
            "compression.type": "lz4",
            "batch.size": 1 << 18,
            "enable.idempotence": True,
        }
    )


def produce(bootstrap: str, topic: str, records: Iterable[tuple[bytes, bytes]]) -> int:
    """Send the records, and wait until the broker has them all; returns their number."""
    producer = _producer(bootstrap)
    count = 0
    for key, value in records:
        while True:
            try:
                producer.produce(topic, value, key)
                break
            except BufferError:
                producer.poll(0.1)
        count += 1
        if count % 10_000 == 0:
            producer.poll(0)
    producer.flush()
    return count


def table_events(work: Workload, shape: Shape) -> Iterator[tuple[bytes, bytes]]:
    """The content of one table's topic, from its first event to the last live one. Loaded rows come first."""
    return events(work.events_of(shape), work.keys, shape=shape, loaded=work.loaded)


def fill(bootstrap: str, work: Workload, topics: Mapping[str, Shape], upto: int, first: int = 0) -> None:
    """Fill each topic up to its first ``upto`` events; ``first``: how many of the table's events come before."""
    there = topic_ends(bootstrap, topics)
    for topic, shape in topics.items():
        if topic not in there:
            create_topic(bootstrap, topic, work.topic_partitions)
        have = sum(there.get(topic, {}).values())
        if have < upto:
            produce(bootstrap, topic, islice(table_events(work, shape), first + have, first + upto))


class LiveProducer(threading.Thread):
    """Sends records at a steady rate; Kafka stamps each with the time at which it was handed over."""

    def __init__(self, bootstrap: str, topic: str, records: Iterator[tuple[bytes, bytes]], per_s: int) -> None:
        super().__init__(daemon=True)
        self._producer = _producer(bootstrap, linger_ms=5)
        self._topic, self._records, self._per_s = topic, records, per_s
        self.error: BaseException | None = None

    def run(self) -> None:
        """Send until there are no more records."""
        started, sent, pause = monotonic_s(), 0, threading.Event()
        try:
            while True:
                due = int((monotonic_s() - started) * self._per_s) - sent
                for key, value in (piece := list(islice(self._records, max(due, 0)))):
                    self._producer.produce(self._topic, value, key)
                if due > len(piece):
                    break
                sent += len(piece)
                self._producer.poll(0)
                pause.wait(0.005)
            self._producer.flush()
        except BaseException as error:
            self.error = error


def topic_ends(bootstrap: str, topics: Iterable[str]) -> Offsets:
    """Topic -> partition -> the number of its records."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
    known = consumer.list_topics(timeout=30).topics
    there = [topic for topic in topics if topic in known]
    places = [(topic, partition) for topic in there for partition in known[topic].partitions]
    found = Offsets.of_places((t, p, _end(consumer, TopicPartition(t, p))) for t, p in places)
    consumer.close()
    return found


def _end(consumer: Consumer, place: TopicPartition) -> int:
    """A partition's end. For a moment after its start, a broker leads none of its partitions."""
    deadline = monotonic_s() + _LEADER_S
    while True:
        try:
            return int(consumer.get_watermark_offsets(place, timeout=30)[1])
        except KafkaException:
            if monotonic_s() > deadline:
                raise
            time.sleep(0.2)


def times(bootstrap: str, topic: str) -> dict[tuple[int, int], int]:
    """(partition, offset) -> the record's own time in milliseconds, of a whole topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    high = topic_ends(bootstrap, [topic])[topic]
    consumer.assign([TopicPartition(topic, p, 0) for p in high])
    found: dict[tuple[int, int], int] = {}
    while len(found) < sum(high.values()):
        for message in consumer.consume(20_000, 1.0):
            if (error := message.error()) is not None:
                raise RuntimeError(str(error))
            found[(message.partition() or 0, message.offset() or 0)] = message.timestamp()[1]
    consumer.close()
    return found
