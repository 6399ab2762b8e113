"""Writers that say what they will write, under each policy, phase by phase in every order."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hudilake.format.timeline.timeline import Timeline
from hudilake.policies import Conflicts
from hudilake.table.table import HudiTable
from tests.hudilake.actors.calls import without_pools
from tests.hudilake.actors.running import SEED, Cast, Runs
from tests.hudilake.actors.side_by_side import ADDED
from tests.hudilake.actors.test_deaths import die_and_go_on, phases
from tests.hudilake.actors.world import World, template
from tests.hudilake.lake import storage_at
from tests.selection import first

WithoutIt = Callable[[pytest.MonkeyPatch], None]
#: Two, a policy, and whether one of them ever waits or writes again under it.
PAIRS: list[tuple[Cast, Conflicts, bool]] = [
    ({"left": 1, "right": 1}, "row", False),
    ({"left": 1, "right": 1}, "column", False),
    ({"left": 1, "both": 1}, "row", True),
    ({"left": 1, "compactor": 1}, "row", False),
    ({"new": 1, "newer": 1}, "column", True),
    ({"left": 1, "right": 1}, "queue", True),
    ({"new": 1, "newer": 1}, "row", True),
    ({"right": 1, "whole": 1}, "row", True),
]
#: Writers that change the table's columns.
ADDING: list[Cast] = [{"adds_x": 1, "right": 1}, {"adds_x": 1, "adds_y": 1}, {"adds_x": 1, "adds_x_as_text": 1}]
LONGER: list[Cast] = [
    {"left": 2, "right": 2, "compactor": 2},
    {"left": 2, "right": 2, "both": 2, "archiver": 2, "cleaner": 1},
    {"adds_x": 2, "adds_y": 2, "compactor": 2, "archiver": 1},
]
BY_CALLS: list[Cast] = [
    {"left": 1, "right": 1},
    {"left": 1, "both": 1},
    {"new": 1, "newer": 1},
    {"adds_x": 1, "adds_y": 1},
]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits within a phase: who has to wait says so."""
    monkeypatch.setattr("hudilake.table.overtaking.PATIENCE_S", 0)


@pytest.fixture(scope="module")
def two_buckets(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, World]:
    """Templates whose partitions have two file groups, by whether they keep a metadata table."""
    root = tmp_path_factory.mktemp("two_buckets")
    return {indexed: template(root / str(indexed), indexed, buckets=2) for indexed in (False, True)}


@pytest.fixture
def made(two_buckets: dict[bool, World], indexed: bool) -> World:
    """The template; to be copied, not changed."""
    return two_buckets[indexed]


@pytest.fixture
def by_row(made: World) -> World:
    """The template under the policy ``row``."""
    return replace(made, policy="row")


def _waited(runs: Runs) -> bool:
    return any("abort" in order or "waits, begin" in order for order in runs.orders)


class Columns(Runs):
    """Runs that look at the table's columns too."""

    def look(self, order: str, failures: Mapping[str, BaseException]) -> None:
        super().look(order, failures)
        known = HudiTable.open(storage_at(self.world.path)).schema.names
        if missing := {ADDED[name].name for name in self.cast if name in ADDED} - set(known):
            self.wrong.append(f"{order}: lacks {missing}")


@pytest.mark.full
@pytest.mark.parametrize(("cast", "policy", "waits"), first(4, PAIRS), ids=[f"{p}-{'-'.join(c)}" for c, p, _ in PAIRS])
def test_every_order(made: World, tmp_path: Path, cast: Cast, policy: Conflicts, waits: bool) -> None:
    runs = Runs(replace(made, policy=policy), tmp_path, cast).every()
    assert runs.wrong == []
    assert _waited(runs) is waits


@pytest.mark.full
@pytest.mark.parametrize("cast", ADDING, ids=["-".join(cast) for cast in ADDING])
def test_columns_that_come_at_once(by_row: World, tmp_path: Path, cast: Cast) -> None:
    assert Columns(by_row, tmp_path, cast).every().wrong == []


@pytest.mark.full
@pytest.mark.parametrize("cast", LONGER, ids=["-".join(cast) for cast in LONGER])
def test_two_rounds(by_row: World, tmp_path: Path, cast: Cast) -> None:
    assert Columns(by_row, tmp_path, cast).some(5).wrong == []


@pytest.mark.first(1)
@pytest.mark.parametrize("cast", first(2, BY_CALLS), ids=["-".join(cast) for cast in BY_CALLS])
def test_turns_by_chance(by_row: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cast: Cast) -> None:
    without_pools(monkeypatch)
    assert Columns(by_row, tmp_path, cast).by_calls(4).wrong == []


@pytest.mark.first(1)
@pytest.mark.parametrize(("dying", "living"), first(2, [("left", "both"), ("adds_x", "adds_y"), ("left", "right")]))
def test_a_death_at_every_phase(by_row: World, tmp_path: Path, dying: str, living: str) -> None:
    """What a dead writer announced stands in nobody's way; its successor writes its first batch, perhaps again."""
    (tmp_path / "alone").mkdir()
    runs = Columns(by_row, tmp_path, {dying: 1, living: 1})
    for after in range(1, phases(by_row, tmp_path / "alone", dying)):
        die_and_go_on(runs, dying, after, random.Random(f"{SEED} {dying} {living} {after}"))
    assert runs.wrong == []
    assert "rollback" in runs.actions


def positions_of_the_begin(patch: pytest.MonkeyPatch) -> None:
    """The newest commit is taken by its requested time."""
    patch.setattr(Timeline, "newest_first", lambda timeline: list(reversed(timeline.completed())))


def columns_of_the_begin(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("hudilake.table.publisher.merged_schema", lambda _table, _instant, _begun, wanted: wanted)


def nobody_is_met(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("hudilake.table.overtaking.conflicts", lambda *_: None)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("cast", "without", "signs"),
    [
        ({"left": 1, "right": 1}, positions_of_the_begin, ("positions {",)),
        ({"adds_x": 1, "right": 1}, columns_of_the_begin, ("lacks {'x'}",)),
        ({"left": 1, "both": 1}, nobody_is_met, ("our reader",)),
        ({"adds_x": 1, "adds_y": 1}, columns_of_the_begin, ("lacks {",)),
    ],
)
def test_controls(
    by_row: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cast: Cast,
    without: WithoutIt,
    signs: tuple[str, ...],
) -> None:
    """What keeps them right, taken away: then an order leaves a wrong table."""
    without(monkeypatch)
    assert Columns(by_row, tmp_path, cast, until=signs).every().seen
