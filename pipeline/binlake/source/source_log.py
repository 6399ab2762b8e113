"""The log that a stream reads, as commands and the driver ask it: Kafka's topics, or the binlog of a server.

What the stream itself reads comes another way: tasks fetch from Kafka (``fetch``), a thread follows a binlog
(``binlog.feed``). Both give raw records with offsets, and from there on there is no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

from binlake.decode.changes import RawRecords
from binlake.settings import Settings
from binlake.source.binlog.places import PARTITION, BinlogServer
from binlake.source.binlog.reading import BinlogSource
from binlake.source.fetch import fetch
from binlake.source.log_tail import partitions_of, watermarks
from binlake.source.offsets import Offsets, Ranges
from binlake.source.positions import end_offsets, first_offsets, retention_ms

_CHUNK_RECORDS = 20_000
T = TypeVar("T")


class SourceLog(Protocol):
    """Topic partitions that can be asked and read again. Every method may raise TransientError and ConfigError."""

    def ends(self, places: Offsets, timeout_s: float) -> Offsets:
        """The next offset to be written of each of these partitions. Of a binlog it is the given offset, and as many
        more as bytes are left: a difference of its offsets would count nothing."""
        ...

    def bytes_behind(self, places: Mapping[T, Offsets]) -> Mapping[T, int]:
        """How many bytes are left behind each of these places of a binlog; nothing where offsets count records."""
        ...

    def firsts(self, places: Offsets, timeout_s: float) -> Offsets:
        """The first offset that is still there of each of these partitions."""
        ...

    def retention_ms(self, topics: Iterable[str]) -> Mapping[str, int]:
        """How long the records of topics are kept, in ms; topics of which it is not known are left out."""
        ...

    def held(self, topic: str, partition: int) -> tuple[int, int]:
        """The first available offset of a partition, and the next one to be written."""
        ...

    def partitions(self, topic: str) -> list[int]:
        """The partitions of a topic."""
        ...

    def read(self, ranges: Ranges) -> Iterator[RawRecords]:
        """The records of ranges that are held, in chunks of one topic partition each."""
        ...


def source_log(settings: Settings, timeout_s: float = 60.0) -> SourceLog:
    """The log that the stream of these settings reads. ``timeout_s``: how long a record may take to come."""
    return BinlogLog(settings) if settings.source.mysql is not None else KafkaLog(settings, timeout_s)


@dataclass(frozen=True)
class KafkaLog:
    """The topics of a stream in Kafka. See SourceLog."""

    settings: Settings
    timeout_s: float = 60.0

    @cached_property
    def _config(self) -> dict[str, str]:
        return self.settings.kafka.client_properties()

    def ends(self, places: Offsets, timeout_s: float) -> Offsets:
        """Of committed transactions, in one call."""
        return end_offsets(self._config, places, timeout_s)

    def bytes_behind(self, places: Mapping[T, Offsets]) -> Mapping[T, int]:
        """Nothing."""
        return {}

    def firsts(self, places: Offsets, timeout_s: float) -> Offsets:
        """In one call."""
        return first_offsets(self._config, places, timeout_s)

    def retention_ms(self, topics: Iterable[str]) -> Mapping[str, int]:
        """From the configuration of the topics, where the user may see it."""
        return retention_ms(self._config, list(topics))

    def held(self, topic: str, partition: int) -> tuple[int, int]:
        """The watermarks."""
        return watermarks(self._config, topic, partition)

    def partitions(self, topic: str) -> list[int]:
        """Those that the brokers name."""
        return partitions_of(self._config, topic)

    def read(self, ranges: Ranges) -> Iterator[RawRecords]:
        """Errors as ``fetch``."""
        return fetch(self._config, ranges, timeout_s=self.timeout_s, chunk_records=_CHUNK_RECORDS)


def ends_by_bytes(server: BinlogServer, places: Offsets) -> Offsets:
    """The offsets of a server's binlog, each with as many added as bytes are left behind it."""
    mine = [(t, p, offset) for t, p, offset in places.places() if (t, p) == (server.topic, PARTITION)]
    return Offsets.of_places((t, p, offset + server.left_after(offset)) for t, p, offset in mine)


@dataclass(frozen=True)
class BinlogLog:
    """The binlog of the stream's server. See SourceLog. What is asked of another server's binlog is not there."""

    settings: Settings

    @cached_property
    def _source(self) -> BinlogSource:
        return BinlogSource.open(self.settings)

    def ends(self, places: Offsets, timeout_s: float) -> Offsets:
        """From the sizes of the files (SHOW BINARY LOGS)."""
        return ends_by_bytes(self._source.now(), places)

    def bytes_behind(self, places: Mapping[T, Offsets]) -> Mapping[T, int]:
        """From the sizes of the files, asked once for all places."""
        server = self._source.now() if places else None
        return {key: ends_by_bytes(server, place).minus(place).total for key, place in places.items() if server}

    def firsts(self, places: Offsets, timeout_s: float) -> Offsets:
        """The beginning of the oldest file, from SHOW BINARY LOGS."""
        server = self._source.now()
        return Offsets({server.topic: {PARTITION: server.start}}).within(places)

    def retention_ms(self, topics: Iterable[str]) -> Mapping[str, int]:
        """Nothing: files go when they are old, or when someone deletes them."""
        return {}

    def held(self, topic: str, partition: int) -> tuple[int, int]:
        """The first event that the server has, and its end."""
        server = self._source.now()
        return (server.start, server.end) if topic == server.topic else (0, 0)

    def partitions(self, topic: str) -> list[int]:
        """The only one."""
        return [PARTITION]

    def read(self, ranges: Ranges) -> Iterator[RawRecords]:
        """Errors as ``BinlogSource.pieces``."""
        for one in ranges:
            yield from self._source.read(one)
