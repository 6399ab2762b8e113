"""Feeds of changes: applied one after the other they are the table's states, over compactions, clusterings, other
buckets, deletes and clean runs; a feed goes on exactly where a position stands."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudilake
from hudilake import ChangePosition, ClusteringPolicy, OrderPolicy, RetentionPolicy
from hudilake.errors import ConfigError, CorruptDataError, UnsupportedError
from hudilake.query.changes.differences import differences
from hudilake.query.samples import PositionExpiredError
from tests.hudilake.api.tables import KEYED, SCHEMA, keyed, row

Change = dict[str, Any]
State = dict[tuple[Any, ...], Change]


def key_of(table: hudilake.Table, values: Change) -> tuple[Any, ...]:
    return tuple(values[name] for name in (*table.key, *table.partition_by))


def changes_of(feed: hudilake.ChangeFeed) -> list[Change]:
    return [change for batch in feed for change in batch.to_pylist()]


def apply(table: hudilake.Table, state: State, changes: list[Change]) -> None:
    """Apply changes to a state, and hold each to what the state says was before."""
    for change in changes:
        before, after = change["before"], change["after"]
        place = key_of(table, before or after)
        assert state.get(place) == before
        assert change["op"] == ("i" if before is None else "d" if after is None else "u")
        assert before != after
        if after is None:
            del state[place]
        else:
            assert key_of(table, after) == place
            state[place] = after


def state_of(table: hudilake.Table, columns: list[str], **moment: Any) -> State:  # noqa: ANN401 - of scan
    return {key_of(table, one): one for one in table.scan(columns, **moment).to_arrow().to_pylist()}


def random_step(table: hudilake.Table, dice: random.Random, step: int) -> None:
    kind = dice.random()
    rows = [
        row(dice.randrange(30), dice.randrange(50 + step), dice.choice("abc")) for _ in range(dice.randrange(2, 20))
    ]
    if kind < 0.5:
        table.upsert(rows)
    elif kind < 0.65:
        table.delete(rows)
    elif kind < 0.8:
        with table.transaction() as both:
            both.upsert(rows[: len(rows) // 2])
            both.delete(rows[len(rows) // 2 :])
    elif kind < 0.9 and table.properties["hoodie.table.type"] == "MERGE_ON_READ":
        table.compact()
    elif table.internal.config.kind.index == "bucket":
        table.rebucket(dice.randrange(1, 5))


@pytest.mark.full
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2, 3, 4))])
@pytest.mark.parametrize("kind", KEYED)
def test_changes_are_the_difference_of_every_two_states(kind: str, seed: int, tmp_path: Path) -> None:
    """Random histories, folded change by change; from a random position the rest of them comes, and nothing else."""
    dice = random.Random(f"{kind}{seed}")
    table = keyed(tmp_path / "t", **KEYED[kind])
    columns = ["id", "name", "day"]
    for step in range(10):
        random_step(table, dice, step)
    state: State = {}
    changes = changes_of(table.changes("", columns=columns))
    for commit in reversed(table.history()):
        apply(table, state, [one for one in changes if one["commit"] == commit.requested])
        assert state == state_of(table, columns, as_of=commit)
    assert {one["commit"] for one in changes} <= {one.requested for one in table.history()}

    feed = table.changes("", columns=columns, batch_rows=dice.randrange(1, 9))
    taken: list[Change] = []
    for batch in feed:
        taken += batch.to_pylist()
        if dice.random() < 0.8:
            continue
        rest = table.changes(ChangePosition.from_json(feed.position.to_json()), columns=columns)
        assert taken + changes_of(rest) == changes
    assert taken == changes


def test_a_clustering_changes_nothing(tmp_path: Path) -> None:
    table = hudilake.create_table(str(tmp_path / "t"), SCHEMA, type="copy_on_write")
    for first in (0, 10, 20):
        with table.transaction() as rows:
            rows.append([row(n, 1) for n in range(first, first + 10)])
    since = table.history()[0]
    assert table.cluster(ClusteringPolicy(select="all", order_by=OrderPolicy(columns=("name",)))) is not None
    assert changes_of(table.changes(since)) == []
    table.append([row(77, 1)])
    assert [one["after"]["id"] for one in changes_of(table.changes(since))] == [77]


def test_rows_without_a_key_are_inserted_once(tmp_path: Path) -> None:
    table = hudilake.create_table(str(tmp_path / "t"), SCHEMA, partition_by="day")
    table.append([row(1, 1), row(1, 1)])
    since = table.history()[0]
    table.append([row(1, 1), row(2, 1)])
    assert [(one["op"], one["after"]["id"]) for one in changes_of(table.changes(since))] == [("i", 1), ("i", 2)]
    assert len(changes_of(table.changes(""))) == 4


def test_a_write_of_the_same_values_is_no_change(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1), row(2, 1)])
    since = table.history()[0]
    table.upsert([row(1, 2), row(2, 2, "b")])
    (only,) = changes_of(table.changes(since))
    assert (only["op"], only["before"]["name"], only["after"]["name"]) == ("u", "a", "b")
    assert changes_of(table.changes(since, columns=["id"])) == []
    assert len(changes_of(table.changes(since, columns=["id", "updated_at"]))) == 2


def test_what_is_not_kept_is_refused(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    for order in range(8):
        table.upsert([row(1, order, str(order))])
        table.compact()
    first = table.history()[-1]
    feed = table.changes("")
    next(iter(feed))
    early = feed.position
    table.clean(RetentionPolicy(commits=2))
    with pytest.raises(PositionExpiredError, match="does not keep"):
        changes_of(table.changes(first))
    table.archive(2, 3)
    with pytest.raises(PositionExpiredError, match="archived"):
        changes_of(table.changes(early))
    newest = table.history()[0]
    assert changes_of(table.changes(newest)) == []


def test_a_restore_ends_a_feed_that_has_given_what_it_took_back(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1)])
    kept = table.history()[0]
    table.upsert([row(1, 2, "b")])
    feed = table.changes("")
    assert len(changes_of(feed)) == 2
    table.restore(kept)
    with pytest.raises(PositionExpiredError, match="taken back"):
        table.changes(feed.position)
    assert len(changes_of(table.changes(kept))) == 0


def test_arguments_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1)])
    with pytest.raises(ConfigError, match="follow and until"):
        table.changes("", "20260101000000000", follow=True)
    with pytest.raises(UnsupportedError, match="no columns"):
        table.changes("", columns=["nope"])
    for text in ("", "7", "{}", '{"completed": 7}', '{"after": {"x": 1}}', '{"nope": ""}'):
        if text != "{}":
            with pytest.raises(ConfigError, match="no position"):
                ChangePosition.from_json(text)
    assert ChangePosition.from_json("{}") == ChangePosition()


def test_a_feed_that_follows_gives_later_commits(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1)])
    feed = table.changes("", follow=True)
    feed.poll_s = 0.01
    batches = iter(feed)
    assert next(batches).num_rows == 1
    hudilake.open_table(table.uri).upsert([row(2, 1), row(3, 1)])
    assert next(batches).num_rows in (1, 2)
    feed.stop.set()


def test_values_are_compared_as_they_are() -> None:
    schema = pa.schema({"f": pa.float64(), "l": pa.list_(pa.int32()), "b": pa.binary()})
    key = pa.array(["a", "b", "c", "d"])

    def rows(floats: list[float | None], lists: list[Any]) -> pa.Table:
        columns = [key, pa.array(floats, pa.float64()), pa.array(lists, schema.field("l").type), pa.array([b"x"] * 4)]
        return pa.table(columns, names=["_hoodie_record_key", *schema.names])

    before = rows([math.nan, 0.0, None, 1.0], [[1], [1], None, [1, None]])
    after = rows([math.nan, -0.0, 0.0, 1.0], [[1], [1], None, [1, 0]])
    assert differences(before, after, schema, "g").keys.to_pylist() == ["b", "c", "d"]
    assert len(differences(before, before, schema, "g")) == 0
    twice = pa.concat_tables([before, before])
    with pytest.raises(CorruptDataError, match="two rows"):
        differences(before, twice, schema, "g")
