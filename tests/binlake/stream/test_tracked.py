"""History tables whose versions changes of some columns make, against the model in plain Python, judged by hudi-rs,
with deaths at storage calls. Events come late, several times and out of order."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.proof.history.keys import row_key, version_keys
from hudilake.errors import ConfigError
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.binlake.stream.test_bitemporal import known, last_commit
from tests.binlake.stream.test_history import FILE, FORGETFUL, HISTORY, Feed, drawn, versions
from tests.hypothesis_profile import is_nightly
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same, read_ourselves

TRACKED = [
    {**HISTORY[0], "track": ["Owner"]},
    {"table": "shop.facts", "to": "shop.facts_known", "kind": "bitemporal", "track_except": ["region", "balance"]},
]


def feed_at(path: Path, *histories: dict[str, Any], **rules: Any) -> Feed:  # noqa: ANN401 - any setting
    feed = Feed.at(path, **rules)
    feed.stream.document["tables"]["history"] = list(histories or TRACKED)
    return feed


def stored(path: Path, table: str = "facts_history") -> list[tuple[Any, ...]]:
    return versions(path / "shop" / table, "region")


def said(feed: Feed, *tracked: str) -> list[tuple[Any, ...]]:
    return feed.model.versions("region", tracked=tracked or ("owner",))


def deliver(feed: Feed, *numbers: int) -> None:
    feed.deliver(*numbers)
    feed.stream.batch()


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(1000 if is_nightly() else 30))
def test_any_delivery_gives_the_versions_of_the_log(tmp_path: Path, seed: int) -> None:
    """And what a commit knew is the table of versions of its batch."""
    feed = feed_at(tmp_path, compaction={"mode": "inline", "after_commits": 3})
    then = {}
    for _ in drawn(feed, seed, "facts_history", "facts_known", regions=True):
        then[last_commit(tmp_path)] = versions(tmp_path / "shop/facts_history")
    assert stored(tmp_path) == said(feed)
    rows = hudi_rs.snapshot(tmp_path / "shop/facts_known").to_pylist()
    for moment, had in then.items():
        assert known(rows, moment) == had, moment
    now = sorted((r["id"], r["start_at"], r["end_at"], r["region"]) for r in rows if r["known_to"] is None)
    assert now == [(key, start, end, region) for key, _, start, end, _, region in said(feed)]
    for table in ("facts_history", "facts_known"):
        path = tmp_path / "shop" / table
        assert_same("ours", read_ourselves(path), hudi_rs.snapshot(path))


def test_a_change_of_other_columns_mends_the_version(tmp_path: Path) -> None:
    feed = feed_at(tmp_path)
    for op, owner, region in (("c", "a", "eu"), ("u", "a", "us"), ("u", "b", "us"), ("u", "b", None)):
        feed.put(op, 1, owner, region)
        deliver(feed, len(feed.records) - 1)
    first, third = FILE + 110, FILE + 130
    assert stored(tmp_path) == [(1, "a", first, third, False, "us"), (1, "b", third, None, True, None)]


def test_a_late_event_cuts_a_version(tmp_path: Path) -> None:
    """Each half has the values of its own last event; a delete and a TRUNCATE cut it too."""
    feed = feed_at(tmp_path, compaction={**FORGETFUL, "after_commits": 1})
    for owner, region in (("a", "1"), ("a", "2"), ("b", "3"), ("a", "4"), ("a", "5")):
        feed.put("u", 1, owner, region)
    feed.put("d", 1)
    for region in ("6", "7"):
        feed.put("u", 1, "a", region)
    feed.truncate()
    for region in ("8", "9"):
        feed.put("u", 1, "a", region)
    deliver(feed, 0, 1, 3, 4, 6, 7, 9, 10)
    assert stored(tmp_path) == [(1, "a", FILE + 110, None, True, "9")]
    for number in (8, 2, 5):
        deliver(feed, number)
    assert stored(tmp_path) == said(feed)
    assert [row[-1] for row in stored(tmp_path)] == ["2", "3", "5", "7", "9"]
    deliver(feed, *range(11))
    assert stored(tmp_path) == said(feed)


def test_a_late_event_joins_versions(tmp_path: Path) -> None:
    """The version that was stored begins at the late event, and a transaction's last event may join two."""
    feed = feed_at(tmp_path)
    for owner, region in (("a", "1"), ("a", "2"), ("b", "3")):
        feed.put("u", 1, owner, region)
    feed.put("u", 1, "a", "4", same_place=True)
    feed.put("u", 1, "a", "5")
    for number in (1, 2, 4, 0, 3):
        deliver(feed, number)
    assert stored(tmp_path) == said(feed) == [(1, "a", FILE + 110, None, True, "5")]
    rows = hudi_rs.snapshot(tmp_path / "shop/facts_known").to_pylist()
    assert known(rows) == feed.model.versions(tracked=["owner"])


