"""Tables of changes (``tables.history`` with ``kind: changes``) through whole batches, against a model in plain Python,
judged by hudi-rs, with deaths at storage calls. Events come late, several times and out of order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binlake.proof.history.keys import row_key, version_keys
from binlake.rows.upsert import version_columns
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.binlake.stream.test_history import FILE, START_MS, Feed, Model, drawn
from tests.hypothesis_profile import is_nightly
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same, read_ourselves

#: id, place, what the change did, owner.
Change = tuple[int, int, str, str]
CHANGES = [{"table": "shop.facts", "to": "shop.facts_changes", "kind": "changes"}]


def feed_at(path: Path, **rules: Any) -> Feed:  # noqa: ANN401 - any setting
    feed = Feed.at(path, **rules)
    feed.stream.document["tables"]["history"] = CHANGES
    return feed


def said(model: Model) -> list[Change]:
    """The changes that the log of the source tells, one after the other through all of it."""
    found: list[Change] = []
    alive: dict[int, str] = {}
    for place in sorted({*model.events, *model.truncates}):
        changes: dict[int, Any] = dict.fromkeys(alive) if place in model.truncates else {}
        for key, row in (changes | model.events.get(place, {})).items():
            before, after = alive.pop(key, None), None if row is None else row["owner"]
            if after is not None:
                alive[key] = after
            if before is not None and after is not None:
                found += [(key, place, "update_preimage", before), (key, place, "update_postimage", after)]
            elif before is not None:
                found.append((key, place, "delete", before))
            elif after is not None:
                found.append((key, place, "insert", after))
    return sorted(found)


def stored(path: Path, model: Model | None = None) -> list[Change]:
    """The same of the table, through hudi-rs; each one names the transaction of its place. A TRUNCATE has none."""
    rows = hudi_rs.snapshot(path / "shop/facts_changes").to_pylist()
    for row in rows:
        place = row["start_at"] - FILE
        truncates = model is not None and place in model.truncates
        assert row["source_transaction"] == (None if truncates else f"0-1-{place}")
        assert row["valid_from"].timestamp() * 1000 == START_MS + row["start_at"] - FILE
    return sorted((row["id"], row["start_at"] - FILE, row["change_type"], row["owner"]) for row in rows)


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(1000 if is_nightly() else 8))
def test_any_delivery_gives_the_changes_of_the_log(tmp_path: Path, seed: int) -> None:
    """Late, doubled and disordered events, a new process for each batch, deaths, and compactions."""
    feed = feed_at(tmp_path, compaction={"mode": "inline", "after_commits": 3})
    for _ in drawn(feed, seed, "facts_changes"):
        pass
    assert stored(tmp_path, feed.model) == said(feed.model)
    path = tmp_path / "shop/facts_changes"
    assert_same("ours", read_ourselves(path), hudi_rs.snapshot(path))


def test_a_late_event_mends_the_change_after_it(tmp_path: Path) -> None:
    """What was an insert is an update; and a delete whose row was not known has what the row was."""
    feed = feed_at(tmp_path)
    for op, owner in (("c", "a"), ("u", "b"), ("d", "b")):
        feed.put(op, 1, owner)
    feed.deliver(1)
    feed.stream.batch()
    assert stored(tmp_path) == [(1, 120, "insert", "b")]
    for number in (2, 0):
        feed.deliver(number)
        feed.stream.batch()
    assert stored(tmp_path) == said(feed.model)
    for number in (2, 1, 0):
        feed.deliver(number)
        feed.stream.batch()
    after = [(1, 110, "insert", "a"), (1, 120, "update_postimage", "b"), (1, 120, "update_preimage", "a")]
    assert stored(tmp_path) == said(feed.model) == [*after, (1, 130, "delete", "b")]


def test_a_changed_key_and_a_row_of_a_snapshot(tmp_path: Path) -> None:
    """Both halves of the one are of its transaction. No transaction made the other."""
    feed = feed_at(tmp_path)
    feed.put("c", 1)
    feed.rekey(1, 2)
    feed.put("r", 3)
    feed.deliver(*range(len(feed.records)))
    feed.stream.batch()
    rows = hudi_rs.snapshot(tmp_path / "shop/facts_changes").to_pylist()
    told = sorted((row["id"], row["change_type"], row["source_transaction"]) for row in rows)
    assert told == [
        (1, "delete", "0-1-120"),
        (1, "insert", "0-1-110"),
        (2, "insert", "0-1-120"),
        (3, "insert", None),
    ]


def test_a_table_from_before_changes_named_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets the column with its next commit, and null in the rows that it has."""
    former = {**version_columns._FIELDS, "changes": version_columns._FIELDS["changes"][:-1]}
    feed = feed_at(tmp_path)
    for op in "cud":
        feed.put(op, 1)
    with monkeypatch.context() as patched:
        patched.setattr(version_columns, "_FIELDS", former)
        feed.deliver(0)
        feed.stream.batch()
    assert "source_transaction" not in hudi_rs.snapshot(tmp_path / "shop/facts_changes").column_names
    feed.deliver(1, 2)
    feed.stream.batch()
    rows = hudi_rs.snapshot(tmp_path / "shop/facts_changes").to_pylist()
    named = {(row["start_at"] - FILE, row["change_type"]): row["source_transaction"] for row in rows}
    assert named == {
        (110, "insert"): None,
        (120, "update_preimage"): "0-1-120",
        (120, "update_postimage"): "0-1-120",
        (130, "delete"): "0-1-130",
    }


