"""Kafka in a history: topics that lose what Kafka may lose, and tasks that end in any order."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from binlake.decode.changes import RawRecords
from binlake.rows.tasks.append_parcels import append_parcels
from binlake.rows.tasks.decode_and_route import decode_records
from binlake.rows.tasks.plan import BatchPlan, Item
from binlake.rows.tasks.write_parcels import write_parcels
from binlake.source.offsets import OffsetRange
from tests.binlake.stream.topic_log import TopicLog


@dataclass
class SimulatedTopics(TopicLog):
    """Topics that lose what Kafka may lose: records below ``first``, and records of keys that come again."""

    gone: set[tuple[str, int, int]] = field(default_factory=set)
    first: dict[str, int] = field(default_factory=dict)

    def read(self, ranges: Sequence[OffsetRange]) -> Iterator[RawRecords]:
        """The records that are still there. Raises AssertionError for a range that Kafka deleted."""
        for r in ranges:
            assert r.start >= self.first.get(r.topic, 0), f"{r.topic} is read from {r.start}, which is deleted"
            kept = [n for n in range(r.start, r.end) if (r.topic, r.partition, n) not in self.gone]
            held = [self.records[r.topic, r.partition][n] for n in kept]
            times, offsets = np.full(len(kept), 1_760_000_000_000), np.array(kept, dtype=np.int64)
            yield RawRecords(r.topic, r.partition, offsets, times, [k for k, _ in held], [v for _, v in held])

    def cut(self, topic: str, first: int) -> None:
        """The records from an offset on are lost."""
        del self.records[topic, 0][first:]
        self.gone = {one for one in self.gone if one[0] != topic or one[2] < first}

    def compact(self, topic: str) -> set[int]:
        """Of each key the newest record stays. Returns the offsets of those that went."""
        newest: dict[bytes | None, int] = {}
        went: set[int] = set()
        for n, (key, _) in enumerate(self.records.get((topic, 0), [])):
            if key is not None and key in newest:
                went.add(newest[key])
            newest[key] = n
        went -= {n for name, _, n in self.gone if name == topic}
        self.gone |= {(topic, 0, n) for n in went}
        return went


@dataclass
class DrawnEngine:
    """An Engine whose tasks run here: which of them has which ranges, and which ends first, is drawn."""

    log: TopicLog
    chance: random.Random

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """See binlake.stream.engine.Engine."""
        shares: list[list[OffsetRange]] = [[] for _ in range(self.chance.randint(1, 3))]
        for one in ranges:
            self.chance.choice(shares).append(one)
        self.chance.shuffle(shares)
        items: list[Item] = []
        for number, share in enumerate(shares):
            items += append_parcels(plan, number, decode_records(plan, self.log.read(share)))
        return list(write_parcels(plan, items) if shuffle else items)
