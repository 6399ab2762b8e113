"""Follows one small topic from its beginning, on the driver (the connector's schema-change topic)."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaException, TopicPartition

from binlake.decode.changes import RawRecords
from binlake.source.fetch import broker_failure, consumer_for, fetch
from binlake.source.offsets import OffsetRange, Offsets
from hudilake.errors import ConfigError

_ASK_S = 10.0


class LogTail:
    """Reads the records that were added to a topic since the last call."""

    def __init__(self, config: Mapping[str, str], topic: str) -> None:
        self._config = dict(config)
        self._topic = topic
        self._next: dict[int, int] = {}

    @property
    def read(self) -> Offsets:
        """Up to where it has read."""
        return Offsets({self._topic: self._next} if self._next else {})

    def poll(self) -> list[RawRecords]:
        """All records added since the last call; at the first call all records. Raises TransientError, ConfigError."""
        if not self._next:
            self._next = dict.fromkeys(partitions_of(self._config, self._topic), 0)
        ranges = []
        for partition, position in self._next.items():
            low, high = watermarks(self._config, self._topic, partition)
            ranges.append(OffsetRange(self._topic, partition, max(low, position), high))
        records = list(fetch(self._config, [r for r in ranges if len(r)], timeout_s=30.0, chunk_records=10_000))
        for r in ranges:
            self._next[r.partition] = max(r.end, self._next[r.partition])
        return records


def partitions_of(config: Mapping[str, str], topic: str) -> list[int]:
    """The partitions of a topic. Raises ConfigError if the topic does not exist, TransientError."""
    try:
        topic_metadata = consumer_for(config).list_topics(topic, timeout=_ASK_S).topics[topic]
    except KafkaException as error:
        raise broker_failure(config, error, "Kafka does not answer", topic=topic) from None
    if topic_metadata.error is not None:
        raise ConfigError(
            f"the topic cannot be read: {topic_metadata.error.str()}",
            do_next="correct kafka.*, or allow the user READ on the topic: a topic that the user may "
            "not describe is not visible",
            topic=topic,
        )
    return sorted(topic_metadata.partitions)


def watermarks(config: Mapping[str, str], topic: str, partition: int) -> tuple[int, int]:
    """The first available offset, and the next one to be written (of committed transactions)."""
    try:
        low, high = consumer_for(config).get_watermark_offsets(TopicPartition(topic, partition), timeout=_ASK_S)
    except KafkaException as error:
        where = {"topic": topic, "partition": partition}
        raise broker_failure(config, error, "Kafka does not tell offsets", **where) from None
    return low, high