def test_a_delete_in_the_place_of_an_event_within_a_version(tmp_path: Path) -> None:
    """They are of one transaction: the delete counts, also after the event has come again."""
    feed = feed_at(tmp_path, compaction={**FORGETFUL, "after_commits": 1})
    for region in ("1", "2"):
        feed.put("u", 1, "a", region)
    feed.put("d", 1, same_place=True)
    feed.put("u", 1, "a", "3")
    for numbers in ((0, 1, 3), (2,), (0, 3)):
        deliver(feed, *numbers)
    assert stored(tmp_path) == said(feed)
    assert [row[-1] for row in stored(tmp_path)] == ["1", "3"]


def test_a_batch_ends_within_a_transaction_whose_last_event_begins_a_version(tmp_path: Path) -> None:
    """The first of its events was within the version before: what was kept of it counts no longer."""
    feed = feed_at(tmp_path)
    feed.put("u", 1, "a", "1")
    feed.put("u", 1, "a", "2")
    feed.put("u", 1, "b", "2", same_place=True)
    feed.put("u", 1, "b", "3")
    for number in range(4):
        deliver(feed, number)
    assert stored(tmp_path) == said(feed)
    first, second = FILE + 110, FILE + 120
    assert stored(tmp_path) == [(1, "a", first, second, False, "1"), (1, "b", second, None, True, "3")]
    rows = hudi_rs.snapshot(tmp_path / "shop/facts_known").to_pylist()
    assert known(rows) == feed.model.versions(tracked=["owner"])


def test_all_columns_are_tracked(tmp_path: Path) -> None:
    """As AUTO CDC does where nothing is said: what changes nothing makes no version."""
    feed = feed_at(tmp_path, {**HISTORY[0], "track_except": []})
    for owner, region in (("a", "1"), ("a", "1"), ("a", None), ("a", None), ("a", "1")):
        feed.put("u", 1, owner, region)
    deliver(feed, 4, 1, 3)
    deliver(feed, 2, 0)
    assert stored(tmp_path) == said(feed, "owner", "region")
    assert [row[2] - FILE for row in stored(tmp_path)] == [110, 130, 150]


def test_an_erasure_finds_the_events_within_versions(tmp_path: Path) -> None:
    feed = feed_at(tmp_path)
    for key, region in ((1, "1"), (1, "2"), (1, "3"), (2, "4")):
        feed.put("u", key, "a", region)
    deliver(feed, 0, 1, 2, 3)
    table = HudiTable.open(open_storage(str(tmp_path / "shop/facts_history")))
    assert version_keys(row_key("1", table), table) == {f"id:1,start_at:{FILE + at}" for at in (110, 120, 130)}
    conf = tmp_path / "conf.yaml"
    conf.write_text(json.dumps(feed.stream.document))
    done = CliRunner().invoke(app, ["erase", str(conf), "shop.facts_history", "1", "--yes"])
    assert done.exit_code == 0, (done.output, done.exception)
    assert "nothing is left" in done.output
    assert version_keys(row_key("1", table), table) == frozenset()
    assert [row[0] for row in stored(tmp_path)] == [2]


@pytest.mark.parametrize(
    ("history", "why"),
    [
        ({"track": ["owner"], "track_except": ["region"]}, "track and track_except exclude each other"),
        ({"track": ["owner"], "kind": "changes"}, "changes makes no versions"),
        ({"track": []}, "track: must not be empty"),
    ],
)
def test_what_cannot_be_tracked(tmp_path: Path, history: dict[str, Any], why: str) -> None:
    feed = feed_at(tmp_path, HISTORY[0] | history)
    with pytest.raises(ConfigError, match=re.escape(why)):
        _ = feed.stream.settings


