"""Is Kafka there, are the topics, and may we read them? Asked with the client and the properties the stream uses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin._metadata import TopicMetadata

from binlake.decode.changes import RawRecords
from binlake.settings import KafkaSettings
from binlake.source.client import Complaints, failure, make_consumer
from binlake.source.java_client import java_properties
from binlake.stream.spark.lines import check_fetch, connector_coordinate
from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError, LakeError, TransientError
from hudilake.wording import counted

_THREADS = 16
#: Records that are sampled of a topic: as many as this at most, as few as that where there are many topics.
_MOST, _LEAST, _ALTOGETHER = 100, 5, 20_000

Place = tuple[str, int]


@dataclass
class KafkaProbe:
    """The checks of one ``kafka`` section. The steps fill ``topics``, name -> number of partitions, ``samples``, the
    first records of a partition of each topic that has some, and ``deleted``, name -> records that Kafka has deleted.

    ``timeout_s`` is how long each answer may take, in seconds.
    """

    kafka: KafkaSettings
    timeout_s: float = 10.0
    topics: dict[str, int] = field(default_factory=dict)
    samples: dict[str, RawRecords] = field(default_factory=dict)
    deleted: Counter[str] = field(default_factory=Counter)
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
        check_fetch(self.kafka.fetch)
        if connector_coordinate():
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
        return f"{counted(len(wanted), 'topic')}, {sum(self.topics.values())} partitions"

    def _wanted(self, known: dict[str, TopicMetadata]) -> list[str]:
        if self.kafka.topic_pattern is None:
            return list(self.kafka.topics)
        return [name for name in sorted(known) if re.fullmatch(self.kafka.topic_pattern, name)]

    def _read(self) -> str:
        places = [(topic, p) for topic, count in self.topics.items() for p in range(count)]
        try:
            with ThreadPoolExecutor(_THREADS) as pool:
                marks = dict(zip(places, pool.map(self._watermarks, places), strict=True))
            for (topic, _), (low, _) in marks.items():
                self.deleted[topic] += low
            self._fetch_samples({place: low for place, (low, high) in marks.items() if low < high})
        except KafkaException as error:
            raise self._unreadable(error) from None
        return f"{counted(sum(high - low for low, high in marks.values()), 'record')} can be read"

    def _watermarks(self, place: Place) -> tuple[int, int]:
        assert self._consumer is not None
        low, high = self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=self.timeout_s)
        return low, high

    def _fetch_samples(self, starts: dict[Place, int]) -> None:
        """The first records (or the end mark) of one partition of every topic: rights to describe are not rights to
        read."""
        assert self._consumer is not None
        pending = {topic: TopicPartition(topic, partition, start) for (topic, partition), start in starts.items()}
        each = max(_LEAST, min(_MOST, _ALTOGETHER // max(1, len(pending))))
        records: dict[str, list[Message]] = {topic: [] for topic in pending}
        self._consumer.assign(list(pending.values()))
        deadline = monotonic_s() + self.timeout_s
        while pending:
            if monotonic_s() > deadline:
                silent = sorted(topic for topic in pending if not records[topic])
                if not silent:
                    break
                raise TransientError(
                    f"no record came from {', '.join(silent)} within {self.timeout_s:g} s",
                    do_next="check the brokers and the network",
                )
            for message in self._consumer.consume(100, 0.1):
                self._note(message, pending, records, each)
        self.samples = {topic: _raw(some) for topic, some in records.items() if some}

    def _note(
        self,
        message: Message,
        pending: dict[str, TopicPartition],
        records: dict[str, list[Message]],
        each: int,
    ) -> None:
        error, topic = message.error(), message.topic()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise self._unreadable(error, topic=topic)
        if topic not in pending or self._consumer is None:
            return
        if error is None:
            records[topic].append(message)
        if error is not None or len(records[topic]) >= each:
            self._consumer.incremental_unassign([pending.pop(topic)])

    def _unreadable(self, error: KafkaException | KafkaError, **where: object) -> LakeError:
        config = self.kafka.client_properties()
        return failure(config, error, self._complaints.take(), "cannot read from Kafka", **where)


def _raw(messages: Sequence[Message]) -> RawRecords:
    """Messages of one partition as the decoder takes them."""
    first = messages[0]
    return RawRecords(
        str(first.topic()),
        int(first.partition() or 0),
        np.array([message.offset() for message in messages], dtype=np.int64),
        np.array([message.timestamp()[1] for message in messages], dtype=np.int64),
        [_bytes(message.key()) for message in messages],
        [_bytes(message.value()) for message in messages],
    )


def _bytes(text: str | bytes | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
