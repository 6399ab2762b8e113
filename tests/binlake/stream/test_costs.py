"""What a batch costs, in counts and not in seconds: storage calls, bytes, Spark jobs and tasks, Python calls an event.

Counts do not depend on the machine, so a change that makes a batch dearer fails here. Every guard has a control that it
must reject. A bound that a change has to raise is a decision, not an accident.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from bench.events import COLUMNS, DATABASE, TABLE, events
from bench.kafka_load import create_topic, produce
from bench.requests.proxy import Request, RequestLog, depths
from binlake.decode.changes import RawRecords, SourceTable
from binlake.position.ledger import Ledger
from binlake.rows.tasks.decode_and_route import decode_records
from binlake.rows.tasks.plan import BatchPlan, Item
from binlake.settings import Settings
from binlake.source.fetch import fetch
from binlake.source.offsets import OffsetRange
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.run import Stream
from binlake.tables.lake import Lake, locking
from binlake.tables.presence import KnownTable
from hudilake.clock import new_uuid
from hudilake.format.files import file_group_write
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import TopicLog, services
from tests.binlake.stream.topic_log import settings as log_settings
from tests.counting import counted
from tests.hudilake.metadata import below
from tests.services.kafka import Broker

TOPIC = f"s.{DATABASE}.{TABLE}"
BUCKETS = 2
KEYS = 500


def settings(place: Path, buckets: int = BUCKETS, **sections: Any) -> Settings:  # noqa: ANN401 - any YAML value
    """A stream of the benchmark's table; nothing is compacted, and so nothing becomes cheaper on the way."""
    base = {
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [TOPIC]},
        "source": {"schemas": {f"{DATABASE}.{TABLE}": {"columns": COLUMNS, "key": ["id"]}}},
        "tables": {"defaults": {"buckets": buckets, "compaction": {"mode": "off"}}},
    }
    return log_settings(str(place), [], **{**base, **sections})


@dataclass
class Costs(below.Counting):
    """Counts calls and the bytes that are written, below the root too."""

    bytes_written: int = 0

    def create(self, path: str, data: bytes) -> None:
        self.bytes_written += len(data)
        super().create(path, data)

    def write(self, path: str, data: bytes) -> None:
        self.bytes_written += len(data)
        super().write(path, data)


@dataclass
class Engine:
    """Decodes here what the log holds, and keeps the last plan."""

    log: TopicLog
    plans: list[BatchPlan] = field(default_factory=list)

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        self.plans = [plan]
        return list(decode_records(plan, self.log.read(ranges)))


class World:
    """One table, fed batch by batch with ``per_batch`` events."""

    def __init__(self, path: Path, per_batch: int, wrap: type[Costs] = Costs, buckets: int = BUCKETS) -> None:
        config = settings(path, buckets)
        inner = open_storage(str(path), {"fsync": "false"})
        self.storage = wrap(inner)
        self.engine = Engine(TopicLog())
        ledger, registry = Ledger(config.name), SchemaRegistry(config)
        state = self.storage.sub(".binlake/shop")
        self.runner = BatchRunner(config, Lake(self.storage), state, ledger, registry, services())
        self._feed, self._per_batch, self.batches = events(1 << 30, keys=KEYS), per_batch, 0

    def batch(self) -> tuple[Counter[str], int]:
        """Apply the next events: calls by method, and bytes."""
        place = self.engine.log.records.setdefault((TOPIC, 0), [])
        place += [next(self._feed) for _ in range(self._per_batch)]
        self.storage.calls.clear()
        self.storage.bytes_written = 0
        told = self.runner.run(self.batches, self.engine.log.end(), 0, self.engine)
        assert [(t.error, t.warning, t.quarantined) for t in told.tables] == [(None, None, 0)]
        self.batches += 1
        return Counter(method for method, _ in self.storage.calls), self.storage.bytes_written


def grown(calls: Sequence[int], window: int) -> float:
    """The median of the last calls over that of the first ones."""
    return median(calls[-window:]) / median(calls[:window])