@pytest.mark.parametrize("setting", ["track", "track_except"])
def test_a_column_that_the_source_does_not_have_is_refused(tmp_path: Path, setting: str) -> None:
    """The rows go on into their own table, and into the history once the settings are right."""
    source = DdlSource()
    history = {"table": "shop.t", "to": "shop.th", setting: ["onwer"]}
    follower = Follower(source, tmp_path, more={"tables": {"defaults": {"buckets": 2}, "history": [history]}})
    source.create("t", {"id": "int", "owner": "varchar(9)"})
    source.put("t", 1, owner="a")
    event = follower.run(fails=True)
    assert f"{setting} names onwer, which the source table does not have" in str([one.error for one in event.tables])
    assert [row["owner"] for row in follower.all_rows("t")] == ["a"]
    assert not (tmp_path / "shop/th/.hoodie").exists()
    history[setting] = ["owner"]
    follower.restart()
    source.put("t", 1, owner="b")
    follower.run()
    follower.catch_up()
    assert follower.quarantined() == []
    owners = sorted((row["start_at"], row["owner"]) for row in follower.all_rows("th"))
    assert [owner for _, owner in owners] == (["a", "b"] if setting == "track" else ["b"])


def test_a_history_keeps_what_it_tracks(tmp_path: Path) -> None:
    feed = feed_at(tmp_path)
    feed.put("u", 1, "a", "1")
    deliver(feed, 0)
    feed.stream.document["tables"]["history"] = [{**HISTORY[0], "track": ["region"]}]
    feed.put("u", 1, "b", "1")
    feed.deliver(1)
    with pytest.raises((AssertionError, ConfigError), match="it tracks owner, not region"):
        feed.stream.batch()
    assert [row[:2] for row in stored(tmp_path)] == [(1, "a")]


def test_statements_about_tracked_columns(tmp_path: Path) -> None:
    """A tracked column that is dropped or renamed is null in new rows, and the verdict says what follows."""
    source = DdlSource()
    history = [{"table": "shop.t", "to": "shop.th", "track": ["n", "m"]}]
    history.append({"table": "shop.t", "to": "shop.te", "track_except": ["s"]})
    follower = Follower(source, tmp_path, more={"tables": {"defaults": {"buckets": 2}, "history": history}})
    source.create("t", {"id": "int", "n": "int", "m": "int", "s": "varchar(20)"})
    source.put("t", 1, n=1, m=1, s="a")
    source.put("t", 1, s="b")
    follower.run()
    source.add("t", "d", "int", 7, "DEFAULT 7")
    source.put("t", 1, s="c")
    source.modify("t", "n", "bigint")
    source.put("t", 1, s="d")
    follower.run()
    source.drop("t", "n")
    source.put("t", 1, s="e")
    source.put("t", 1, s="f")
    source.rename("t", "m", "k")
    source.put("t", 1, s="g")
    follower.run()
    source.put("t", 1, s="h")
    follower.run()
    rows = {name: sorted(follower.all_rows(name), key=lambda row: row["start_at"]) for name in ("th", "te")}
    assert [(row["n"], row["m"], row["s"]) for row in rows["th"]] == [(1, 1, "d"), (None, 1, "f"), (None, None, "h")]
    assert [(row["n"], row["m"], row["d"], row["s"]) for row in rows["te"]] == [
        (1, 1, None, "b"),
        (1, 1, 7, "d"),
        (None, 1, 7, "f"),
        (None, None, 7, "h"),
    ]
    said = [t.warning for event in follower.told for t in event.tables if t.warning is not None]
    assert [text.split(", and the rows")[0] for text in said] == ["the history tracks n", "the history tracks m"]


def test_the_verdict_of_a_statement_about_a_tracked_column(tmp_path: Path) -> None:
    """In a table that is the history itself."""
    source = DdlSource()
    overrides = [{"match": "shop.t", "merge": {"engine": "scd2", "track": ["n", "m"]}}]
    follower = Follower(source, tmp_path, more={"tables": {"defaults": {"buckets": 2}, "overrides": overrides}})
    source.create("t", {"id": "int", "n": "int", "m": "int", "s": "varchar(20)"})
    source.put("t", 1, n=1, m=1, s="a")
    follower.run()
    for name in ("n", "s"):
        source.drop("t", name)
    source.rename("t", "m", "k")
    source.put("t", 1, k=2)
    follower.run()
    assert ["The history tracks it" in text for text in follower.verdicts()] == [True, False, True]
