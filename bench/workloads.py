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
        tables: number of tables with events in each batch; each has its own topic.
        idle: number of further tables, each with one event before all others.
        topic_partitions, buckets: of each topic; of each table (of each partition).
        warm_up: batches left out.
        live_per_s, live_s: events per second that arrive while the stream runs, and for how many seconds.
        age: number of earlier commits of the table before the measured ones, and the events of each of them.
        loaded: number of rows that these commits insert, each key once, from a topic of its own; 0: their events are
            those of the other workloads.
        index, table_type: of the table, by binlake's names.
        file_rows: rows of a base file, where the index lets rows go to any file.
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
    loaded: int = 0
    index: str = "bucket"
    table_type: str = "merge_on_read"
    file_rows: int = 0
    idle: int = 0

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
            idle=round(self.idle * scale),
            age=self.age and max(10, round(self.age * scale)),
        )

    def shapes(self) -> list[Shape]:
        """The shape of each table."""
        if self.tables + self.idle == 1:
            return [self.shape]
        return [replace(self.shape, table=f"{self.shape.table}_{n:02d}") for n in range(self.tables + self.idle)]

    def events_of(self, shape: Shape) -> int:
        """The number of events of one of the ``shapes``."""
        if shape in self.shapes()[self.tables :]:
            return 1
        return self.age_events + self.events // self.tables + self.live_events


#: Indexes that are measured on a table of many files, by workload.
INDEXED = {
    "index-bloom": "bloom",
    "index-global-bloom": "global_bloom",
    "index-simple": "simple",
    "index-record-index": "record_index",
}
#: Indexes of which Hudi's metadata table holds nothing of its own.
LOOKED_UP_IN_FILES = ("bloom", "global_bloom", "simple")
COPY_ON_WRITE = "copy-on-write"
#: Rows that one commit loads.
_LOAD_ROWS = 500_000


def on_large_table(name: str, *, rows: int, files: int, batch: int, batches: int) -> Workload:
    """Changes to a table of ``rows`` rows in ``files`` files: ``name`` is a key of INDEXED, or COPY_ON_WRITE.

    Most changes are updates of loaded rows, a few insert keys that are new or delete. A table that rewrites its files
    has as many buckets as files, and each writer takes its own way of finding rows.
    """
    commits = max(1, min(10, rows // _LOAD_ROWS))
    copies = name == COPY_ON_WRITE
    return Workload(
        name,
        events=(WARM_UP + batches) * batch,
        batch=batch,
        keys=rows + rows // 100,
        buckets=files,
        age=commits,
        age_batch=rows // commits,
        loaded=rows // commits * commits,
        index="bucket" if copies else INDEXED[name],
        table_type="copy_on_write" if copies else "merge_on_read",
        file_rows=rows // files,
    )


INGEST = (
    Workload("catch-up", events=1_400_000, batch=200_000),
    Workload("small", events=45 * 2_000, batch=2_000, warm_up=5),
    # a batch takes all available events: a limit would penalise slow writers twice
    Workload("freshness", events=2_000, batch=50_000, warm_up=1, live_per_s=1_000, live_s=90),
    Workload("wide", events=7 * 40_000, batch=40_000, keys=40_000, shape=Shape(columns=100)),
    Workload("tables", events=7 * 5_000, batch=5_000, keys=10_000, tables=50, topic_partitions=1, buckets=1),
    Workload("hundreds", events=7 * 4_000, batch=4_000, keys=1_000, tables=200, topic_partitions=1, buckets=1),
    Workload("idle", events=7 * 5_000, batch=5_000, keys=10_000, tables=50, idle=950, topic_partitions=1, buckets=1),
    Workload("partitioned", events=7 * 20_000, batch=20_000, shape=Shape(partitions=100), buckets=1),
    Workload("old", events=25 * 2_000, batch=2_000, warm_up=5, age=2_000),
)
#: Rows that are added and never change (``bench.append``).
APPEND = Workload("append", events=7 * 100_000, batch=100_000, shape=Shape(inserts=True))
#: Today's peers (``bench.todays``).
_TODAYS = Workload("load", events=5 * 40_000, batch=40_000, warm_up=2, shape=Shape(inserts=True))
TODAYS = (
    replace(_TODAYS, name="uniform", shape=Shape(skew="uniform")),
    replace(_TODAYS, name="zipf", shape=Shape(skew="zipf")),
    _TODAYS,
)
#: Workloads with their own program.
OTHERS = ("compaction", "reads")
NAMES = (*(w.name for w in INGEST), *OTHERS)
