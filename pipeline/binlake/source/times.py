"""Times in Kafka: the offset of a topic at a time, and the time of the newest record read."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaException, TopicPartition

from binlake.source.fetch import broker_failure, consumer_for, fetch
from binlake.source.log_tail import watermarks
from binlake.source.offsets import OffsetRange, Offsets

_ASK_S = 10.0
#: Not every offset has a record: transaction markers and compaction leave gaps.
_LOOK_BACK = 100


def newest_read_ms(config: Mapping[str, str], positions: Offsets) -> int:
    """The time (ms since the epoch) of the newest record below the positions, 0 if none is there.

    The records of a partition are assumed to be in order of time. Raises TransientError, ConfigError.
    """
    found = 0
    for topic, partition, position in positions.places():
        low, _ = watermarks(config, topic, partition)
        last = OffsetRange(topic, partition, max(low, position - _LOOK_BACK), position)
        for records in fetch(config, [last], timeout_s=30.0, chunk_records=_LOOK_BACK) if len(last) else ():
            found = max(found, *records.timestamps_ms.tolist())
    return found


def offset_at(config: Mapping[str, str], topic: str, partition: int, time_ms: int) -> int:
    """The offset of the first record at or after a time (ms since the epoch); the topic's end if there is none.

    Raises TransientError, ConfigError.
    """
    try:
        found = consumer_for(config).offsets_for_times([TopicPartition(topic, partition, time_ms)], timeout=_ASK_S)
    except KafkaException as error:
        raise broker_failure(config, error, "Kafka does not tell offsets", topic=topic) from None
    return int(found[0].offset) if found[0].offset >= 0 else watermarks(config, topic, partition)[1]
