"""Other bucket counts through the façade: the rows stay, also those that others write meanwhile; hudi-rs agrees."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import hudilake
from hudilake.api import upkeep
from hudilake.format.definition.bucket import bucket_of_file_id
from hudilake.services.planned import one_by_one
from tests.hudilake.api.tables import KEYED, SCHEMA, Model, assert_holds, keyed, row

#: The kinds with a fixed number of buckets.
COUNTED = [kind for kind, given in KEYED.items() if given.get("index") is None]


def buckets_of(table: hudilake.Table) -> set[tuple[str, int]]:
    """The partition path and the bucket of each file group."""
    return {(piece.partition_path, bucket_of_file_id(piece.file_id)) for piece in table.internal.file_slices()}


@pytest.mark.full
@pytest.mark.parametrize("kind", COUNTED)
def test_random_histories_with_other_buckets(kind: str, tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", **KEYED[kind])
    copies = KEYED[kind].get("type") == "copy_on_write"
    names = ("id", "name", "day") if kind == "two keys" else ("id",) if kind == "without partitions" else ("id", "day")
    model, dice = Model(names, forgets=copies), random.Random(kind)
    for count in (3, 1, 4):
        for step in range(3):
            rows = [row(dice.randrange(40), dice.randrange(100), dice.choice("ab")) for _ in range(20)]
            (model.delete if step == 1 else model.upsert)(rows)
            (table.delete if step == 1 else table.upsert)(rows)
        done = table.rebucket(count)
        assert done.instant == table.history()[0].requested
        assert done.rows == len(model.live())
        assert {bucket for _, bucket in buckets_of(table)} <= set(range(count))
        assert_holds(table, model.live())
    assert table.fsck().errors == 0
    assert table.rebucket(4).instant is None  # it has them


def test_partitions_that_match_get_other_buckets(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    rows = [row(n, 1) for n in range(60)]
    table.upsert(rows)
    table.rebucket(5, partition="day=d1" if any("=" in path for path, _ in buckets_of(table)) else "d1")
    counts = {path: len({b for p, b in buckets_of(table) if p == path}) for path, _ in buckets_of(table)}
    assert sorted(counts.values()) == [2, 2, 5]
    assert_holds(table, rows)
    table.upsert([row(n, 2, "b") for n in range(60)])  # each row is found in its bucket
    assert_holds(table, [row(n, 2, "b") for n in range(60)])


def test_what_others_write_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(n, 1) for n in range(30)])
    other = hudilake.open_table(table.uri)
    waiting = [lambda: other.upsert([row(n, 2, "b") for n in range(10)])]

    def work(function: Any, items: Any) -> Any:  # noqa: ANN401 - a map
        done = one_by_one(function, items)
        while waiting:
            waiting.pop()()
        return done

    monkeypatch.setattr(upkeep, "one_by_one", work)
    done = table.rebucket(4)
    assert done.again > 0
    assert_holds(table, [row(n, 2, "b") for n in range(10)] + [row(n, 1) for n in range(10, 30)])


def test_a_failure_takes_the_move_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed(tmp_path / "t")
    rows = [row(n, 1) for n in range(30)]
    table.upsert(rows)

    def fails(function: Any, items: Any) -> Any:  # noqa: ANN401 - a map
        one_by_one(function, items)
        raise hudilake.TransientError("the store is gone", do_next="wait")

    monkeypatch.setattr(upkeep, "one_by_one", fails)
    with pytest.raises(hudilake.TransientError, match="the store is gone"):
        table.rebucket(4)
    assert len(table.history()) == 1
    assert table.internal.timeline.pending() == []
    assert_holds(table, rows)
    assert table.fsck().errors == 0


def test_what_cannot_be_moved_is_refused_in_one_line(tmp_path: Path) -> None:
    rings = keyed(tmp_path / "rings", index="consistent_bucket")
    with pytest.raises(hudilake.UnsupportedError, match="no fixed buckets"):
        rings.rebucket(4)
    appended = hudilake.create_table(str(tmp_path / "appended"), SCHEMA)
    with pytest.raises(hudilake.UnsupportedError, match="no fixed buckets"):
        appended.rebucket(4)
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1)])
    with pytest.raises(hudilake.ConfigError, match="cannot have 0 buckets"):
        table.rebucket(0)
    with pytest.raises(hudilake.ConfigError, match="comma"):
        table.rebucket(4, partition="d1,d2")
    table.internal.storage.write(".hoodie/.binlake/tombstones/00000000-x/1.arrow", b"")
    with pytest.raises(hudilake.UnsupportedError, match="binlake rebucket"):
        table.rebucket(4)
    assert len(table.history()) == 1
