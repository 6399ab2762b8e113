"""Starting positions of a stream: the topics' partitions in Kafka, checked against the stream's own positions."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]
from confluent_kafka.admin._listoffsets import OffsetSpec

from binlake.source.client import Complaints, failure
from binlake.source.fetch import broker_failure, consumer_for, fetch
from binlake.source.log_tail import partitions_of, watermarks
from binlake.source.offsets import (
    NEW_TOPIC,
    NO_OFFSETS,
    OffsetMap,
    OffsetRange,
    Offsets,
    Place,
    made_anew,
    missing_error,
)
from hudilake.errors import BadInputError, ConfigError

#: Topic -> id, which distinguishes it from an earlier topic of the same name.
TopicIds = dict[str, str]
_NO_ID = "0" * 32
_ASK_S = 10.0


@dataclass
class Start:
    """The starting point of a stream.

    Args:
        positions: the next offset of every partition.
        missing: ranges that were deleted before they were read, and are skipped on request.
        added: partitions that a topic has got since the stream last read it.
    """

    positions: Offsets = NO_OFFSETS
    missing: list[OffsetRange] = field(default_factory=list)
    added: list[tuple[str, int]] = field(default_factory=list)


def topics_of(config: Mapping[str, str], names: Sequence[str], pattern: str | None) -> list[str]:
    """The named topics, or those whose whole name matches the pattern. Raises ConfigError if there are none."""
    if not pattern:
        return list(names)
    try:
        known = consumer_for(config).list_topics(timeout=_ASK_S).topics
    except KafkaException as error:
        raise broker_failure(config, error, "Kafka does not answer") from None
    matching_topics = sorted(t for t in known if re.fullmatch(pattern, t))
    if not matching_topics:
        raise ConfigError(
            f"no topic matches {pattern!r}", do_next="correct kafka.topic_pattern, or wait for the connector"
        )
    return matching_topics


def starting_positions(
    config: Mapping[str, str],
    topics: Sequence[str],
    known: OffsetMap,
    start: str,
    *,
    whole: bool = True,
    skip_missing: bool = False,
) -> Start:
    """The next offset of every partition: the known one, else the first available (or the end, for ``latest``).

    A partition that was added to a known topic is read from its beginning. ``whole``: ``known`` has all partitions that
    the stream ever saw, so that others are new. Raises BadInputError with all affected partitions where offsets are no
    longer there (aged out), unless ``skip_missing``, or do not exist yet (topic created again).
    """
    result, places = Start(), list[Place]()
    for topic in topics:
        mine = known.get(topic, {})
        for partition in partitions_of(config, topic):
            low, high = watermarks(config, topic, partition)
            unseen = high if start == "latest" and not mine else low
            if whole and mine and partition not in mine:
                result.added.append((topic, partition))
                unseen = 0
            first = mine.get(partition, unseen)
            if first > high:
                raise made_anew(topic, partition, first, high)
            if first < low:
                result.missing.append(OffsetRange(topic, partition, first, low))
            places.append((topic, partition, max(first, low)))
    if result.missing and not skip_missing:
        raise missing_error(result.missing)
    result.positions = Offsets.of_places(places)
    return result


def end_offsets(
    config: Mapping[str, str], places: Offsets, timeout_s: float, admin: Administration | None = None
) -> Offsets:
    """The next offset of every partition (of committed transactions), in one call.

    ``admin``: a client that is kept, for who asks again and again. Raises TransientError, ConfigError.
    """
    return _listed(admin or Administration(config), places, OffsetSpec.latest(), timeout_s)  # type: ignore[no-untyped-call]


def first_offsets(config: Mapping[str, str], places: Offsets, timeout_s: float) -> Offsets:
    """The first offset that Kafka still has of every partition, in one call. Raises TransientError, ConfigError."""
    return _listed(Administration(config), places, OffsetSpec.earliest(), timeout_s)  # type: ignore[no-untyped-call]


def _listed(kept: Administration, places: Offsets, spec: OffsetSpec, timeout_s: float) -> Offsets:
    wanted = {TopicPartition(topic, partition): spec for topic, partition, _ in places.places()}
    if not wanted:
        return NO_OFFSETS
    with kept.asking("Kafka does not tell offsets") as admin:
        asked = admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=timeout_s)
        return Offsets.of_places((p.topic, p.partition, answer.result().offset) for p, answer in asked.items())


def retention_ms(config: Mapping[str, str], topics: Sequence[str]) -> dict[str, int]:
    """How long Kafka keeps the records of topics, in ms; topics that keep them for ever are left out, and so are those
    whose configuration the user may not see. Raises TransientError, ConfigError."""
    values = _values_of(config, topics, "retention.ms")
    return {topic: int(value) for topic, value in values.items() if int(value) >= 0}


def compacted_topics(config: Mapping[str, str], topics: Sequence[str]) -> list[str]:
    """The topics of which Kafka keeps the newest record of each key alone, as far as the user may see it. Raises
    TransientError, ConfigError."""
    return sorted(t for t, value in _values_of(config, topics, "cleanup.policy").items() if "compact" in value)


def _values_of(config: Mapping[str, str], topics: Sequence[str], name: str) -> dict[str, str]:
    values: dict[str, str] = {}
    if not topics:
        return values
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    with Administration(config).asking(f"Kafka does not tell the topics' {name}") as admin:
        for resource, answer in admin.describe_configs(resources, request_timeout=_ASK_S).items():
            with contextlib.suppress(KafkaException):
                values[resource.name] = str(answer.result()[name].value)
    return values


def topic_ids(config: Mapping[str, str], topics: Sequence[str]) -> TopicIds:
    """The ids of topics; missing topics and topics without an id are left out. Raises TransientError, ConfigError."""
    ids: TopicIds = {}
    if not topics:
        return ids
    with Administration(config).asking("Kafka does not describe the topics") as admin:
        asked = admin.describe_topics(TopicCollection(list(topics)), request_timeout=_ASK_S)
        for topic, answer in asked.items():
            try:
                topic_id = answer.result().topic_id
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise failure(config, error, (), "Kafka does not describe a topic", topic=topic) from None
            parts = (topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits())
            text = "".join(f"{part & (1 << 64) - 1:016x}" for part in parts)
            if text != _NO_ID:
                ids[topic] = text
    return ids


def check_topic_ids(remembered: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raise BadInputError where a topic was created again: offsets below the stream's now mean other records."""
    changed = sorted(topic for topic, was in remembered.items() if now.get(topic, was) != was)
    if changed:
        raise BadInputError(
            "topics were deleted and created again since the stream read them: their offsets "
            "now belong to other records",
            do_next=NEW_TOPIC,
            topics=", ".join(changed),
        )


