"""The ingest workloads with their sizes; ``scale`` makes them smaller for a trial."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench.events import PLAIN, Shape

#: Batches that warm up a session and are left out of every number.
WARM_UP = 2


@dataclass(frozen=True)
class Workload:
    """One ingest workload.

    Args:
        name: for ``--only``.
        events: total number, warm-up included; in a live workload those before the live events.
        batch: the most events of a batch.
        keys: number of keys (of each table).
        shape: the shape of the rows.
        tables: number of tables; each has its own topic.
        topic_partitions, buckets: of each topic; of each table (of each partition).
        warm_up: batches left out.
        live_per_s, live_s: events per second that arrive while the stream runs, and for how many seconds.
        age: number of earlier commits of the table before the measured ones, and the events of each of them.
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
        """The number of events that arrive while the stream runs."""
        return self.live_per_s * self.live_s

    @property
    def age_events(self) -> int:
        """The number of events in the earlier commits of the table."""
        return self.age * self.age_batch

    def scaled(self, scale: float) -> Workload:
        """A smaller workload of fewer batches; a live one is shorter instead, an aged one has fewer earlier commits."""
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
    # a batch takes all available events: a limit would penalise slow writers twice
    Workload("freshness", events=2_000, batch=50_000, warm_up=1, live_per_s=1_000, live_s=90),
    Workload("wide", events=7 * 40_000, batch=40_000, keys=40_000, shape=Shape(columns=100)),
    Workload("tables", events=7 * 5_000, batch=5_000, keys=10_000, tables=50, topic_partitions=1, buckets=1),
    Workload("partitioned", events=7 * 20_000, batch=20_000, shape=Shape(partitions=100), buckets=1),
    Workload("old", events=25 * 2_000, batch=2_000, warm_up=5, age=2_000),
)
#: Rows that are added and never change (``bench.append``).
APPEND = Workload("append", events=7 * 100_000, batch=100_000, shape=Shape(inserts=True))
#: Workloads with their own program.
OTHERS = ("compaction", "reads")
NAMES = (*(w.name for w in INGEST), *OTHERS)
