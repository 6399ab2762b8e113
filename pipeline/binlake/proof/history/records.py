"""The records that commits cover, as far as the source's log still has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from binlake.decode.changes import RawRecords
from binlake.source.binlog.topic import is_binlog
from binlake.source.offsets import OffsetRange, Ranges


class Records(Protocol):
    """Topic partitions that can be read again."""

    def held(self, topic: str, partition: int) -> tuple[int, int]:
        """The first available offset of a partition, and the next one to be written."""
        ...

    def read(self, ranges: Ranges) -> Iterator[RawRecords]:
        """The records of ranges that are held, in chunks of one topic partition each."""
        ...


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
    """Divide ranges, which may overlap. Of more than ``most`` records, each range gets its share of its newest ones;
    offsets of a binlog count no records, and its ranges are read whole."""
    held: list[OffsetRange] = []
    gone: list[OffsetRange] = []
    for whole in merged(ranges):
        low, high = records.held(whole.topic, whole.partition)
        held += _some(whole, max(whole.start, low), min(whole.end, high))
        gone += _some(whole, whole.start, min(whole.end, low)) + _some(whole, max(whole.start, high), whole.end)
    total = sum(len(one) for one in held if not is_binlog(one.topic))
    there: list[OffsetRange] = []
    left: list[OffsetRange] = []
    for one in held:
        cut = one.start if total <= most or is_binlog(one.topic) else one.end - max(1, len(one) * most // total)
        left += _some(one, one.start, cut)
        there += _some(one, cut, one.end)
    return Reach(*(Ranges(sorted(some, key=_place)) for some in (there, gone, left)))


def merged(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    """The ranges without overlaps, ascending by topic, partition and offset."""
    disjoint_ranges: list[OffsetRange] = []
    for one in sorted((r for r in ranges if len(r)), key=_place):
        last = disjoint_ranges[-1] if disjoint_ranges else None
        if last is not None and (last.topic, last.partition) == (one.topic, one.partition) and one.start <= last.end:
            disjoint_ranges[-1] = OffsetRange(last.topic, last.partition, last.start, max(last.end, one.end))
        else:
            disjoint_ranges.append(one)
    return disjoint_ranges


def _some(of: OffsetRange, start: int, end: int) -> list[OffsetRange]:
    return [OffsetRange(of.topic, of.partition, start, end)] if end > start else []


def _place(one: OffsetRange) -> tuple[str, int, int]:
    return one.topic, one.partition, one.start
