"""Is Kafka there, are the topics, and may we read them? Asked with the client and the properties the stream uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin._metadata import TopicMetadata

from binlake.cli.text import number
from binlake.settings import KafkaSettings
from binlake.source.client import Complaints, failure, make_consumer
from binlake.source.java_client import java_properties
from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError, LakeError, TransientError

_THREADS = 16

Place = tuple[str, int]


@dataclass
class KafkaProbe:
    """The checks of one ``kafka`` section. The steps fill ``topics``, name -> number of partitions, and ``samples``, a
    record's value of each topic that has one.

    ``timeout_s`` is how long each answer may take, in seconds.
    """

    kafka: KafkaSettings
    timeout_s: float = 10.0
    topics: dict[str, int] = field(default_factory=dict)
    samples: dict[str, bytes] = field(default_factory=dict)
    _complaints: Complaints = field(default_factory=Complaints)
    _consumer: Consumer | None = None
    _all_topics: dict[str, TopicMetadata] = field(default_factory=dict)

    def steps(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Name and function of each check, in order; nothing is asked of a broker that cannot be reached."""
        yield "Kafka", self._reach
        if self._consumer is not None:
            yield "topics", self._find_topics
        if self.topics:
            yield "read rights", self._read

    def close(self) -> None:
        """Let go of the broker."""
        if self._consumer is not None:
            self._consumer.close()

    def _reach(self) -> str:
        config = self.kafka.client_properties()
        java_properties(config)  # whether Spark's client can be given them
        ours = {
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "log_level": 0,
        }
        consumer, self._complaints = make_consumer(config, **ours)
        servers = self.kafka.bootstrap_servers
        try:
            metadata = consumer.list_topics(timeout=self.timeout_s)
        except KafkaException as error:
            consumer.poll(0)
            failed = failure(config, error, self._complaints.take(), "cannot reach Kafka", servers=servers)
            consumer.close()
            raise failed from None
        self._consumer = consumer
        self._all_topics = metadata.topics
        return f"{servers}: {len(metadata.brokers)} brokers"

    def _find_topics(self) -> str:
        known = {name: topic for name, topic in self._all_topics.items() if topic.error is None}
        wanted = self._wanted(known)
        wanted += self.kafka.ddl_topics
        missing = [name for name in wanted if name not in known]
        if missing or not wanted:
            raise ConfigError(
                f"no such topic: {', '.join(missing)}" if missing else "no topic matches the pattern",
                do_next="correct kafka.topics, topic_pattern or ddl_topics, or create the topic; "
                "topics that the user may not describe are not visible",
            )
        self.topics = {name: len(known[name].partitions) for name in wanted}
        return f"{len(wanted)} topics, {sum(self.topics.values())} partitions"

    def _wanted(self, known: dict[str, TopicMetadata]) -> list[str]:
        if self.kafka.topic_pattern is None:
            return list(self.kafka.topics)
        return [name for name in sorted(known) if re.fullmatch(self.kafka.topic_pattern, name)]

    def _read(self) -> str:
        places = [(topic, p) for topic, count in self.topics.items() for p in range(count)]
        try:
            with ThreadPoolExecutor(_THREADS) as pool:
                marks = dict(zip(places, pool.map(self._watermarks, places), strict=True))
            self._fetch_one_of_each({place: low for place, (low, high) in marks.items() if low < high})
        except KafkaException as error:
            raise self._unreadable(error) from None
        return f"{number(sum(high - low for low, high in marks.values()))} records can be read"

    def _watermarks(self, place: Place) -> tuple[int, int]:
        assert self._consumer is not None
        low, high = self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=self.timeout_s)
        return low, high

    def _fetch_one_of_each(self, starts: dict[Place, int]) -> None:
        """One record (or the end mark) of one partition of every topic: rights to describe are not rights to read."""
        assert self._consumer is not None
        pending = {topic: TopicPartition(topic, partition, start) for (topic, partition), start in starts.items()}
        self._consumer.assign(list(pending.values()))
        deadline = monotonic_s() + self.timeout_s
        while pending:
            if monotonic_s() > deadline:
                raise TransientError(
                    f"no record came from {', '.join(sorted(pending))} within {self.timeout_s:g} s",
                    do_next="check the brokers and the network",
                )
            for message in self._consumer.consume(100, 0.1):
                self._note(message, pending)

    def _note(self, message: Message, pending: dict[str, TopicPartition]) -> None:
        error, topic = message.error(), message.topic()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise self._unreadable(error, topic=topic)
        value = message.value() if error is None else None
        if topic is not None and isinstance(value, bytes):
            self.samples.setdefault(topic, value)
        if topic in pending and self._consumer is not None:
            self._consumer.incremental_unassign([pending.pop(topic)])

    def _unreadable(self, error: KafkaException | KafkaError, **where: object) -> LakeError:
        config = self.kafka.client_properties()
        return failure(config, error, self._complaints.take(), "cannot read from Kafka", **where)
