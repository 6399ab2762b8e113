"""Where a stream may start: the topics' partitions as Kafka has them, checked against where the stream says it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from pipeline.errors import BadInputError, ConfigError, TransientError
from pipeline.source.fetch import consumer_for
from pipeline.source.log_tail import partitions_of, watermarks
from pipeline.source.ranges import Positions


def topics_of(config: Mapping[str, str], names: Sequence[str], pattern: str | None) -> list[str]:
    """The topics by name, or those whose whole name the pattern matches. Raises ConfigError if there are none."""
    if not pattern:
        return list(names)
    try:
        known = consumer_for(config).list_topics(timeout=10.0).topics
    except KafkaException as error:
        raise TransientError(f"Kafka does not answer: {error}", do_next="look at the broker") from error
    found = sorted(t for t in known if re.fullmatch(pattern, t))
    if not found:
        raise ConfigError(
            f"no topic matches {pattern!r}", do_next="correct kafka.topic_pattern, or wait for the connector"
        )
    return found


def starting_positions(
    config: Mapping[str, str], topics: Sequence[str], known: Mapping[str, Mapping[int, int]], start: str
) -> Positions:
    """The next offset of every partition: the known one, else the first there is (or the end, for ``latest``).

    Raises BadInputError where a known position is not there any more (aged out) or not there yet (topic recreated).
    """
    consumer = consumer_for(config)
    result: Positions = {}
    for topic in topics:
        for partition in partitions_of(consumer, topic):
            low, high = watermarks(consumer, topic, partition)
            mine = known.get(topic, {}).get(partition)
            if mine is None:
                mine = high if start == "latest" else low
            elif not low <= mine <= high:
                raise _lost(topic, partition, mine, low, high)
            result.setdefault(topic, {})[partition] = mine
    return result


def end_offsets(config: Mapping[str, str], places: Positions, timeout_s: float) -> Positions:
    """The next offset of every partition (of committed transactions), asked for at once. Raises TransientError."""
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    wanted = {TopicPartition(t, p): latest for t, parts in places.items() for p in parts}
    ends: Positions = {}
    if not wanted:
        return ends
    admin = AdminClient({"log_level": 0, **config})
    asked = admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=timeout_s)
    for place, answer in asked.items():
        try:
            ends.setdefault(place.topic, {})[place.partition] = answer.result().offset
        except KafkaException as error:
            raise TransientError(
                f"Kafka does not tell offsets: {error.args[0].str()}", do_next="look at the brokers"
            ) from error
    return ends


def _lost(topic: str, partition: int, mine: int, low: int, high: int) -> BadInputError:
    if mine < low:
        what = f"offsets {mine} to {low - 1} were deleted from Kafka before they were read"
        then = "take a new snapshot of this topic's tables, then set the position in the ledger to the first offset"
    else:
        what = f"the stream stands at offset {mine} but the partition ends at {high}: the topic was made anew"
        then = "give the stream a new name and a new lake path, or restore the topic"
    return BadInputError(what, do_next=then, topic=topic, partition=partition, position=mine, first=low, end=high)