def test_a_truncate_that_comes_late_takes_back_deletes_of_the_next_one(tmp_path: Path) -> None:
    """The second one finds row 2 alone, which came between the two (seed 35)."""
    feed = feed_at(tmp_path)
    feed.put("c", 1)
    feed.truncate()
    feed.put("c", 2)
    feed.truncate()
    feed.deliver(0, 2, 3)
    feed.stream.batch()
    feed.deliver(1)
    feed.stream.batch()
    assert [(key, kind) for key, _, kind, _ in stored(tmp_path, feed.model) if kind == "delete"] == [
        (1, "delete"),
        (2, "delete"),
    ]
    assert stored(tmp_path, feed.model) == said(feed.model)


def test_an_erasure_takes_all_changes_of_a_row(tmp_path: Path) -> None:
    feed = feed_at(tmp_path)
    for op, key in (("c", 1), ("u", 1), ("c", 2)):
        feed.put(op, key)
    feed.deliver(0, 1, 2)
    feed.stream.batch()
    table = HudiTable.open(open_storage(str(tmp_path / "shop/facts_changes")))
    keys = version_keys(row_key("1", table), table)
    assert {key.rpartition(":")[2] for key in keys} == {"insert", "update_preimage", "update_postimage"}
    assert {key.partition(",")[0] for key in keys} == {"id:1"}


def test_statements_of_the_source(tmp_path: Path) -> None:
    """A new column, a snapshot, TRUNCATE, another name, DROP TABLE."""
    source = DdlSource()
    history = [{"table": "shop.t", "to": "shop.tc", "kind": "changes"}]
    follower = Follower(source, tmp_path, more={"tables": {"defaults": {"buckets": 2}, "history": history}})
    source.create("t", {"id": "int", "n": "int"})
    source.put("t", 1, n=1)
    source.put("t", 2, n=2)
    follower.run()
    source.add("t", "d", "int", 7, "DEFAULT 7")
    source.put("t", 1, n=3)
    source.truncate("t")
    source.put("t", 2, n=4)
    follower.run()
    source.rename_tables(("t", "u"))
    source.put("u", 3, n=5)
    follower.run()
    source.drop_table("u")
    follower.idle()
    rows = follower.all_rows("tc")
    told = sorted((row["id"], row["start_at"] - FILE, row["change_type"], row["n"], row["d"]) for row in rows)
    places = sorted({place for _, place, *_ in told})
    assert [(key, places.index(place), *more) for key, place, *more in told] == [
        (1, 0, "insert", 1, None),
        (1, 2, "update_postimage", 3, 7),
        (1, 2, "update_preimage", 1, None),
        (1, 3, "delete", 3, 7),
        (2, 1, "insert", 2, None),
        (2, 3, "delete", 2, None),
        (2, 4, "insert", 4, None),
        (2, 6, "delete", 4, None),
        (3, 5, "insert", 5, None),
        (3, 6, "delete", 5, None),
    ]