#: What a commit asks of storage, and not more; every sixteenth also keeps the metadata table.
A_COMMIT = Counter({"create": 6, "write": 8, "list": 2, "stat": 1, "delete_tree": 1})
EVERY, ITS_MOST = 16, 300


def check_calls(calls: Sequence[Counter[str]]) -> None:
    """No commit asks for more than it did, but for the metadata table's upkeep, which comes as rarely as it did and
    does not grow either. The first commit makes the table."""
    sums = [sum(each.values()) for each in calls[1:]]
    dear = [at for at, count in enumerate(sums) if count > sum(A_COMMIT.values())]
    for each in (each for each, count in zip(calls[1:], sums, strict=True) if count <= sum(A_COMMIT.values())):
        assert each <= A_COMMIT
    assert len(dear) <= len(sums) / EVERY + 1
    assert max(sums) <= ITS_MOST
    assert grown(sums, 10) <= 1


class OneCallMore(Costs):
    """A look more at every commit."""

    def create(self, path: str, data: bytes) -> None:
        if path.endswith(".deltacommit"):
            self.stat(path)
        super().create(path, data)


@dataclass
class Ageing(Costs):
    """Looks again at every file that it has created."""

    seen: list[str] = field(default_factory=list)

    def create(self, path: str, data: bytes) -> None:
        for earlier in self.seen:
            self.stat(earlier)
        self.seen.append(path)
        super().create(path, data)


@pytest.mark.full
def test_the_storage_calls_of_a_commit_do_not_grow_with_the_age(tmp_path: Path) -> None:
    world = World(tmp_path, 40)
    calls = [world.batch()[0] for _ in range(200)]
    check_calls(calls)


@pytest.mark.first(1)
@pytest.mark.parametrize("dearer", [OneCallMore, Ageing])
def test_a_call_more_is_noticed(tmp_path: Path, dearer: type[Costs]) -> None:
    world = World(tmp_path, 40, dearer)
    calls = [world.batch()[0] for _ in range(30)]
    with pytest.raises(AssertionError):
        check_calls(calls)


@pytest.mark.parametrize(("many", "written"), [(4, 8 + 2), (9, 8 + 8)])
def test_the_markers_of_many_files_are_one_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int, written: int
) -> None:
    """The control: from nine files on only, each of the eight has a marker of its own."""
    monkeypatch.setattr(file_group_write, "_MANY_FILES", many)
    world = World(tmp_path, 200, buckets=8)
    world.batch()
    others = A_COMMIT["write"] - 2 * BUCKETS
    assert [world.batch()[0]["write"] for _ in range(3)] == [written + others] * 3


#: What a table asks of storage that a start opens, with so many commits: each body is read once, none of its data files
#: and of its metadata table is, and the timeline is listed twice, before and under the lock.
OPENED = {many: Counter({"read": 4 + many - 1, "stat": 2, "list": 5, "create": 1, "delete": 1}) for many in (1, 9)}
#: One after the other: bodies are read side by side.
OPENED_IN_SERIES = 13


def opened(path: Path, commits: int, storage: Costs, dearer: int = 0) -> Counter[str]:
    """The calls to open a table of so many commits."""
    world = World(path, 40)
    for _ in range(commits):
        world.batch()
    config = settings(path)
    known = KnownTable(SourceTable(DATABASE, TABLE), f"{DATABASE}/{TABLE}", f"{DATABASE}/{TABLE}")
    lake = Lake(storage, locking(config.locking, "stream shop", one_run=True))
    lake.expect(known)
    table = lake.get(config.table_rules(known.source))
    assert table is not None
    for _ in range(dearer):
        table.hudi.refresh()
    return Counter(method for method, _ in storage.calls)


@pytest.mark.parametrize("commits", sorted(OPENED))
@pytest.mark.parametrize("dearer", [0, 1])
def test_the_calls_to_open_a_table(tmp_path: Path, commits: int, dearer: int) -> None:
    storage = Costs(open_storage(str(tmp_path), {"fsync": "false"}))
    assert (opened(tmp_path, commits, storage, dearer) == OPENED[commits]) == (not dearer)


