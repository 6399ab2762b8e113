"""Debezium's schema change topics of a stream whose settings name none.

With JSON without schemas, only these topics tell the columns' types, and with schemas only they tell BIGINT UNSIGNED
from BIGINT. Debezium names the topic like ``topic.prefix``, with which the names of all topics of its tables begin. A
stream that has read messages with schemas before goes on without the topic: its old statements would come late.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaException

from binlake.decode.messages.format_detection import detect_format, has_schema, has_statement
from binlake.decode.options import EventFormat
from binlake.settings import Settings
from binlake.source.fetch import broker_failure, consumer_for, fetch
from binlake.source.log_tail import partitions_of, watermarks
from binlake.source.offsets import OffsetRange
from binlake.source.positions import topics_of
from binlake.tables.ddl_topics import may_find_topics, naming, with_heard_topics
from hudilake.storage import open_storage

_log = logging.getLogger(__name__)

_ASK_S = 10.0
#: Records of a partition, and topics of a connector, that are looked at for a message.
_RECORDS, _TOPICS = 20, 20


def with_ddl_topics(settings: Settings, *, new: bool) -> Settings:
    """The settings with the topics that the stream has read before, or that Kafka has.

    Unchanged where they name topics (or ``[]`` for none), where they need none and where there are none. ``new``: the
    stream has written nothing yet. Raises TransientError and ConfigError where Kafka cannot be asked, StorageError and
    CorruptDataError.
    """
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    heard = with_heard_topics(settings, root)
    return heard if heard is not settings else with_found_topics(settings, new=new)


def with_found_topics(settings: Settings, *, new: bool) -> Settings:
    """The same without a look at the lake."""
    topics = _found(settings, new=new) if may_find_topics(settings) else []
    if not topics:
        return settings
    _log.info("schema changes come from %s, since kafka.ddl_topics names no topic", ", ".join(topics))
    return naming(settings, topics)


def prefix_of(topic: str) -> str | None:
    """The connector's ``topic.prefix`` in the name of a table's topic, ``<prefix>.<database>.<table>``; None if it has
    none."""
    prefix, *rest = topic.rsplit(".", 2)
    return prefix if len(rest) == 2 and prefix else None


def _found(settings: Settings, *, new: bool) -> list[str]:
    kafka = settings.kafka
    config = kafka.client_properties()
    mine = topics_of(config, kafka.topics, kafka.topic_pattern)
    try:
        known = consumer_for(config).list_topics(timeout=_ASK_S).topics
    except KafkaException as error:
        raise broker_failure(config, error, "Kafka does not answer") from None
    by_prefix: dict[str, list[str]] = {}
    for topic in mine:
        prefix = prefix_of(topic)
        if prefix in known and topic in known:
            by_prefix.setdefault(str(prefix), []).append(topic)
    return [p for p, topics in sorted(by_prefix.items()) if _need(config, topics, new=new) and _tells(config, p)]


def _need(config: Mapping[str, str], topics: Iterable[str], *, new: bool) -> bool:
    """Whether the first message of some topics is Debezium's and, but for a new stream, has no schema."""
    for topic in list(topics)[:_TOPICS]:
        value = _first_value(config, topic)
        if value is not None:
            return detect_format(value) is EventFormat.DEBEZIUM and (new or not has_schema(value))
    return False


def _tells(config: Mapping[str, str], topic: str) -> bool:
    """Whether a topic has statements in place of rows."""
    value = _first_value(config, topic)
    return value is not None and has_statement(value)


def _first_value(config: Mapping[str, str], topic: str) -> bytes | None:
    for partition in partitions_of(config, topic):
        low, high = watermarks(config, topic, partition)
        if low < high:
            piece = OffsetRange(topic, partition, low, min(high, low + _RECORDS))
            for records in fetch(config, [piece], timeout_s=_ASK_S, chunk_records=_RECORDS):
                value = next((value for value in records.values if value), None)
                if value is not None:
                    return value
    return None
