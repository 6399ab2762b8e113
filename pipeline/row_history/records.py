"""The records that commits cover, as far as Kafka still has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from pipeline.decode.changes import RawRecords
from pipeline.settings import Settings
from pipeline.source.fetch import fetch
from pipeline.source.log_tail import watermarks
from pipeline.source.offsets import OffsetRange, Ranges

_CHUNK_RECORDS = 20_000


class Records(Protocol):
    """Topic partitions that can be read again."""

    def held(self, topic: str, partition: int) -> tuple[int, int]:
        """The first available offset of a partition, and the next one to be written."""
        ...

    def read(self, ranges: Ranges) -> Iterator[RawRecords]:
        """The records of ranges that are held, in chunks of one topic partition each."""
        ...


class KafkaRecords:
    """The records of a stream's topics in Kafka."""

    def __init__(self, settings: Settings, timeout_s: float = 60.0) -> None:
        self._config, self._timeout_s = settings.kafka.client_properties(), timeout_s

    def held(self, topic: str, partition: int) -> tuple[int, int]:
        """As ``Records.held``. Raises TransientError, ConfigError."""
        return watermarks(self._config, topic, partition)

    def read(self, ranges: Ranges) -> Iterator[RawRecords]:
        """As ``Records.read``. Errors as ``fetch``."""
        return fetch(self._config, ranges, timeout_s=self._timeout_s, chunk_records=_CHUNK_RECORDS)


@dataclass(frozen=True)
class Reach:
    """Ranges, divided by whether their records can be read.

    Args:
        there: the ranges to read; disjoint, ascending.
        gone: offsets that Kafka has deleted.
        left: offsets beyond the limit on the number of records.
    """

    there: Ranges
    gone: Ranges
    left: Ranges


def reach(records: Records, ranges: Iterable[OffsetRange], most: int) -> Reach:
    """Divide ranges, which may overlap. Of more than ``most`` records the newest of each partition are read."""
    there: list[OffsetRange] = []
    gone: list[OffsetRange] = []
    left: list[OffsetRange] = []
    room = most
    for whole in reversed(merged(ranges)):
        low, high = records.held(whole.topic, whole.partition)
        start, end = max(whole.start, low), min(whole.end, high)
        cut = max(start, end - room)
        gone += _some(whole, whole.start, min(whole.end, low)) + _some(whole, max(whole.start, high), whole.end)
        left += _some(whole, start, cut)
        there += _some(whole, cut, end)
        room -= max(0, end - cut)
    return Reach(*(Ranges(sorted(some, key=_place)) for some in (there, gone, left)))


def merged(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    """The ranges without overlaps, ascending by topic, partition and offset."""
    found: list[OffsetRange] = []
    for one in sorted((r for r in ranges if len(r)), key=_place):
        last = found[-1] if found else None
        if last is not None and (last.topic, last.partition) == (one.topic, one.partition) and one.start <= last.end:
            found[-1] = OffsetRange(last.topic, last.partition, last.start, max(last.end, one.end))
        else:
            found.append(one)
    return found


def _some(of: OffsetRange, start: int, end: int) -> list[OffsetRange]:
    return [OffsetRange(of.topic, of.partition, start, end)] if end > start else []


def _place(one: OffsetRange) -> tuple[str, int, int]:
    return one.topic, one.partition, one.start
