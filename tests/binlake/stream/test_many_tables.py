"""A batch costs nothing for the tables that it does not touch: calls of the store and calls from Python, counted.

A stream may have thousands of topics and tables. What a batch does for each of them is an expression, and no call.
Calls from Python are those of the thread that runs the batches: what others do there is told by the calls of the store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.many_tables import World
from binlake.position.topics import Topics
from binlake.stream.monitoring.monitor import Monitor
from binlake.stream.recovery import open_known
from hudilake.storage import Storage
from tests.counting import counted
from tests.hudilake.metadata import below

BUSY, FEW, MANY = 2, 4, 124
#: Calls from Python that an idle table may add to a batch: none, but to wait for threads takes some dozens.
CALLS_AN_IDLE_TABLE = 0.5
BATCHES = 3
#: Calls of the store to open a table at the start of a stream: 13 measured.
CALLS_TO_OPEN = 13


class Counted:
    """A stream of so many tables, whose batches are watched by a monitor. ``made``: whether the tables are there."""

    def __init__(self, place: Path, tables: int, *, made: bool = False) -> None:
        self.world = World(str(place), tables, 1, {"fsync": "false"}, self._wrapped)
        if not made:
            self.world.make()
        self._monitor = Monitor(60.0)
        self._monitor.attach(self.world.lake, self.world.ledger)
        self._topics = Topics(self.world.settings.kafka, self.world.ledger)

    def _wrapped(self, storage: Storage) -> Storage:
        self.storage = below.Counting(storage)
        return self.storage

    def costs(self, further: Callable[[World], None]) -> tuple[int, Counter[str]]:
        """Calls from Python, and those of the store, of the cheapest batch. ``further``: is done with it."""
        every: list[tuple[int, Counter[str]]] = []
        for _ in range(BATCHES):
            self.world.feed(range(BUSY))
            end = self.world.end()
            self.storage.calls.clear()

            def work() -> None:
                self._topics.planned(end)  # noqa: B023 - it is called here
                self._monitor.update(self.world.batch(end))  # noqa: B023
                further(self.world)

            _, calls = counted(work)
            every.append((calls, Counter(method for method, _ in self.storage.calls)))
        return min(every, key=lambda one: one[0])


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Counted, Counted]]:
    """Two streams with few and many tables."""
    few, many = (Counted(tmp_path_factory.mktemp("lake"), count) for count in (FEW, MANY))
    yield few, many
    few.world.runner.close()
    many.world.runner.close()


def nothing(world: World) -> None:
    """A batch, and nothing else."""


def looks_at_each(world: World) -> None:
    """A look at a file of every table."""
    for path in world.ledger.tables.values():
        world.root.stat(f"{path}/.hoodie/hoodie.properties")


def names_each(world: World) -> None:
    """The name of every table."""
    for source in world.ledger.tables:
        str(source)


@pytest.mark.full
@pytest.mark.parametrize("further", [nothing, looks_at_each, names_each])
def test_idle_tables_cost_a_batch_nothing(streams: tuple[Counted, Counted], further: Callable[[World], None]) -> None:
    few, many = (stream.costs(further) for stream in streams)
    grown = (many[0] - few[0]) / (MANY - FEW)
    assert (grown <= CALLS_AN_IDLE_TABLE) == (further is nothing), (few, many)
    assert (many[1] == few[1]) == (further is not looks_at_each)


@pytest.mark.parametrize(("times", "within"), [(1, True), (2, False)])
def test_the_calls_that_open_a_table(tmp_path: Path, times: int, within: bool) -> None:
    """The control opens each table twice."""
    Counted(tmp_path, FEW).world.runner.close()
    again = Counted(tmp_path, FEW, made=True)
    again.storage.calls.clear()
    world = again.world
    for _ in range(times):
        assert open_known(world.settings, world.lake, world.ledger) == {}
        for path in world.ledger.tables.values():
            world.lake.forget(path)
    world.runner.close()
    assert (len(again.storage.calls) <= CALLS_TO_OPEN * FEW) == within, Counter(m for m, _ in again.storage.calls)
