"""Indexes with a memory: what they are told, what they are not told, and what never completed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.index.base import KeyIndex
from hudilake.index.open import open_index
from hudilake.policies import ExternalStorePolicy, IndexType, LookupPolicy
from hudilake.table.table import HudiTable
from tests.hudilake.index.looked_up import LookedUpTable, Place

A, B = ("day=1", "a-0"), ("day=2", "b-0")
KEYS = ["k1", "k2", "k3", "k4"]
MEMORIES: tuple[IndexType, ...] = ("in_memory", "external")


class World:
    """A table with an index that has a memory."""

    def __init__(self, root: Path, index: IndexType) -> None:
        self.lake = LookedUpTable.make(root / "t", index)
        self.policy = LookupPolicy(external=ExternalStorePolicy(store="lmdb", path=str(root / "lmdb")))
        self.index = open_index(self.lake.table, self.policy)
        self.files_read()

    def files_read(self, index: KeyIndex | None = None) -> int:
        """The files that a right answer costs."""
        answer = self.lake.check(index or self.index, KEYS, ["day=1"] * len(KEYS), is_global=True)
        return answer.cost.files_read


@pytest.fixture(params=MEMORIES)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path, request.param)


def test_what_it_is_told_costs_no_file(world: World) -> None:
    moves: list[tuple[dict[Place, set[str]], dict[Place, set[str]]]] = [
        ({A: {"k1", "k2"}}, {}),
        ({B: {"k3", "k1"}}, {A: {"k1"}}),
        ({B: {"k3"}}, {A: {"k2"}}),
        ({A: {"k2", "k4"}}, {}),
    ]
    for bases, deletes in moves:
        world.lake.write(bases, deletes, [world.index])
        assert world.files_read() == 0


def test_what_it_is_not_told_is_read_from_the_table(world: World) -> None:
    world.lake.write({A: {"k1"}}, indexes=[world.index])
    assert world.files_read() == 0
    world.lake.write({B: {"k2"}})
    assert world.files_read() == 2
    assert world.files_read() == 0


def test_a_commit_that_died_counts_never(world: World) -> None:
    world.lake.write({A: {"k1", "k2"}}, indexes=[world.index])
    world.lake.write({B: {"k1", "k3"}}, {A: {"k1"}}, [world.index], dies=True)
    assert world.files_read() == 0
    world.lake.write({B: {"k1", "k3"}}, {A: {"k1"}}, [world.index])
    assert world.files_read() == 0


def test_another_process_finds_the_same(world: World) -> None:
    """An external index has kept it; one in memory reads the table."""
    world.lake.write({A: {"k1"}, B: {"k3"}}, indexes=[world.index])
    table = HudiTable.open(world.lake.table.storage)
    is_external = table.config.kind.index == "external"
    assert world.files_read(open_index(table, world.policy)) == (0 if is_external else 2)


def test_a_key_with_two_rows_is_an_error(tmp_path: Path) -> None:
    world = World(tmp_path, "in_memory")
    world.lake.write({A: {"k1"}, B: {"k1"}})
    with pytest.raises(CorruptDataError, match="'k1' has several rows"):
        world.files_read()


def test_in_memory_has_a_limit(tmp_path: Path) -> None:
    world = World(tmp_path, "in_memory")
    index = open_index(world.lake.table, LookupPolicy(in_memory_keys=3))
    world.lake.write({A: {"k1", "k2"}}, indexes=[index])
    assert world.files_read(index) == 1
    world.lake.write({B: {"k3", "k4"}}, indexes=[index])
    with pytest.raises(UnsupportedError, match="more than 3 record keys"):
        world.files_read(index)


def test_a_lost_store_is_read_anew(tmp_path: Path) -> None:
    world = World(tmp_path, "external")
    world.lake.write({A: {"k1"}, B: {"k" * 900}})
    lost = LookupPolicy(external=ExternalStorePolicy(store="lmdb", path=str(tmp_path / "other")))
    index = open_index(world.lake.table, lost)
    assert world.files_read(index) == 2
    world.lake.check(index, ["k" * 900, "k" * 901], ["day=1"] * 2, is_global=True)


def test_an_entry_of_an_archived_rollback_does_not_count(tmp_path: Path) -> None:
    """Every file of an instant before the active timeline counts as completed; an entry must not."""
    world = World(tmp_path, "external")
    world.lake.write({A: {"k1"}}, indexes=[world.index])
    world.files_read()
    died = world.lake.write({B: {"k2"}}, indexes=[world.index], dies=True)
    done = world.lake.write({B: {"k3"}}, indexes=[world.index])
    assert died < done
    timeline = world.lake.table.timeline
    timeline.archived([write for write in timeline.completed() if write.requested_time < done])
    assert timeline.is_completed(died)
    answer = world.lake.check(open_index(world.lake.table, world.policy), ["k2"], ["day=2"], is_global=True)
    assert answer.file_ids.null_count == 1
