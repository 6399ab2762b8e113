"""What is measured: the ingest workloads with their sizes, which ``scale`` makes smaller for a trial."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench.events import PLAIN, Shape

#: Batches that warm a session up and are left out of every number.
WARM_UP = 2


@dataclass(frozen=True)
class Workload:
    """One ingest workload.

    Args:
        name: as ``--only`` takes it.
        events: in all, warm-up included; of a live workload those that come before the live ones.
        batch: events a batch takes at most.
        keys: how many there are (of each table).
        shape: what the rows are like.
        tables: how many tables; each has a topic of its own.
        topic_partitions, buckets: of each topic; of each table (of each partition).
        warm_up: batches left out.
        live_per_s, live_s: events a second that come while the stream runs, and for how many seconds.
        age: commits that are behind the table when the measured ones begin, and the events each of them takes.
    """

    name: str
    events: int
    batch: int
    keys: int = 200_000
    shape: Shape = PLAIN
    tables: int = 1
    topic_partitions: int = 4
    buckets: int = 8
    warm_up: int = WARM_UP
    live_per_s: int = 0
    live_s: int = 0
    age: int = 0
    age_batch: int = 20

    @property
    def live_events(self) -> int:
        """How many come while the stream runs."""
        return self.live_per_s * self.live_s

    @property
    def age_events(self) -> int:
        """How many the commits behind the table take."""
        return self.age * self.age_batch

    def scaled(self, scale: float) -> Workload:
        """A smaller one of fewer batches; a live one is shorter instead, and an aged one has less behind it."""
        if scale >= 1:
            return self
        if self.live_s:
            return replace(self, live_s=max(10, round(self.live_s * scale)))
        batch = max(self.tables * self.topic_partitions, 40, round(self.batch * scale))
        return replace(
            self,
            events=min(self.events // self.batch, self.warm_up + 4) * batch,
            batch=batch,
            keys=max(100, round(self.keys * scale)),
            age=self.age and max(10, round(self.age * scale)),
        )

    def shapes(self) -> list[Shape]:
        """The shape of each table."""
        if self.tables == 1:
            return [self.shape]
        return [replace(self.shape, table=f"{self.shape.table}_{n:02d}") for n in range(self.tables)]


INGEST = (
    Workload("catch-up", events=1_400_000, batch=200_000),
    Workload("small", events=45 * 2_000, batch=2_000, warm_up=5),
    # a batch takes whatever has come: a limit would punish slow writers twice
    Workload("freshness", events=2_000, batch=50_000, warm_up=1, live_per_s=1_000, live_s=90),
    Workload("wide", events=7 * 40_000, batch=40_000, keys=40_000, shape=Shape(columns=100)),
    Workload("tables", events=7 * 5_000, batch=5_000, keys=10_000, tables=50, topic_partitions=1, buckets=1),
    Workload("partitioned", events=7 * 20_000, batch=20_000, shape=Shape(partitions=100), buckets=1),
    Workload("old", events=25 * 2_000, batch=2_000, warm_up=5, age=2_000),
)
#: Workloads with a program of their own.
OTHERS = ("compaction", "reads")
NAMES = (*(w.name for w in INGEST), *OTHERS)
