"""The stream's topics on the driver: the start offsets, whether a topic was replaced, and new partitions."""

from __future__ import annotations

import logging

from binlake.position.ledger import Ledger
from binlake.settings import KafkaSettings
from binlake.source.log_tail import watermarks
from binlake.source.offsets import OffsetMap, OffsetRange, Offsets, describe, missing_error
from binlake.source.positions import Start, check_topic_ids, starting_positions, topic_ids, topics_of
from hudilake.clock import monotonic_s
from hudilake.errors import TransientError

_log = logging.getLogger(__name__)

_CHECK_EVERY_S = 30.0
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
        for topic, partition, _ in Offsets(end).places():
            if mine.get(topic) and not mine.knows(topic, partition):
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
