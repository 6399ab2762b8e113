"""The stream's topics on the driver: the start offsets, whether a topic was replaced, and new partitions."""

from __future__ import annotations

import logging
import re
import threading

from confluent_kafka import KafkaException

from binlake.position.ledger import Ledger
from binlake.settings import KafkaSettings
from binlake.source.fetch import broker_failure, consumer_for
from binlake.source.log_tail import watermarks
from binlake.source.offsets import OffsetMap, OffsetRange, describe, missing_error
from binlake.source.positions import Start, check_topic_ids, starting_positions, topic_ids, topics_of
from hudilake.clock import monotonic_s
from hudilake.errors import TransientError

_log = logging.getLogger(__name__)

_CHECK_EVERY_S = 30.0
_LOOK_EVERY_S = 2.0
_ASK_S = 10.0
_MAPPING = (
    "the source's keys may lie in other partitions than before, so changes of one key may come from two partitions: "
    "their order is that of the binlog, not Kafka's"
)


class Topics:
    """The topics of one stream. ``ledger``: holds their ids; this class changes it, and the owner saves it."""

    def __init__(self, kafka: KafkaSettings, ledger: Ledger) -> None:
        self._kafka = kafka
        self._ledger = ledger
        self._config = kafka.client_properties()
        self._checked_s = 0.0
        self._notices: list[str] = []

    def start(self, *, whole: bool, skip_missing: bool) -> Start:
        """The start of the stream. Arguments and errors as for ``starting_positions``."""
        names = topics_of(self._config, self._kafka.read_topics, self._kafka.read_pattern)
        self._check_ids(names)
        known, kafka = self._ledger.positions, self._kafka
        start = starting_positions(self._config, names, known, kafka.start, whole=whole, skip_missing=skip_missing)
        start.missing += self._missing_for_tables_behind(skip_missing=skip_missing)
        for gone in start.missing:
            self._ledger.note_skipped(gone)
        if start.missing:
            self._notices.append(f"offsets that Kafka has no more are left out: {describe(start.missing)}")
        for topic, partition in start.added:
            self._notice_added(topic, partition)
        return start

    def check(self) -> None:
        """Check at intervals that the topics are still those that the stream began with. Raises BadInputError.

        If Kafka does not answer in time, the stream goes on, and the check is repeated later.
        """
        if monotonic_s() - self._checked_s >= _CHECK_EVERY_S:
            self._checked_s = monotonic_s()
            try:
                self._check_ids(list(self._ledger.positions))
            except TransientError as error:
                fields = {"event": "topics_not_checked", "error": error.what}
                _log.info("the topics could not be checked and will be checked later: %s", error, extra=fields)

    def check_all_there(self) -> None:
        """Raise BadInputError if Kafka no longer has the records that the stream would read next."""
        names = list(self._ledger.positions)
        self._check_ids(names)
        starting_positions(self._config, names, self._ledger.positions, self._kafka.start)

    def planned(self, end: OffsetMap) -> None:
        """Note partitions that a batch covers and that are new to the stream."""
        mine = self._ledger.positions
        for topic, partition, _ in mine.lacks(end).places():
            if mine.get(topic):
                self._notice_added(topic, partition)

    def take_notices(self) -> tuple[str, ...]:
        """The notices for people; each is returned once."""
        notices, self._notices = tuple(dict.fromkeys(self._notices)), []
        return notices

    def _check_ids(self, names: list[str]) -> None:
        now = topic_ids(self._config, names)
        check_topic_ids(self._ledger.topic_ids, now)
        self._ledger.note_topic_ids(now)
        self._checked_s = monotonic_s()

    def _missing_for_tables_behind(self, *, skip_missing: bool) -> list[OffsetRange]:
        """The ranges that Kafka has deleted among the records that tables which are behind still need.

        A paused or stopped table holds up no other: it learns of them when it is tried, and can be fetched anew.
        """
        missing: dict[OffsetRange, None] = {}
        held = self._ledger.paused.keys() | self._ledger.stopped.keys()
        for table, start in dict(self._ledger.behind).items():
            if table in held and not skip_missing:
                continue
            for topic, partition, position in start.places():
                low, _ = watermarks(self._config, topic, partition)
                if position < low:
                    gone = OffsetRange(topic, partition, position, low)
                    missing[gone] = None
                    if skip_missing:
                        self._ledger.skip_behind(table, gone)
        if missing and not skip_missing:
            raise missing_error(missing)
        return list(missing)

    def _notice_added(self, topic: str, partition: int) -> None:
        self._notices.append(f"{topic} has a new partition {partition}, which is read from its beginning; {_MAPPING}")


def await_topics(kafka: KafkaSettings, stop: threading.Event) -> None:
    """Wait until Kafka has all topics that are named, and one that the pattern matches; at most ``kafka.wait_seconds``,
    and until ``stop`` is set. The log says what is missing. Raises TransientError, ConfigError."""
    began_s, said = monotonic_s(), ""
    while (missing := _missing(kafka)) and monotonic_s() - began_s < kafka.wait_seconds:
        if missing != said:
            _log.info("waiting up to %.0f s for topics: %s", kafka.wait_seconds, missing)
            said = missing
        if stop.wait(_LOOK_EVERY_S):
            return


def _missing(kafka: KafkaSettings) -> str:
    """The topics that Kafka does not have, in words; "" if it has all."""
    config = kafka.client_properties()
    try:
        topics = consumer_for(config).list_topics(timeout=_ASK_S).topics
    except KafkaException as error:
        raise broker_failure(config, error, "Kafka does not answer") from None
    there = [name for name, topic in topics.items() if topic.error is None]
    words = [f"there is no {name}" for name in (*kafka.read_topics, *kafka.ddl_topics) if name not in there]
    if kafka.topic_pattern is not None and not any(re.fullmatch(kafka.topic_pattern, name) for name in there):
        words.append(f"none matches {kafka.topic_pattern}")
    return ", ".join(words)
