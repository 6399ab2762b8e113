"""Tables whose rows have no key of the source: a record is in them once, whether a stream, a dump or both have it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from binlake.load.replay import engine as replay_engine
from binlake.load.replay.engine import read_and_decode
from binlake.load.replay.replay_dumps import ReplayReport, ReplayWorkers, replay_dumps
from binlake.rows.tasks.plan import BatchPlan, Item
from binlake.settings import Settings
from binlake.source.dump_layout import DumpFile, Window
from binlake.source.offsets import OffsetRange, Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.tables.audit import audit
from hudilake.errors import BadInputError, LakeError
from hudilake.services.planned import one_by_one
from hudilake.storage import open_storage
from tests.binlake.load.replay.dumped import HOUR, as_json, lines_of, replay, write
from tests.binlake.load.replay.test_replay import records
from tests.binlake.stream.test_exactly_once import row, runner
from tests.binlake.stream.topic_log import COLUMNS, LocalEngine, TopicLog, event
from tests.judges.agreement import read_ourselves

TOPIC = "s.shop.orders"
LAYOUT = "{database}.{table}/dt={date}/hour={hour}/*"
KINDS = ["append", "keyless"]


@dataclass
class World:
    """A stream and a dump of the same records: equal rows that come and, in a keyless table, go.

    Args:
        place: of the lake and the dump.
        kind: of the table.
    """

    place: Path
    kind: str
    log: TopicLog = field(default_factory=TopicLog)

    def __post_init__(self) -> None:
        for number, key in enumerate([7, 7, 1, 2, 3, 4, 5, 6, 8, 9]):
            self.log.add(TOPIC, event("orders", "c", 100 + number, row(key)), None)
            if number == 1 and self.kind == "keyless":
                self.log.add(TOPIC, event("orders", "d", 110, row(7)), None)
        held = records(self.log, "orders")
        for hour, some in enumerate((held[:5], held[5:])):
            write(self.place / "dumps", "orders", HOUR + hour, "a.jsonl", as_json(some))

    @property
    def settings(self) -> Settings:
        """Of both."""
        document: dict[str, Any] = {
            "name": "shop",
            "lake": {"uri": str(self.place / "lake"), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [TOPIC]},
            "source": {"schemas": {"shop.orders": {"columns": COLUMNS, "key": []}}},
            "tables": {"defaults": {"kind": "append" if self.kind == "append" else "upsert"}},
            "dump": {"uri": str(self.place / "dumps"), "options": {"fsync": "false"}, "path": LAYOUT},
        }
        return Settings.parse(json.dumps(document))

    def stream(self) -> BatchRunner:
        """A stream that begins."""
        return runner(self.settings, open_storage(str(self.place / "lake")))

    def apply(self, stream: BatchRunner, number: int, end: int) -> None:
        """A batch up to an offset; a table that was overtaken is caught up."""
        engine = LocalEngine(self.log)
        stream.run(number, Offsets({TOPIC: {0: end}}), 0, engine)
        while stream.ledger.behind:
            for source in list(stream.ledger.behind):
                stream.catch_up(source, engine)

    def check(self) -> None:
        """Each record is there once."""
        assert self.ids() == sorted([7, *([7] if self.kind == "append" else []), *(n for n in range(1, 10) if n != 7)])
        assert audit(open_storage(str(self.place / "lake" / "shop" / "orders"))).errors == []

    def ids(self) -> list[int]:
        return sorted(read_ourselves(self.place / "lake" / "shop" / "orders").column("id").to_pylist())


@pytest.fixture(autouse=True)
def _forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table without a key remembers few of the records that it has applied."""
    monkeypatch.setattr("binlake.rows.upsert.keyless.WINDOW", 2)


