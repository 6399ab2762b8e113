"""A batch that takes long says what it does, by counts; the clock is the test's."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from binlake.decode.changes import RawRecords, SourceTable
from binlake.rows.tasks.decode_and_route import decode_records
from binlake.rows.tasks.plan import BatchPlan, Item
from binlake.source.offsets import OffsetRange, Ranges
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring import steps as module
from binlake.stream.monitoring.steps import EVERY_S, FIRST_S, LATER_S, BatchSteps, StepTeller
from binlake.tables.lake import Lake
from hudilake.storage import open_storage
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.stream.topic_log import TopicLog, services


@dataclass
class Hand:
    """A clock that goes on when it is told."""

    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Hand:
    hand = Hand()
    monkeypatch.setattr(module, "monotonic_s", hand)
    return hand


class Noted(BatchSteps):
    """Keeps what it is told of tables."""

    def __init__(self, counts_in: str | None) -> None:
        super().__init__(counts_in)
        self.told: list[tuple[str, str]] = []

    def tables(self, tables: Iterable[SourceTable], state: str) -> None:
        named = list(tables)
        self.told += [(str(table), state) for table in named]
        super().tables(named, state)


@dataclass
class SlowEngine:
    """A task that takes ``takes_s`` for each chunk; the lines that are due meanwhile."""

    log: TopicLog
    steps: BatchSteps
    clock: Hand
    takes_s: float
    lines: list[str | None] = field(default_factory=list)

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        return list(decode_records(plan, self._chunks(ranges)))

    def _chunks(self, ranges: Sequence[OffsetRange]) -> Iterator[RawRecords]:
        for records in self.log.read(ranges):
            self._look()
            yield records
        self._look()

    def _look(self) -> None:
        self.clock.now_s += self.takes_s
        self.lines.append(self.steps.due())


def engine_of(lake: FedLake, steps: BatchSteps, clock: Hand, takes_s: float) -> SlowEngine:
    """The engine of a lake whose stream tells these steps."""
    runner = lake.runner
    root = open_storage(str(lake.path), {"fsync": "false"})
    settings = lake.settings
    lake.runner = BatchRunner(
        settings,
        Lake(root),
        root.sub(".binlake/shop"),
        runner.ledger,
        SchemaRegistry(settings),
        services(),
        steps=steps,
    )
    engine = SlowEngine(lake.log, steps, clock, takes_s)
    lake.engine = engine  # type: ignore[assignment]
    return engine


def test_a_first_batch_tells_records_and_tables(tmp_path: Path, clock: Hand) -> None:
    (tmp_path / "counts").mkdir()
    lake, steps = FedLake(tmp_path), Noted(str(tmp_path / "counts"))
    engine = engine_of(lake, steps, clock, EVERY_S)
    lake.batches = 3
    lake.feed()
    before, between, after = engine.lines
    assert before == "batch 3 has taken 5 s: fetches and decodes 10 records: s.shop.a 5, s.shop.b 5"
    assert between is not None
    assert between.endswith("10 records: 5 fetched, 5 decoded (s.shop.a 5 of 5, s.shop.b 0 of 5)")
    assert after == (
        "batch 3 has taken 15 s: fetches and decodes 10 records: 10 fetched, 10 decoded "
        "(s.shop.a 5 of 5, s.shop.b 5 of 5)"
    )
    for table in ("shop.a", "shop.b"):
        states = [state for name, state in steps.told if name == table]
        assert states == ["waits", "writes 5 records", "commits", "is committed"]
    assert steps.due() is None
    lake.feed()  # what the last batch has counted is forgotten
    assert engine.lines[3] is None
    assert engine.lines[4] is not None
    assert " 6 fetched, 6 decoded (s.shop.a 6 of 6, s.shop.b 0 of 6)" in engine.lines[4]


def test_without_counts_of_tasks_the_line_says_how_many_records_there_are(tmp_path: Path, clock: Hand) -> None:
    lake, steps = FedLake(tmp_path), BatchSteps(str(tmp_path / "not here"))
    engine = engine_of(lake, steps, clock, EVERY_S)
    lake.feed()
    assert engine.lines[-1] == "batch 0 has taken 15 s: fetches and decodes 4 records: s.shop.a 2, s.shop.b 2"


def test_quick_batches_are_silent_and_lines_come_now_and_then(clock: Hand) -> None:
    steps = BatchSteps()
    with steps.batch(0, Ranges([OffsetRange("t", 0, 0, 7)])):
        clock.now_s += FIRST_S - 0.1
        assert steps.due() is None
        clock.now_s += 0.1
        assert steps.due() == "batch 0 has taken 2 s: plans"
        clock.now_s += EVERY_S - 0.1
        assert steps.due() is None
        steps.stage("writes and commits")
        steps.tables([SourceTable("shop", f"t{n}") for n in range(6)], "waits")
        clock.now_s += 0.1
        line = steps.due()
        assert line is not None
        assert line.endswith("shop.t0 waits, shop.t1 waits, shop.t2 waits, shop.t3 waits and 2 more")
        assert all(character.isprintable() for character in line)
    with steps.batch(1, Ranges([])):
        clock.now_s += LATER_S - 0.1
        assert steps.due() is None
        clock.now_s += 0.1
        assert steps.due() == "batch 1 has taken 10 s: plans"


def test_a_thread_shows_the_lines() -> None:
    steps, lines = BatchSteps(), list[str]()
    shown = threading.Event()

    def say(line: str) -> None:
        lines.append(line)
        shown.set()

    with StepTeller(steps, say), steps.batch(0, Ranges([])):
        assert shown.wait(60)
    assert lines[0].startswith("batch 0 has taken 2 s: plans")


def test_offsets_of_a_binlog_count_no_records(clock: Hand) -> None:
    steps = BatchSteps()
    with steps.batch(3, Ranges([OffsetRange("binlog/1", 0, 0, 610_304)])):
        steps.stage("fetches")
        clock.now_s += FIRST_S + 1
        assert steps.due() == "batch 3 has taken 3 s: fetches and decodes what the binlog has"
        work = steps.work()
        assert work is not None
        assert (work.done, work.of) == (None, None)
