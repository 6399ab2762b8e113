"""Offsets of topic partitions as values: positions, the ranges between them, and their JSON."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from binlake.decode.changes import SourceTable
from hudilake.errors import BadInputError

#: The form in which offsets may be given: topic -> partition -> offset.
OffsetMap = Mapping[str, Mapping[int, int]]
#: (topic, partition, offset).
Place = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets ``start`` (inclusive) to ``end`` (exclusive) of one topic partition."""

    topic: str
    partition: int
    start: int
    end: int

    def __len__(self) -> int:
        return max(0, self.end - self.start)


class Offsets(Mapping[str, Mapping[int, int]]):
    """Topic -> partition -> offset, usually the next one to read. Immutable: each method returns a new value.

    Topics and partitions keep their given order. An unknown partition counts as offset 0. A stream may have thousands
    of topics of which a batch moves a few: what is done for each topic anew is an expression, and no call.
    """

    __slots__ = ("_topics",)

    def __init__(self, topics: OffsetMap | None = None) -> None:
        self._topics: Mapping[str, Mapping[int, int]] = _copied(topics) if topics is not None else {}

    @staticmethod
    def _sharing(topics: Mapping[str, Mapping[int, int]]) -> Offsets:
        """Offsets that nobody else changes."""
        offsets = Offsets()
        offsets._topics = topics
        return offsets

    @staticmethod
    def of_places(places: Iterable[Place]) -> Offsets:
        """The offsets of topic partitions; the last one counts for a partition that is given twice."""
        topics: dict[str, dict[int, int]] = {}
        for topic, partition, offset in places:
            topics.setdefault(topic, {})[partition] = offset
        return Offsets(topics)

    @staticmethod
    def from_json(data: Mapping[str, Mapping[str, int]]) -> Offsets:
        """Offsets from decoded JSON, with partitions as text. Raises ValueError, TypeError, AttributeError."""
        return Offsets({topic: {int(p): int(o) for p, o in parts.items()} for topic, parts in data.items()})

    @staticmethod
    def from_text(text: str) -> Offsets:
        """Offsets from JSON ``{"topic": {"0": 5}}``, the form of Spark's offset log. Errors as ``from_json``."""
        return Offsets.from_json(json.loads(text))

    def to_json(self) -> dict[str, dict[int, int]]:
        """Plain dictionaries for ``json.dumps``, in the order of this value."""
        return {topic: dict(parts) for topic, parts in self._topics.items()}

    def to_text(self) -> str:
        """The JSON that ``from_text`` reads, topics and partitions sorted."""
        ordered = {topic: {p: parts[p] for p in sorted(parts)} for topic, parts in sorted(self._topics.items())}
        return json.dumps(ordered, separators=(",", ":"))

    def __getitem__(self, topic: str) -> Mapping[int, int]:
        return MappingProxyType(self._topics[topic])

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)

    def __hash__(self) -> int:
        return hash(frozenset(self.places()))

    def __repr__(self) -> str:
        return f"Offsets({self._topics!r})"

    def __reduce__(self) -> tuple[type[Offsets], tuple[OffsetMap]]:
        return Offsets, (self._topics,)

    def places(self) -> Iterator[Place]:
        """Every topic partition with its offset."""
        for topic, parts in self._topics.items():
            for partition, offset in parts.items():
                yield topic, partition, offset

    @property
    def total(self) -> int:
        """The sum of all offsets."""
        return sum(offset for _, _, offset in self.places())

    def at(self, topic: str, partition: int) -> int:
        """The offset of a partition, 0 for an unknown one."""
        return self._topics.get(topic, {}).get(partition, 0)

    def knows(self, topic: str, partition: int) -> bool:
        """Whether a partition has an offset here."""
        return partition in self._topics.get(topic, {})

    def within(self, other: OffsetMap) -> Offsets:
        """The offsets of those partitions that ``other`` has too."""
        return Offsets.of_places((t, p, o) for t, p, o in self.places() if p in other.get(t, {}))

    def merge(self, newer: OffsetMap) -> Offsets:
        """These offsets, with those of ``newer`` in their place."""
        mine, its = self._topics, _copied(newer)
        changed = {t: parts for t, parts in its.items() if t not in mine or {**mine[t], **parts} != mine[t]}
        merged = {t: {**mine[t], **parts} if t in mine else parts for t, parts in changed.items()}
        return Offsets._sharing({**mine, **merged}) if merged else self

    def furthest(self, other: OffsetMap) -> Offsets:
        """The greater offset of the two for each partition."""
        return self._either(other, max)

    def earliest(self, other: OffsetMap) -> Offsets:
        """The smaller offset of the two for each partition; a partition that only one of them has keeps its offset."""
        return self._either(other, min)

    def _either(self, other: OffsetMap, choose: Callable[[int, int], int]) -> Offsets:
        mine = self._topics
        chosen = {t: {p: choose(o, mine.get(t, {}).get(p, o)) for p, o in parts.items()} for t, parts in other.items()}
        return self.merge(chosen)

    def ahead_of(self, other: OffsetMap) -> Offsets:
        """These offsets where they are greater than those of ``other``; partitions that it lacks are left out."""
        both = ((topic, parts, other[topic]) for topic, parts in self._topics.items() if topic in other)
        return Offsets.of_places((t, p, o) for t, mine, its in both for p, o in mine.items() if p in its and o > its[p])

    def short_of(self, other: OffsetMap) -> Offsets:
        """These offsets where they are smaller than those of ``other``; a partition missing here counts as 0."""
        return Offsets.of_places((t, p, self.at(t, p)) for t, p, o in Offsets(other).places() if self.at(t, p) < o)

    def lacks(self, other: OffsetMap) -> Offsets:
        """The offsets of ``other`` of partitions that are not here."""
        mine, its = self._topics, _copied(other)
        some = {t: parts for t, parts in its.items() if t not in mine or {*mine[t]} != {*parts}}
        return Offsets.of_places((t, p, o) for t, p, o in Offsets._sharing(some).places() if not self.knows(t, p))

    def minus(self, other: OffsetMap) -> Offsets:
        """For each partition, the number of offsets here at or above those of ``other``, at least 0."""
        below = Offsets(other)
        return Offsets({t: {p: max(0, o - below.at(t, p)) for p, o in ps.items()} for t, ps in self._topics.items()})

    def ranges_to(self, end: OffsetMap) -> Ranges:
        """The non-empty ranges from here to ``end``, sorted by topic and partition."""
        mine, its = self._topics, _copied(end)
        moved = Offsets._sharing({t: parts for t, parts in its.items() if t not in mine or mine[t] != parts})
        places = sorted(moved.places())
        return Ranges(OffsetRange(t, p, self.at(t, p), until) for t, p, until in places if until > self.at(t, p))