class Administration:
    """Kafka's administration client. It is made when it is first used, and keeps its connections."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._config = config
        self._complaints = Complaints()
        self._client: AdminClient | None = None

    @contextmanager
    def asking(self, what: str) -> Iterator[AdminClient]:
        """The client for a few calls; its errors become binlake's own, with ``what`` in front."""
        try:
            if self._client is None:
                self._client = AdminClient({"log_level": 0, **self._config, "error_cb": self._complaints})  # type: ignore[dict-item]
            try:
                yield self._client
            except KafkaException:
                self._client.poll(0)
                raise
        except KafkaException as error:
            raise failure(self._config, error, self._complaints.take(), what) from None


# Times in Kafka: the offset of a topic at a time, and the time of the newest record read.

#: Not every offset has a record: transaction markers and compaction leave gaps.
_LOOK_BACK = 100


def newest_read_ms(config: Mapping[str, str], positions: Offsets) -> int:
    """The time (ms since the epoch) of the newest record below the positions, 0 if none is there.

    The records of a partition are assumed to be in order of time. Raises TransientError, ConfigError.
    """
    newest_ms = 0
    for topic, partition, position in positions.places():
        low, _ = watermarks(config, topic, partition)
        last = OffsetRange(topic, partition, max(low, position - _LOOK_BACK), position)
        for records in fetch(config, [last], timeout_s=30.0, chunk_records=_LOOK_BACK) if len(last) else ():
            newest_ms = max(newest_ms, *records.timestamps_ms.tolist())
    return newest_ms


def offset_at(config: Mapping[str, str], topic: str, partition: int, time_ms: int) -> int:
    """The offset of the first record at or after a time (ms since the epoch); the topic's end if there is none.

    Raises TransientError, ConfigError.
    """
    try:
        offsets = consumer_for(config).offsets_for_times([TopicPartition(topic, partition, time_ms)], timeout=_ASK_S)
    except KafkaException as error:
        raise broker_failure(config, error, "Kafka does not tell offsets", topic=topic) from None
    return int(offsets[0].offset) if offsets[0].offset >= 0 else watermarks(config, topic, partition)[1]
