"""Samples: complete rows, each once, in the order of the commits that made them complete, from any position on."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.definition.merging import WRITER_ORDER
from hudilake.query.samples import PositionExpiredError, SampleBatch, SamplePosition, Samples, Shard
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from tests.hudilake.query.samples.feature_table import ORDER, FeatureTable, Row
from tests.hypothesis_profile import scaled

BEGIN = SamplePosition()
CLEANING = CleaningConfig(commits=3)


@pytest.fixture(params=[False, True], ids=["whole rows", "partial rows"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> FeatureTable:
    return FeatureTable(tmp_path / "t", partial=request.param)


def samples(table: FeatureTable, **arguments: Any) -> Samples:  # noqa: ANN401 - those of Samples
    return Samples(str(table.path), **arguments)


def keys(batches: Iterable[pa.RecordBatch]) -> list[str]:
    return [key for batch in batches for key in batch.column("request_id").to_pylist()]


def test_a_row_is_given_once_when_its_last_group_arrives(table: FeatureTable) -> None:
    table.features("a", "b", "c")
    table.labels("b")
    table.features("d")
    table.labels("d", "a")
    assert keys(samples(table, since=BEGIN)) == ["b", *sorted("ad", key=lambda k: (table._bucket(k), k))]
    assert sorted(keys(samples(table))) == ["a", "b", "d"]
    assert sorted(keys(samples(table, complete=False))) == ["a", "b", "c", "d"]
    assert sorted(keys(samples(table, complete=["features"]))) == ["a", "b", "c", "d"]


def test_the_rows_are_of_the_commit_that_made_them_complete(table: FeatureTable) -> None:
    table.features("a", age=1)
    table.labels("a")
    table.features("a", age=7)
    assert [b.to_pylist() for b in samples(table, columns=["age"], since=BEGIN)] == [[{"age": 1}]]
    assert [b.to_pylist() for b in samples(table, columns=["age"])] == [[{"age": 7}]]


def test_a_change_is_given_only_if_asked_for(table: FeatureTable) -> None:
    table.both(["a", "b"], ["a", "b"])
    table.features("a", age=9)
    assert sorted(keys(samples(table, since=BEGIN))) == ["a", "b"]
    assert sorted(keys(samples(table, since=BEGIN, changes=True))) == ["a", "a", "b"]


def test_what_ceases_to_be_complete_is_given_again_when_it_is(table: FeatureTable) -> None:
    table.both(["a", "b"], ["a", "b"])
    table.unlabel("a")
    table.delete("b")
    assert keys(samples(table)) == []
    table.labels("a")
    table.both(["b"], ["b"])
    assert sorted(keys(samples(table, since=BEGIN))) == ["a", "a", "b", "b"]


def test_a_column_group_with_null_values_knows_its_rows(table: FeatureTable) -> None:
    table.features("a", age=None)
    table.labels("a", clicked=None)
    assert keys(samples(table)) == ["a"]


def test_a_row_from_before_the_table_was_stitched_is_known_to_the_first_group(table: FeatureTable) -> None:
    old: Row = dict.fromkeys(table.table.schema.names) | {"request_id": "a", "age": 3, ORDER: 12}
    new: Row = old | {"request_id": "b", ORDER: WRITER_ORDER, f"{ORDER}_labels": 12}
    table.write([old, new])
    assert keys(samples(table, complete=["features"])) == ["a"]
    assert keys(samples(table, complete=["labels"])) == ["b"]
    assert keys(samples(table)) == []


def test_a_plain_table_gives_rows_without_nulls_in_the_asked_columns(tmp_path: Path) -> None:
    table = FeatureTable(tmp_path / "t", stitched=False)
    table.features("a", "b")
    table.labels("b")
    assert keys(samples(table, columns=["request_id", "age", "clicked"])) == ["b"]
    assert sorted(keys(samples(table, columns=["request_id", "age"]))) == ["a", "b"]


def test_compactions_give_nothing_again(table: FeatureTable) -> None:
    table.features(*"abcd")
    table.labels("a")
    table.compact()
    middle = _last(samples(table)).position
    table.labels("b")
    table.compact()
    table.features("e")
    table.labels("c", "e")
    assert sorted(keys(samples(table, since=middle))) == ["b", "c", "e"]
    assert sorted(keys(samples(table, since=BEGIN))) == ["a", "b", "c", "e"]


def _last(given: Samples) -> SampleBatch:
    return list(given.batches())[-1]


def test_without_new_rows_the_position_moves_on(table: FeatureTable) -> None:
    table.features("a")
    given = samples(table, since=BEGIN)
    assert list(given) == []
    assert given.position.completed == table.table.timeline.completed()[-1].completion_time
    assert samples(table, since=given.position).position == given.position


def test_an_empty_table_has_no_samples(table: FeatureTable) -> None:
    given = samples(table)
    assert list(given) == []
    table.both(["a"], ["a"])
    assert keys(samples(table, since=given.position)) == ["a"]


def test_until_leaves_later_commits_out(table: FeatureTable) -> None:
    first = table.both(["a"], ["a"])
    table.both(["b"], ["b"])
    given = samples(table, until=first)
    assert keys(given) == ["a"]
    assert keys(samples(table, since=given.position)) == ["b"]


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(scaled(4)))
def test_any_cut_and_any_shard_gives_the_same_rows(tmp_path: Path, seed: int) -> None:
    """Histories of commits and compactions against a model; the iteration is cut after every batch."""
    random = Random(seed)
    table = FeatureTable(tmp_path / "t", buckets=3, partial=bool(seed % 2))
    expected: list[list[str]] = []
    for _ in range(14):
        before = _complete(table)
        _act(table, random)
        expected.append(sorted(_complete(table) - before))
    wanted = [key for step in expected for key in step]
    for size, shuffle in ((1, 0), (3, 0), (100, 0), (2, 7)):
        found = _in_pieces(table, size, shuffle, seed)
        assert sorted(found) == sorted(wanted)
        if not shuffle:
            place = 0
            for step in expected:
                assert sorted(found[place : place + len(step)]) == step
                place += len(step)
    parts = [samples(table, since=SamplePosition(shard=s.shard), shard=(s.shard.index, 3)) for s in _shards(3)]
    assert sorted(key for part in parts for key in keys(part)) == sorted(wanted)
    assert sorted(keys(samples(table))) == sorted(_complete(table))
    assert set(keys(samples(table, since=BEGIN, step_commits=5))) >= _complete(table)


def _shards(count: int) -> list[SamplePosition]:
    return [SamplePosition(shard=Shard(index, count)) for index in range(count)]


def _complete(table: FeatureTable) -> set[str]:
    orders = [f"{ORDER}_features", f"{ORDER}_labels"]
    return {key for key, row in table.rows.items() if all(row[o] is not None and row[o] >= 0 for o in orders)}


def _act(table: FeatureTable, random: Random) -> None:
    some = random.sample("abcdefghij", random.randint(1, 4))
    action = random.choice(["features", "features", "labels", "labels", "both", "delete", "unlabel", "compact"])
    if action == "both":
        table.both(some, some[:2])
    elif action == "compact":
        table.features(*some)
        table.compact()
    elif action == "unlabel":
        table.unlabel(*(known if (known := [k for k in some if k in table.rows]) else ["a"]))
    else:
        {"features": table.features, "labels": table.labels, "delete": table.delete}[action](*some)


def _in_pieces(table: FeatureTable, size: int, shuffle: int, seed: int) -> list[str]:
    """All samples, from a new iteration after each batch."""
    position = BEGIN
    found: list[str] = []
    while True:
        given = samples(table, since=position, batch_rows=size, shuffle_rows=shuffle, seed=seed)
        batch = next(iter(given.batches()), None)
        if batch is None:
            return found
        found += keys([batch.rows])
        position = SamplePosition.from_json(batch.position.to_json())


def test_a_cut_shuffle_goes_on_in_the_same_order(table: FeatureTable) -> None:
    table.both("abcdefghijklmnop", "abcdefghijklmnop")
    whole = keys(samples(table, since=BEGIN, batch_rows=3, shuffle_rows=10, seed=4))
    assert sorted(whole) == list("abcdefghijklmnop")
    assert whole != keys(samples(table, since=BEGIN))
    assert _in_pieces(table, 3, 10, 4) == whole
    assert set(whole[:10]) == set(keys(samples(table, since=BEGIN))[:10])


@pytest.mark.first(4)
@pytest.mark.parametrize("seed", range(scaled(6)))
def test_every_position_goes_on_exactly_though_the_table_has_grown(tmp_path: Path, seed: int) -> None:
    """All positions of an iteration under random arguments: each is gone on from as it was, and after more commits."""
    random = Random(seed)
    table = FeatureTable(tmp_path / "t", buckets=random.choice([1, 3]), partial=bool(seed % 2))
    _grow(table, random, random.randint(2, 7))
    arguments: dict[str, Any] = {
        "batch_rows": random.randint(1, 5),
        "shuffle_rows": random.choice([0, 3, 8, 50]),
        "step_commits": random.choice([1, 2, 3, 100]),
        "seed": seed,
    }
    begin = random.choice([BEGIN, None])
    flow = samples(table, since=begin, **arguments)
    first = flow.position
    given = [(keys([batch.rows]), batch.position) for batch in flow.batches()]
    whole = [key for some, _ in given for key in some]
    ends = [*([(0, first)] if begin is not None else []), *_marked(given)]
    for number, position in ends:
        assert _onwards(table, position, arguments) == whole[number:]
    grown = sorted(whole + _grow(table, random, random.randint(1, 4)))
    for number, position in ends:
        more = _onwards(table, position, arguments)
        left = 0 if position.shuffled is None else position.shuffled.rows - position.shuffled.given
        assert more[:left] == whole[number : number + left]
        assert sorted(whole[:number] + more) == grown


def _grow(table: FeatureTable, random: Random, commits: int) -> list[str]:
    """Commits of new complete rows; returns their keys."""
    keys: list[str] = []
    for _ in range(commits):
        new = [f"{len(table.rows) + number:03}" for number in range(random.randint(1, 5))]
        table.both(new, new)
        keys += new
    return keys


def _marked(given: list[tuple[list[str], SamplePosition]]) -> list[tuple[int, SamplePosition]]:
    """How many rows are given at each position."""
    counts = accumulate(len(some) for some, _ in given)
    return [
        (count, SamplePosition.from_json(position.to_json()))
        for count, (_, position) in zip(counts, given, strict=True)
    ]


def _onwards(table: FeatureTable, position: SamplePosition, arguments: dict[str, Any]) -> list[str]:
    return keys(samples(table, since=position, **arguments))


def test_a_position_in_a_buffer_goes_on_with_its_own_order_and_steps(table: FeatureTable) -> None:
    for number in range(5):
        table.both([f"a{number}", f"b{number}"], [f"a{number}", f"b{number}"])
    flow = samples(table, since=BEGIN, batch_rows=2, shuffle_rows=6, step_commits=2, seed=1)
    given = list(flow.batches())
    whole = keys([batch.rows for batch in given])
    other = samples(table, since=given[0].position, batch_rows=5, shuffle_rows=6, step_commits=5, seed=2)
    assert keys(other)[:4] == whole[2:6]
    with pytest.raises(ConfigError, match="shuffle_rows is 0"):
        samples(table, since=given[0].position, step_commits=2)
    with pytest.raises(ConfigError, match="other columns, complete or changes"):
        samples(table, since=given[0].position, shuffle_rows=6, step_commits=2, changes=True)
    old = '{"completed": "", "shuffled": {"rows": 6, "given": 2}, "shard": {"index": 0, "count": 1}}'
    with pytest.raises(ConfigError, match="did not keep the steps"):
        samples(table, since=SamplePosition.from_json(old), shuffle_rows=6, step_commits=2)
    one = list(samples(table, since=BEGIN, batch_rows=2, shuffle_rows=6, seed=1).batches())
    rest = samples(table, since=SamplePosition.from_json(old), batch_rows=2, shuffle_rows=6, seed=1)
    assert keys(rest) == keys([batch.rows for batch in one[1:]])


def test_following_gives_new_rows_within_seconds(table: FeatureTable) -> None:
    table.both(["a"], ["a"])
    given = samples(table, follow=True, poll_s=0.05)
    flow = given.batches()
    assert keys([next(flow).rows]) == ["a"]
    arrived: list[float] = []

    def later() -> None:
        table.both(["b"], ["b"])
        arrived.append(monotonic_s())

    writer = threading.Timer(0.2, later)
    writer.start()
    assert keys([next(flow).rows]) == ["b"]
    writer.join()
    assert monotonic_s() - arrived[0] < 5
    given.stop.set()
    assert next(flow, None) is None


@pytest.mark.parametrize("archived", [False, True])
def test_a_position_that_the_table_has_left_behind_is_refused(table: FeatureTable, archived: bool) -> None:
    first = table.both(["a"], ["a"])
    for number in range(6):
        table.both([f"b{number}"], [f"b{number}"])
        table.compact()
    assert clean(table.table, CLEANING) is not None
    if archived:
        assert archive(table.table, ArchivalConfig(min_commits=4, max_commits=6), CLEANING)
        with pytest.raises(PositionExpiredError, match="archived"):
            list(samples(table, since=SamplePosition(step=first)))
    last = SamplePosition(table.table.timeline.completed()[-1].completion_time or "")
    assert list(samples(table, since=last)) == []
    with pytest.raises(PositionExpiredError, match="begin anew without a position"):
        list(samples(table, since=SamplePosition(first)))
    with pytest.raises(PositionExpiredError):
        list(samples(table, since=BEGIN))
    assert len(keys(samples(table))) == 7


def test_commits_that_came_and_were_archived_between_two_looks_are_missed_aloud(tmp_path: Path) -> None:
    table = FeatureTable(tmp_path / "t")
    table.both(["a"], ["a"])
    flow = samples(table, follow=True, poll_s=0.01).batches()
    assert keys([next(flow).rows]) == ["a"]
    for number in range(8):
        table.both([f"b{number}"], [f"b{number}"])
        table.compact()
    assert clean(table.table, CLEANING) is not None
    assert archive(table.table, ArchivalConfig(min_commits=4, max_commits=6), CLEANING)
    with pytest.raises(PositionExpiredError, match="archived"):
        next(flow)


def test_what_cannot_be_given_is_refused(table: FeatureTable) -> None:
    table.both(["a"], ["a"])
    with pytest.raises(UnsupportedError, match="no columns"):
        samples(table, columns=["nothing"])
    with pytest.raises(UnsupportedError, match="no column groups"):
        samples(table, complete=["nothing"])
    with pytest.raises(ConfigError, match="shard 0 of 1"):
        samples(table, since=BEGIN, shard=(1, 2))
    with pytest.raises(ConfigError, match="no shard"):
        samples(table, shard=(2, 2))
    with pytest.raises(ConfigError, match="no position"):
        SamplePosition.from_json('{"completed": 3')
    with pytest.raises(ConfigError, match="exclude each other"):
        samples(table, follow=True, until="2030-01-01")