def _copied(offsets: OffsetMap) -> Mapping[str, Mapping[int, int]]:
    """A copy that nobody changes; the very values of an ``Offsets``, which are such ones."""
    if isinstance(offsets, Offsets):
        return offsets._topics
    return {topic: dict(parts) for topic, parts in offsets.items()}


class Ranges(tuple[OffsetRange, ...]):
    """Offset ranges, in a fixed order. Immutable."""

    __slots__ = ()

    @property
    def records(self) -> int:
        """The total number of offsets in the ranges."""
        return sum(map(len, self))

    def starts(self) -> Offsets:
        """The start offsets of the ranges."""
        return Offsets.of_places((r.topic, r.partition, r.start) for r in self)

    def ends(self) -> Offsets:
        """The end of each partition; the furthest end where a partition has several ranges."""
        furthest: dict[str, dict[int, int]] = {}
        for r in self:
            parts = furthest.setdefault(r.topic, {})
            parts[r.partition] = max(parts.get(r.partition, 0), r.end)
        return Offsets(furthest)

    def of_topics(self, topics: Collection[str]) -> Ranges:
        """The ranges of some topics."""
        return Ranges(r for r in self if r.topic in topics)

    def by_topic(self) -> dict[str, Ranges]:
        """The ranges of each topic."""
        topics: dict[str, list[OffsetRange]] = {}
        for one in self:
            topics.setdefault(one.topic, []).append(one)
        return {topic: Ranges(some) for topic, some in topics.items()}

    def until(self, ends: Mapping[tuple[str, int], int]) -> Ranges:
        """The ranges cut before these offsets, by (topic, partition)."""
        cut = (replace(r, end=min(r.end, ends.get((r.topic, r.partition), r.end))) for r in self)
        return Ranges(r for r in cut if r.end > r.start)

    def below(self, ends: Offsets) -> Ranges:
        """The parts of the ranges below these offsets."""
        cut = (replace(r, end=min(r.end, ends.at(r.topic, r.partition))) for r in self)
        return Ranges(r for r in cut if r.end > r.start)

    def united(self) -> Ranges:
        """The same offsets in ascending ranges that neither meet nor touch."""
        joined: list[OffsetRange] = []
        for one in sorted(self, key=lambda r: (r.topic, r.partition, r.start)):
            last = joined[-1] if joined else None
            if (
                last is not None
                and (last.topic, last.partition) == (one.topic, one.partition)
                and one.start <= last.end
            ):
                joined[-1] = replace(last, end=max(last.end, one.end))
            elif len(one):
                joined.append(one)
        return Ranges(joined)

    def without(self, others: Ranges) -> Ranges:
        """The offsets that are in none of ``others``, in ascending ranges."""
        gone: dict[tuple[str, int], list[OffsetRange]] = {}
        for one in others.united():
            gone.setdefault((one.topic, one.partition), []).append(one)
        left: list[OffsetRange] = []
        for one in self.united():
            start, cuts = one.start, gone.get((one.topic, one.partition), [])
            for cut in cuts[bisect_right(cuts, start, key=lambda r: r.end) :]:
                if cut.start >= one.end:
                    break
                left.append(replace(one, start=start, end=cut.start))
                start = cut.end
            left.append(replace(one, start=start))
        return Ranges(one for one in left if len(one))

    def meets(self, others: Ranges) -> bool:
        """Whether an offset is in both."""
        return self.without(others).records < self.united().records

    def at_most(self, records: int) -> Ranges:
        """The ranges cut to about that many records in all, an even share of each and at least one record."""
        total = self.records
        if total <= records:
            return self
        cut = (OffsetRange(r.topic, r.partition, r.start, r.start + max(1, len(r) * records // total)) for r in self)
        return Ranges(r for r in cut if len(r))

    def split(self, tasks: int) -> list[Ranges]:
        """Divide the ranges among at most ``tasks`` tasks, nearly the same number of records each, split where needed.

        Ranges of one partition may go to two tasks: the ordering values keep the order of changes.
        """
        share = room = max(1, -(-self.records // max(1, tasks)))
        shares: list[list[OffsetRange]] = [[]]
        for whole in self:
            start = whole.start
            while start < whole.end:
                if not room:
                    shares.append([])
                    room = share
                end = min(whole.end, start + room)
                shares[-1].append(OffsetRange(whole.topic, whole.partition, start, end))
                room -= end - start
                start = end
        return [Ranges(s) for s in shares if s]

    def by_partition(self) -> dict[str, dict[str, list[list[int]]]]:
        """Topic -> partition -> the [first, end] of each of its ranges, for ``json.dumps``."""
        ranges: dict[str, dict[str, list[list[int]]]] = {}
        for r in self:
            ranges.setdefault(r.topic, {}).setdefault(str(r.partition), []).append([r.start, r.end])
        return ranges

    @staticmethod
    def from_partitions(data: Mapping[str, Mapping[str, Iterable[tuple[int, int]]]]) -> Ranges:
        """The ranges of ``by_partition``. Raises ValueError, TypeError, AttributeError for anything else."""
        return Ranges(
            OffsetRange(topic, int(partition), int(first), int(end))
            for topic, parts in data.items()
            for partition, ranges in parts.items()
            for first, end in ranges
        )

    def to_json(self) -> dict[str, dict[str, list[int]]]:
        """Topic -> partition -> [first, end], for ranges of different partitions: the form of commits."""
        return {t: {p: ranges[-1] for p, ranges in parts.items()} for t, parts in self.by_partition().items()}

    @staticmethod
    def from_json(data: Mapping[str, Mapping[str, tuple[int, int]]]) -> Ranges:
        """The ranges of ``to_json``. Errors as ``from_partitions``."""
        return Ranges.from_partitions({t: {p: [one] for p, one in parts.items()} for t, parts in data.items()})


NO_OFFSETS = Offsets()
NO_RANGES = Ranges()


# The names that connectors give to the topics of a table.


def topic_suffix(source: SourceTable) -> str:
    """``database.table`` as the connector spells it at the end of a topic name (recorded: other signs become ``_``)."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", f"{source.database}.{source.table}")


# Errors for offsets that a stream needs and Kafka no longer has. They are skipped only on request.

_GO_ON = (
    "bring the records back into the topic; or go on without them by `binlake run CONF --skip-missing`, then fetch the "
    "topic's tables anew by `binlake table resync`; or raise source.epoch by one and let the connector take a new "
    "snapshot of these tables: its rows win then, but rows that these events deleted stay"
)


def missing_error(missing: Iterable[OffsetRange]) -> BadInputError:
    """The error for offsets that were deleted before they were read: by retention, or by hand."""
    missing_ranges = sorted(missing, key=lambda r: (r.topic, r.partition, r.start))
    count = sum(len(r) for r in missing_ranges)
    what = "offset was" if count == 1 else "offsets were"
    return BadInputError(
        f"{count} {what} deleted from Kafka before the stream had read them: {describe(missing_ranges)}", do_next=_GO_ON
    )


def describe(ranges: Iterable[OffsetRange]) -> str:
    """The ranges as text, both ends included: ``shop.orders/0: 5..99``."""
    return ", ".join(f"{r.topic}/{r.partition}: {r.start}..{r.end - 1}" for r in ranges)


def made_anew(topic: str, partition: int, position: int, end: int) -> BadInputError:
    """The error for a topic that was deleted and created again: unread records are unknown, and offsets mean others."""
    return BadInputError(
        f"the stream stands at offset {position} but the partition ends at {end}: the topic "
        "was deleted and created again",
        do_next=NEW_TOPIC,
        topic=topic,
        partition=partition,
    )


NEW_TOPIC = (
    "give the stream a new name and a new lake path, so that the topic is read from its beginning; "
    "or bring the old topic back"
)
