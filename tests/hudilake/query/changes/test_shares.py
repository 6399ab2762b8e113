"""Shares of the changes between two positions: together they hold what a feed gives, each change once."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import pytest

import hudilake
from hudilake import ChangePosition, ClusteringPolicy, OrderPolicy, RetentionPolicy
from hudilake.errors import ConfigError, UnsupportedError
from hudilake.query.changes.shares import ChangePlanner, ChangeShare
from hudilake.query.samples import PositionExpiredError
from tests.hudilake.api.tables import KEYED, SCHEMA, keyed, row
from tests.hudilake.query.changes.test_feed import Change, changes_of, random_step


def planner_of(table: hudilake.Table, columns: list[str] | None = None) -> ChangePlanner:
    return ChangePlanner(hudilake.open_table(table.uri).internal, columns)


def read(table: hudilake.Table, planner: ChangePlanner, share: ChangeShare) -> list[Change]:
    """The changes of a share, as another process reads it."""
    other = hudilake.open_table(table.uri).internal
    batches = list(pickle.loads(pickle.dumps(share)).read(other, planner.columns, 3))
    assert all(0 < batch.num_rows <= 3 for batch in batches)
    return [change for batch in batches for change in batch.to_pylist()]


def in_order(changes: list[Change]) -> list[str]:
    """As text, in one order: shares have none among them."""
    return sorted(map(repr, changes))


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2, 3, 4))])
@pytest.mark.parametrize("kind", KEYED)
def test_shares_of_batches_hold_each_change_once(kind: str, seed: int, tmp_path: Path) -> None:
    """A table grows by random writes, compactions and other buckets while batches of random bounds are read."""
    dice = random.Random(f"{kind}{seed}")
    table = keyed(tmp_path / "t", **KEYED[kind])
    planner = planner_of(table, ["id", "name", "day"])
    position = planner.begin("earliest")
    taken: list[Change] = []
    sizes: set[int] = set()

    def batch(most: int | None) -> int:
        nonlocal position
        end = planner.latest(position, most)
        shares = planner.shares(position, end, dice.randrange(1, 6))
        assert planner_of(table, planner.columns).shares(position, end, 5) == planner.shares(position, end, 5)
        for share in shares:
            mine = read(table, planner, share)
            times = [change["completed"] for change in mine]
            assert times == sorted(times)
            taken.extend(mine)
        commits = {part.commit for share in shares for part in share.parts}
        sizes.add(len(commits))
        assert most is None or len(commits) <= most
        position = ChangePosition.from_json(end.to_json())
        return len(commits)

    for step in range(12):
        random_step(table, dice, step)
        if dice.random() < 0.5:
            batch(dice.choice([1, 2, None]))
    while batch(2):
        pass
    assert in_order(taken) == in_order(changes_of(table.changes("", columns=planner.columns)))
    assert len(sizes) > 1


def test_shares_are_whole_file_groups(tmp_path: Path) -> None:
    """Each file group with all its commits; after a move to other buckets each partition, in which nothing changed."""
    table = keyed(tmp_path / "t", buckets=4)
    for order in range(3):
        table.upsert([row(number, order, str(order)) for number in range(60)])
    planner = planner_of(table)
    start, end = planner.begin("earliest"), planner.latest(None)
    shares = planner.shares(start, end, 64)
    groups = [{name for part in share.parts for name, _ in part.units} for share in shares]
    assert len(shares) == 3 * 4  # partitions, buckets
    assert all(len(names) == 1 for names in groups)
    assert all(len(share.parts) == 3 for share in shares)
    assert len(planner.shares(start, end, 5)) == 5
    assert planner.shares(end, end, 5) == []
    table.compact()
    assert planner.latest(end) == planner.latest(None) == end
    table.rebucket(3)
    moved = planner.shares(end, planner.latest(end), 64)
    assert [name for share in moved for part in share.parts for name, _ in part.units] == [
        (f"day=d{n}", "") for n in range(3)
    ]
    assert [change for share in moved for change in read(table, planner, share)] == []


def test_a_clustering_is_no_commit_of_a_batch(tmp_path: Path) -> None:
    table = hudilake.create_table(str(tmp_path / "t"), SCHEMA, type="copy_on_write")
    for first in (0, 10, 20):
        table.append([row(n, 1) for n in range(first, first + 10)])
    planner = planner_of(table)
    end = planner.latest(None)
    assert table.cluster(ClusteringPolicy(select="all", order_by=OrderPolicy(columns=("name",)))) is not None
    assert planner.latest(end) == end
    table.append([row(77, 1)])
    later = planner.latest(end, 1)
    [share] = planner.shares(end, later, 8)
    assert [one["after"]["id"] for one in read(table, planner, share)] == [77]


def test_a_begin_is_a_moment_or_a_position(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1), row(4, 1)])
    first = table.history()[0]
    table.upsert([row(2, 1)])
    planner = planner_of(table)
    assert planner.begin("earliest") == ChangePosition()
    behind = planner.begin(first.completed)
    assert planner.begin(behind.to_json()) == behind
    assert planner.latest(behind, until=first.completed) == behind
    feed = table.changes("", batch_rows=1)
    next(iter(feed))
    with pytest.raises(ConfigError, match="within a commit"):
        planner.begin(feed.position.to_json())
    with pytest.raises(ConfigError, match="not a moment"):
        planner.begin("yesterday")


def test_what_is_not_kept_is_refused(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    for order in range(8):
        table.upsert([row(1, order, str(order))])
        table.compact()
    planner = planner_of(table)
    start = planner.begin(table.history()[-1].completed)
    [share] = planner.shares(start, planner.latest(start), 1)
    assert len(read(table, planner, share)) == 7
    table.clean(RetentionPolicy(commits=2))
    with pytest.raises(PositionExpiredError, match="does not keep"):
        read(table, planner, share)
    table.archive(2, 3)
    with pytest.raises(PositionExpiredError, match="archived"):
        read(table, planner, share)
    with pytest.raises(PositionExpiredError, match="archived"):
        planner_of(table).latest(start)
    with pytest.raises(PositionExpiredError, match="archived"):
        planner_of(table).begin("earliest")


def test_a_commit_that_was_taken_back_ends_a_plan(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1)])
    kept = table.history()[0]
    table.upsert([row(1, 2, "b")])
    planner = planner_of(table)
    start = planner.begin(kept.completed)
    end = planner.latest(start)
    [share] = planner.shares(start, end, 1)
    table.restore(kept)
    for late in (planner, planner_of(table)):
        with pytest.raises(PositionExpiredError, match="taken back"):
            late.latest(end)
        with pytest.raises(PositionExpiredError, match="taken back"):
            late.shares(start, end, 1)
    with pytest.raises(PositionExpiredError, match="taken back"):
        read(table, planner, share)
    assert planner_of(table).latest(start) == start


def test_other_columns_end_a_plan(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1)])
    planner = planner_of(table)
    table.evolve(SCHEMA.remove(SCHEMA.get_field_index("name")))
    with pytest.raises(UnsupportedError, match="columns of the feed are gone"):
        planner.latest(None)
    assert "name" not in planner_of(table).columns