@pytest.mark.first(5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["stream first", "dump first", "in turns", "a late hour"])
def test_a_record_of_both_is_taken_once(tmp_path: Path, kind: str, order: str) -> None:
    world = World(tmp_path, kind)
    end = world.log.end().at(TOPIC, 0)
    first, second = Window(HOUR, HOUR + 1), Window(HOUR + 1, HOUR + 2)
    if order == "stream first":
        world.apply(world.stream(), 0, end)
        assert len(replay(world.settings).taken) == 2
    elif order == "dump first":
        replay(world.settings)
        world.apply(world.stream(), 0, end)
    elif order == "in turns":
        stream = world.stream()
        world.apply(stream, 0, 3)
        replay(world.settings, first)
        world.apply(stream, 1, 7)
        replay(world.settings, second)
        world.apply(stream, 2, end)
    else:
        world.apply(world.stream(), 0, 7)
        replay(world.settings, second)
        replay(world.settings, first)
        world.apply(world.stream(), 1, end)
    world.check()
    assert replay(world.settings).taken == []  # the commits of both hours say so


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_that_the_dump_has_twice_is_taken_once(tmp_path: Path, kind: str) -> None:
    """In a copy of a file of the same portion and of a later one, and twice in one file."""
    world = World(tmp_path, kind)
    held = records(world.log, "orders")
    write(tmp_path / "dumps", "orders", HOUR, "b.jsonl", as_json([*held[:5], *held[:5]]))
    replay(world.settings)
    write(tmp_path / "dumps", "orders", HOUR + 2, "c.jsonl", as_json(held))
    assert len(replay(world.settings).taken) == 1
    world.check()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ahead", ["stream", "replay"])
def test_what_the_other_commits_meanwhile_is_left_out(tmp_path: Path, kind: str, ahead: str) -> None:
    """Between the reading of the records and their commit."""
    world = World(tmp_path, kind)
    end = world.log.end().at(TOPIC, 0)
    world.apply(world.stream(), 0, 3)
    if ahead == "stream":
        between = _Between(lambda: world.apply(world.stream(), 1, end))
        _replay_between(world.settings, between)
    else:
        stream = world.stream()
        engine = _BetweenStream(world.log, act=lambda: replay(world.settings))
        stream.run(1, Offsets({TOPIC: {0: end}}), 0, engine)
        assert stream.ledger.behind
        world.apply(stream, 2, end)
    world.check()


def test_tasks_that_read_the_same_records_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, "append")
    write(tmp_path / "dumps", "orders", HOUR, "b.jsonl", as_json(records(world.log, "orders")[:5]))

    def apart(place: Any, plan: BatchPlan, files: Sequence[DumpFile]) -> Iterator[Item]:  # noqa: ANN401 - as given
        for file in files:
            yield from read_and_decode(place, plan, [file])

    monkeypatch.setattr(replay_engine, "read_and_decode", apart)
    with pytest.raises(BadInputError, match="two files of the dump hold the same records"):
        replay(world.settings)
    assert not (tmp_path / "lake" / "shop" / "orders" / ".hoodie").exists() or world.ids() == []


def test_too_many_ranges_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, "append")
    monkeypatch.setattr("binlake.load.replay.quarantine_table.MOST_RANGES", 1)
    world.apply(world.stream(), 0, 3)
    held = records(world.log, "orders")
    write(tmp_path / "dumps", "orders", HOUR, "a.jsonl", as_json([held[4]]))
    replay(world.settings, Window(HOUR, HOUR + 1))
    write(tmp_path / "dumps", "orders", HOUR, "b.jsonl", as_json([held[6]]))
    with pytest.raises(LakeError, match="lie in 2 ranges of offsets"):
        replay(world.settings, Window(HOUR, HOUR + 1))


def test_control_bare_events_cannot_be_told_apart(tmp_path: Path) -> None:
    world = World(tmp_path, "append")
    write(tmp_path / "dumps", "orders", HOUR + 2, "c.jsonl", lines_of([event("orders", "c", 100, row(1))]))
    world.apply(world.stream(), 0, world.log.end().at(TOPIC, 0))
    replay(world.settings)
    assert world.ids().count(1) == 2


@dataclass
class _Between:
    """Does something once, as soon as a plan has run."""

    act: Callable[[], object]
    done: bool = False

    def __call__(self) -> None:
        if not self.done:
            self.done = True
            self.act()


@dataclass
class _BetweenStream(LocalEngine):
    act: Callable[[], object] = field(default=lambda: None)

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        first = not self.calls
        items = super().run(plan, ranges, shuffle=shuffle)
        if first:
            self.act()
        return items


def _replay_between(config: Settings, between: _Between) -> ReplayReport:
    class Engine(replay_engine.LocalEngine):
        def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
            items = super().run(plan, ranges, shuffle=shuffle)
            between()
            return items

    @contextlib.contextmanager
    def workers() -> Iterator[ReplayWorkers]:
        yield ReplayWorkers(Engine, one_by_one)

    return replay_dumps(config, None, Window(), workers)
