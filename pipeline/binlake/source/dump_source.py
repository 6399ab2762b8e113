"""Sources of the records of a dump: Kafka, or a replacement in tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from binlake.decode.changes import RawRecords
from binlake.settings import Settings
from binlake.source.fetch import fetch
from binlake.source.offsets import OffsetRange, Offsets
from binlake.source.positions import TopicIds, end_offsets, starting_positions, topic_ids, topics_of

_CHUNK_RECORDS = 10_000
_TIMEOUT_S = 60.0


class RecordSource(Protocol):
    """A source of records."""

    def start(self, known: Offsets) -> Offsets:
        """The next offset of every existing partition, given the known ones."""
        ...

    def ids(self, topics: Sequence[str]) -> TopicIds:
        """The ids that distinguish topics from others of the same name; topics without an id are left out."""
        ...

    def ends(self, places: Offsets) -> Offsets:
        """The end of every partition."""
        ...

    def read(self, ranges: Sequence[OffsetRange]) -> Iterator[RawRecords]:
        """The records of the ranges, in order within each partition."""
        ...


class KafkaSource:
    """The topics of the settings, including the schema change topics.

    ``skip_missing``: continue without offsets that Kafka deleted before they were dumped.
    """

    def __init__(self, settings: Settings, *, skip_missing: bool = False) -> None:
        self._kafka, self._skip_missing = settings.kafka, skip_missing
        self._config = settings.kafka.client_properties()

    def start(self, known: Offsets) -> Offsets:
        """See RecordSource. Errors as ``starting_positions``."""
        data = topics_of(self._config, self._kafka.topics, self._kafka.topic_pattern)
        positions = self._start(data, known, self._kafka.start)
        ddl = [topic for topic in self._kafka.ddl_topics if topic not in positions]
        return positions.merge(self._start(ddl, known, "earliest"))

    def _start(self, topics: Sequence[str], known: Offsets, start: str) -> Offsets:
        return starting_positions(self._config, topics, known, start, skip_missing=self._skip_missing).positions

    def ids(self, topics: Sequence[str]) -> TopicIds:
        """See RecordSource. Raises TransientError."""
        return topic_ids(self._config, topics)

    def ends(self, places: Offsets) -> Offsets:
        """See RecordSource. Raises TransientError."""
        return end_offsets(self._config, places, _TIMEOUT_S)

    def read(self, ranges: Sequence[OffsetRange]) -> Iterator[RawRecords]:
        """See RecordSource. Errors as ``fetch``."""
        return fetch(self._config, ranges, timeout_s=_TIMEOUT_S, chunk_records=_CHUNK_RECORDS)
