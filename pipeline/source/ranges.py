"""Offset ranges: what a micro-batch covers, and how it is shared among tasks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

#: topic -> partition -> offset (the next one to read).
Positions = dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets ``start`` (inclusive) to ``end`` (exclusive) of one topic partition."""

    topic: str
    partition: int
    start: int
    end: int

    def __len__(self) -> int:
        return max(0, self.end - self.start)


def parse_positions(text: str) -> Positions:
    """Positions from JSON ``{"topic": {"0": 5}}``, the form in which Spark writes a Kafka source's offsets."""
    return {topic: {int(p): int(o) for p, o in parts.items()} for topic, parts in json.loads(text).items()}


def format_positions(positions: Mapping[str, Mapping[int, int]]) -> str:
    """The JSON that ``parse_positions`` reads; topics and partitions in order."""
    return json.dumps(
        {t: {str(p): positions[t][p] for p in sorted(positions[t])} for t in sorted(positions)}, separators=(",", ":")
    )


def ranges_between(start: Mapping[str, Mapping[int, int]], end: Mapping[str, Mapping[int, int]]) -> list[OffsetRange]:
    """The non-empty ranges from ``start`` to ``end``; a partition that ``start`` does not know begins at 0."""
    found = [
        OffsetRange(topic, partition, start.get(topic, {}).get(partition, 0), until)
        for topic, parts in sorted(end.items())
        for partition, until in sorted(parts.items())
    ]
    return [r for r in found if len(r)]


def covered_until(ranges: Sequence[OffsetRange]) -> Positions:
    """The positions after the ranges."""
    result: Positions = {}
    for r in ranges:
        parts = result.setdefault(r.topic, {})
        parts[r.partition] = max(parts.get(r.partition, 0), r.end)
    return result


def split_ranges(ranges: Iterable[OffsetRange], tasks: int) -> list[list[OffsetRange]]:
    """Share ranges among at most ``tasks`` tasks, nearly the same number of records each, each range cut where needed.

    Ranges of one partition may end up in two tasks: the order of changes is kept by their ordering values.
    """
    pending = list(ranges)
    total = sum(len(r) for r in pending)
    share = max(1, -(-total // max(1, tasks)))
    shares: list[list[OffsetRange]] = [[]]
    room = share
    for whole in pending:
        start = whole.start
        while start < whole.end:
            if not room:
                shares.append([])
                room = share
            end = min(whole.end, start + room)
            shares[-1].append(OffsetRange(whole.topic, whole.partition, start, end))
            room -= end - start
            start = end
    return [s for s in shares if s]


def merged(base: Mapping[str, Mapping[int, int]], newer: Mapping[str, Mapping[int, int]]) -> Positions:
    """``base`` with every partition of ``newer`` put in its place."""
    result: Positions = {topic: dict(parts) for topic, parts in base.items()}
    for topic, parts in newer.items():
        result.setdefault(topic, {}).update(parts)
    return result


def furthest(base: Mapping[str, Mapping[int, int]], other: Mapping[str, Mapping[int, int]]) -> Positions:
    """Of each partition the greater position of the two: a batch that is cut anew after a crash may end earlier."""
    result: Positions = {topic: dict(parts) for topic, parts in base.items()}
    for topic, parts in other.items():
        mine = result.setdefault(topic, {})
        for partition, position in parts.items():
            mine[partition] = max(position, mine.get(partition, position))
    return result


def at_most(ranges: Sequence[OffsetRange], records: int) -> list[OffsetRange]:
    """The ranges cut to about that many records in all, an even share of each."""
    total = sum(len(r) for r in ranges)
    if total <= records:
        return list(ranges)
    cut = [OffsetRange(r.topic, r.partition, r.start, r.start + max(1, len(r) * records // total)) for r in ranges]
    return [r for r in cut if len(r)]