def test_the_calls_in_series_to_open_a_table(tmp_path: Path) -> None:
    storage = Delayed(open_storage(str(tmp_path), {"fsync": "false"}))
    opened(tmp_path, 9, storage)
    requests = storage.log.take()
    assert max(depths(requests)) == OPENED_IN_SERIES


#: Calls of a commit one after the other, from the look at the timeline to the ledger, and up to the file that makes it
#: visible: docs/object-stores.md says what each is for.
IN_SERIES, UNTIL_VISIBLE = 12, 10


@dataclass
class Delayed(Costs):
    """Takes its time for each call, so that calls made at once overlap, and keeps when each began and ended."""

    log: RequestLog = field(default_factory=RequestLog)

    def _call(self, method: str, path: str, action: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the call gives
        began = self.log.now()
        answer = super()._call(method, path, action)
        time.sleep(0.01)
        self.log.add(Request(began, self.log.now(), method, path))
        return answer


class LooksFirst(Delayed):
    """Looks at a place before it creates the file that makes a commit visible."""

    def create(self, path: str, data: bytes) -> None:
        if path.endswith(".deltacommit") and "metadata" not in path:
            self.stat(path)
        super().create(path, data)


def chains(world: World, storage: Delayed) -> tuple[int, int]:
    """The calls in series of the next batch: all, and those up to the file that makes it visible."""
    storage.log.take()
    world.batch()
    requests = storage.log.take()
    depth = dict(zip(requests, depths(requests), strict=True))
    shown = [one for one in requests if one.path.endswith(".deltacommit") and "metadata" not in one.path]
    return max(depth.values()), depth[shown[-1]]


@pytest.mark.first(1)
@pytest.mark.parametrize(("storage", "more"), [(Delayed, 0), (LooksFirst, 1)])
def test_the_calls_in_series_of_a_commit(tmp_path: Path, storage: type[Delayed], more: int) -> None:
    """The least of several batches counts: on a busy machine a call may begin late."""
    world = World(tmp_path, 40, storage)
    assert isinstance(world.storage, Delayed)
    world.batch()
    every = [chains(world, world.storage) for _ in range(6)]
    assert min(every) == (IN_SERIES + more, UNTIL_VISIBLE + more)


#: Bytes that a commit of 1,000 of the benchmark's events writes over two buckets, metadata table and ledger included:
#: 66,400 measured.
BYTES_OF_A_COMMIT = 80_000


class Twice(Costs):
    """Keeps a second copy of every file that it creates."""

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        super().create(f".binlake/again/{path}", data)


@pytest.mark.parametrize(("storage", "within"), [(Costs, True), (Twice, False)])
def test_the_bytes_of_a_commit(tmp_path: Path, storage: type[Costs], within: bool) -> None:
    world = World(tmp_path, 1_000, storage)
    written = [world.batch()[1] for _ in range(8)]
    assert (max(written[1:]) <= BYTES_OF_A_COMMIT) == within


#: Calls from Python, of Python's functions and of others, for each event: 0.07 measured to decode one more, 1.1 to
#: fetch one.
CALLS_AN_EVENT, CALLS_A_MESSAGE = 0.2, 2.0


def calls_an_event(plan: BatchPlan, decoded: Callable[[BatchPlan, Iterable[RawRecords]], Iterator[Item]]) -> float:
    """What 2,000 events more cost: what a batch costs anyhow falls out."""
    return (_calls(plan, 4_000, decoded) - _calls(plan, 2_000, decoded)) / 2_000


def _calls(plan: BatchPlan, count: int, decoded: Callable[[BatchPlan, Iterable[RawRecords]], Iterator[Item]]) -> int:
    held = list(events(count, keys=KEYS, seed=11))
    offsets, times = np.arange(1 << 30, (1 << 30) + count), np.full(count, 1_760_000_000_000)
    records = RawRecords(TOPIC, 0, offsets, times, [k for k, _ in held], [v for _, v in held])
    made, calls = counted(lambda: list(decoded(plan, [records])))
    assert len(made) > BUCKETS
    return calls


def _with_a_call_a_row(plan: BatchPlan, chunks: Iterable[RawRecords]) -> Iterator[Item]:
    for records in chunks:
        for value in records.values:
            abs(len(value or b""))
        yield from decode_records(plan, [records])


def test_python_calls_an_event(tmp_path: Path) -> None:
    """Whatever is done for each event is done in bulk. The control does two calls more for each."""
    world = World(tmp_path, 100)
    world.batch()
    (plan,) = world.engine.plans
    _calls(plan, 100, decode_records)  # whatever is imported or cached at first use
    assert calls_an_event(plan, decode_records) <= CALLS_AN_EVENT
    assert calls_an_event(plan, _with_a_call_a_row) > CALLS_AN_EVENT


@pytest.mark.kafka
def test_python_calls_a_fetched_message(kafka_broker: Broker) -> None:
    """A message is taken apart in bulk. The control looks at each value by itself."""
    topic = f"costs_{new_uuid()[:8]}.{DATABASE}.{TABLE}"
    create_topic(kafka_broker.bootstrap_servers, topic, 2)
    produce(kafka_broker.bootstrap_servers, topic, events(20_000, keys=KEYS))
    config = {"bootstrap.servers": kafka_broker.bootstrap_servers}

    def fetched(upto: int) -> list[RawRecords]:
        ranges = [OffsetRange(topic, partition, 0, upto) for partition in range(2)]
        return list(fetch(config, ranges, timeout_s=60, chunk_records=50_000))

    def looked_at(upto: int) -> list[RawRecords]:
        found = fetched(upto)
        for value in (value for records in found for value in records.values):
            abs(len(value or b""))
        return found

    fetched(100)  # the client is made
    for work, within in ((fetched, True), (looked_at, False)):
        costs = []
        for _ in range(3):  # where the broker is slow, a wait adds calls: what the messages cost is the least
            found, calls = counted(partial(work, 8_000))
            assert sum(map(len, found)) == 16_000
            costs.append(calls / 16_000)
        assert (min(costs) <= CALLS_A_MESSAGE) == within, costs


BATCH, BATCHES = 3_000, 4


class Jobs:
    """Counts the jobs and the tasks of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._scheduler = spark._jsc.sc().dagScheduler()
        self.seen = self._scheduler.numTotalJobs()

    def take(self) -> tuple[int, int]:
        """Those since the last call."""
        first, self.seen = self.seen, self._scheduler.numTotalJobs()
        found = [self._tracker.getJobInfo(job) for job in range(first, self.seen)]
        stages = [self._tracker.getStageInfo(stage) for job in found if job is not None for stage in job.stageIds]
        assert None not in found
        return len(found), sum(stage.numTasks for stage in stages if stage is not None)


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.kafka
def test_spark_jobs_and_tasks_of_a_batch(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> None:
    """One job of two tasks: no planning query, no count, no shuffle. The control's batches ask Spark for a count."""
    topic = f"costs_{new_uuid()[:8]}.{DATABASE}.{TABLE}"
    create_topic(kafka_broker.bootstrap_servers, topic, 4)
    produce(kafka_broker.bootstrap_servers, topic, events(BATCH * BATCHES, keys=KEYS))
    for extra in (0, 1):
        jobs = Jobs(spark)
        seen: list[tuple[bool, int, int]] = []

        def note(event: ProgressEvent, extra: int = extra, jobs: Jobs = jobs, seen: list[Any] = seen) -> None:
            for _ in range(extra):
                spark.sparkContext.parallelize([1], 1).count()
            seen.append((event.events_read >= BATCH * 0.9, *jobs.take()))

        place = tmp_path / str(extra)
        kafka = {"bootstrap_servers": kafka_broker.bootstrap_servers, "topics": [topic]}
        batch = {"max_events": BATCH, "trigger_interval_ms": 0}
        config = settings(place, kafka=kafka, batch=batch)
        Stream(config, spark, note, threading.Event()).run(once=True)
        full = [(count, tasks) for whole, count, tasks in seen if whole]
        assert len(full) >= BATCHES - 1
        assert (set(full) == {(1, 2)}) == (not extra), seen
