"""Histories drawn from seeds end right; the controls: what a store or the rows lose is seen, and shrinks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from binlake.decode.changes import RawRecords
from binlake.source.offsets import OffsetRange
from hudilake.errors import LakeError
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.hypothesis_profile import scaled
from tests.programs.simulation.changes import Change
from tests.programs.simulation.faults import Early, EarlyStore, copied
from tests.programs.simulation.kafka import SimulatedTopics
from tests.programs.simulation.shapes import PLAIN, Rules, engine_of, shape
from tests.programs.simulation.simulation import Simulation, play, simulated_clock
from tests.programs.simulation.steps import Happening, Step, history, shrunk


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(scaled(10, least=2)))
def test_a_history_ends_right(seed: int) -> None:
    assert play(history(seed)) == ""


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 100 + scaled(100)))
def test_further_histories_end_right(seed: int) -> None:
    assert play(history(seed)) == ""


def test_the_kinds_of_tables_are_drawn() -> None:
    """The control: without its shape a table is of the plainest kind."""
    number = next(n for n in range(1 << 10) if shape("accounts", n).get("index") == {"type": "record_index"})
    steps = [Step(Happening.PUT, "accounts", 1, 5), Step(Happening.DELIVER, number=1), Step(Happening.BATCH)]
    kinds = []
    for before in ([Step(Happening.SHAPE, "accounts", number=number)], []):
        world = Simulation(f"simulation-kinds-{len(before)}")
        with simulated_clock(world):
            for step in [*before, *steps, Step(Happening.LAY_OUT, "accounts"), Step(Happening.REBUCKET, "accounts")]:
                world.take(step)
            kinds.append(HudiTable.open(world.root().sub("shop/accounts")).config.kind.index)
            world.end()
    assert kinds == ["record_index", "bucket"]


def test_a_seed_draws_the_same_steps_again() -> None:
    assert history(7) == history(7) != history(8)


def test_a_lost_change_is_seen_and_the_history_shrinks_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a stream to which one of its records is not shown."""
    read = SimulatedTopics.read

    def without_deletes(topics: SimulatedTopics, ranges: Sequence[OffsetRange]) -> Iterator[RawRecords]:
        for records in read(topics, ranges):
            yield records.select([n for n, v in enumerate(records.values) if v is None or b'"op": "d"' not in v])

    monkeypatch.setattr(SimulatedTopics, "read", without_deletes)
    steps = [
        Step(Happening.PUT, "orders", 1, 5),
        Step(Happening.PUT, "orders", 2, 6),
        Step(Happening.BATCH),
        Step(Happening.CLOCK, number=3),
        Step(Happening.DELETE, "orders", 1),
        Step(Happening.RESTART),
    ]
    assert "orders" in play(steps)
    fewest = shrunk(steps, lambda fewer: bool(play(fewer)))
    assert [(step.what, step.key) for step in fewest] == [(Happening.PUT, 1), (Happening.DELETE, 1)]


def test_a_file_that_the_store_loses_is_seen() -> None:
    """The control: a data file goes behind the back of everybody."""
    world = Simulation("simulation-lost-file")
    with simulated_clock(world):
        for step in (Step(Happening.PUT, "orders", 2, 5), Step(Happening.DELIVER, number=1), Step(Happening.BATCH)):
            world.take(step)
        store = world.root()
        (gone,) = [
            info.path for info in store.walk("shop/orders") if ".log." in info.path and ".hoodie" not in info.path
        ]
        store.delete(gone)
        with pytest.raises((AssertionError, LakeError), match="orders"):
            world.end()


def test_an_early_process_sees_the_past_until_it_changes_something() -> None:
    root = open_storage("memory://simulation-early", {})
    root.write("a", b"1")
    past = copied(root, "memory://simulation-early-past")
    root.write("a", b"2")
    root.write("b", b"3")
    early = EarlyStore(root, past, Early(past, 2, "memory://simulation-early"))
    assert [info.path for info in early.walk("")] == ["a"]
    assert [early.read("a"), early.read("a")] == [b"1", b"2"]
    early = EarlyStore(root, past, Early(past, 9, "memory://simulation-early"))
    early.write("c", b"4")
    assert early.stat("b") is not None


@pytest.mark.parametrize("rules", [PLAIN, {**PLAIN, "merge": {"engine": "partial_update"}}])
def test_a_row_that_moves_leaves_its_partition(rules: Rules, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: without before images it is in both. In a table with an engine none moves."""
    monkeypatch.setattr("tests.programs.simulation.simulation.shape", lambda *_: rules)
    steps = [Step(Happening.SHAPE, "accounts")]
    for number in (0, 3):
        steps += [Step(Happening.PUT, "accounts", 1, number), Step(Happening.DELIVER, number=1), Step(Happening.BATCH)]
    assert play(steps) == ""
    whole = Change.event
    monkeypatch.setattr(Change, "event", lambda change: whole(replace(change, left=None)))
    assert ("accounts" in play(steps)) == ("merge" not in rules)


@pytest.mark.parametrize("kind", ["append", "first_row", "aggregate", "history"])
def test_each_kind_of_table_is_compared(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a stream to which the first record is not shown."""
    kinds = {
        "history" if "history" in rules else engine_of(rules): n
        for n in range(1 << 8)
        if (rules := shape("accounts", n))
    }
    steps = [Step(Happening.SHAPE, "accounts", number=kinds[kind])]
    for number in (1, 2):
        steps += [Step(Happening.PUT, "accounts", 1, number), Step(Happening.DELIVER, number=1), Step(Happening.BATCH)]
    assert play(steps) == ""
    read = SimulatedTopics.read

    def without_the_first(topics: SimulatedTopics, ranges: Sequence[OffsetRange]) -> Iterator[RawRecords]:
        for records in read(topics, ranges):
            yield records.select([n for n, offset in enumerate(records.offsets) if offset > 0])

    monkeypatch.setattr(SimulatedTopics, "read", without_the_first)
    assert play(steps) != ""


def test_both_streams_have_rows_in_one_table() -> None:
    """The control: a second stream that never runs leaves its rows out."""
    puts = [Step(Happening.PUT, "orders", key, key) for key in (1, 2, 3)]
    steps = [*puts, Step(Happening.DELIVER, number=1), Step(Happening.BATCH), Step(Happening.SECOND)]
    assert play(steps) == ""
    with pytest.MonkeyPatch.context() as patch:
        run = Simulation._batch
        patch.setattr(Simulation, "_batch", lambda self, name, fate: run(self, name, fate) if name == "shop" else [])
        assert "orders" in play(steps)


def test_records_that_come_again_without_those_before_them_are_no_second_run() -> None:
    """The ledger is lost, and Kafka keeps only the newer of two records of a key, which the table had not applied."""
    steps = [
        Step(Happening.DELETE, "accounts", 1),
        Step(Happening.DELIVER, number=1),
        Step(Happening.BATCH),
        Step(Happening.AGAIN, number=1),
        Step(Happening.COMPACTED, "accounts"),
        Step(Happening.NO_LEDGER),
    ]
    assert play(steps) == ""
