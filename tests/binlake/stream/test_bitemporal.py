"""Bitemporal history tables through whole batches: what a commit knew is what a table of versions, fed beside it, had
after the same batch. Events come late, several times and out of order, with deaths at storage calls."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from binlake.proof.history.keys import row_key, version_keys
from hudilake.clock import parse_instant
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.binlake.stream.test_history import FILE, HISTORY, Feed, Version, drawn, versions
from tests.hypothesis_profile import is_nightly
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same, read_ourselves

KNOWN = {"table": "shop.facts", "to": "shop.facts_known", "kind": "bitemporal"}


def feed_at(path: Path, **rules: Any) -> Feed:  # noqa: ANN401 - any setting
    feed = Feed.at(path, **rules)
    feed.stream.document["tables"]["history"] = [*HISTORY, KNOWN]
    return feed


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of the table, through hudi-rs; each one says one thing of when it is known."""
    rows: list[dict[str, Any]] = hudi_rs.snapshot(path / "shop/facts_known").to_pylist()
    for row in rows:
        assert row["known_from"] == datetime.fromtimestamp(parse_instant(str(row["known_at"])) / 1000, UTC)
        assert row["known_to"] is None or row["known_to"] > row["known_from"]
    return rows


def known(rows: list[dict[str, Any]], at: datetime | None = None) -> list[Version]:
    """The versions that the lake knew at a time, or knows now."""
    there = [row for row in rows if _is_known(row, at)]
    return sorted(
        ((row["id"], row["owner"], row["start_at"], row["end_at"], row["is_current"]) for row in there),
        key=lambda version: (version[0], version[2]),
    )


def _is_known(row: dict[str, Any], at: datetime | None) -> bool:
    if at is None:
        return row["known_to"] is None
    return row["known_from"] <= at and (row["known_to"] is None or at < row["known_to"])


def last_commit(path: Path) -> datetime:
    table = HudiTable.open(open_storage(str(path / "shop/facts_known")))
    writes = [one.requested_time for one in table.timeline.completed() if one.action == "deltacommit"]
    return datetime.fromtimestamp(parse_instant(writes[-1]) / 1000, UTC)


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(1000 if is_nightly() else 8))
def test_what_a_commit_knew_is_the_table_of_versions_of_its_batch(tmp_path: Path, seed: int) -> None:
    """Also after compactions, and of the newest one what the log of the source says."""
    feed = feed_at(tmp_path, compaction={"mode": "inline", "after_commits": 3})
    then: dict[datetime, list[Version]] = {}
    for _ in drawn(feed, seed, "facts_history", "facts_known"):
        then[last_commit(tmp_path)] = versions(tmp_path / "shop/facts_history")
    rows = rows_of(tmp_path)
    assert known(rows) == feed.model.versions()
    for moment, had in then.items():
        assert known(rows, moment) == had, moment
    path = tmp_path / "shop/facts_known"
    assert_same("ours", read_ourselves(path), hudi_rs.snapshot(path))


def test_an_event_that_comes_again_tells_nothing_new(tmp_path: Path) -> None:
    feed = feed_at(tmp_path)
    for op, owner in (("c", "a"), ("u", "b"), ("d", "b")):
        feed.put(op, 1, owner)
    feed.deliver(0, 1)
    feed.stream.batch()
    before = rows_of(tmp_path)
    assert len(before) == 2
    feed.deliver(1, 0)
    feed.stream.batch()
    assert sorted(map(str, rows_of(tmp_path))) == sorted(map(str, before))
    feed.deliver(2)
    feed.stream.batch()
    rows = rows_of(tmp_path)
    assert known(rows) == feed.model.versions()
    assert [row["end_at"] for row in rows if row["known_to"] is not None] == [None]  # what was thought to be current


def test_a_late_event_leaves_what_was_known_before(tmp_path: Path) -> None:
    """An update comes before the insert and the one between them."""
    feed = feed_at(tmp_path)
    for owner in ("a", "b", "c"):
        feed.put("u", 1, owner)
    for numbers in ((0, 2), (1,)):
        feed.deliver(*numbers)
        feed.stream.batch()
    first, second, third = (FILE + place for place in (110, 120, 130))
    rows = rows_of(tmp_path)
    told = sorted((row["start_at"], row["end_at"] or 0, row["known_to"] is None) for row in rows)
    assert told == [(first, second, True), (first, third, False), (second, third, True), (third, 0, True)]


def test_a_version_that_is_taken_back_is_closed(tmp_path: Path) -> None:
    """An insert and a delete of one transaction, in batches of their own: there was a version for a while."""
    feed = feed_at(tmp_path)
    feed.put("c", 1)
    feed.put("d", 1, same_place=True)
    for number in (0, 1):
        feed.deliver(number)
        feed.stream.batch()
    [row] = rows_of(tmp_path)
    assert row["known_to"] is not None
    assert known([row]) == feed.model.versions() == []


def test_an_erasure_takes_all_that_was_known_of_a_row(tmp_path: Path) -> None:
    feed = feed_at(tmp_path)
    for op, key in (("c", 1), ("u", 1), ("c", 2)):
        feed.put(op, key)
        feed.deliver(len(feed.records) - 1)
        feed.stream.batch()
    table = HudiTable.open(open_storage(str(tmp_path / "shop/facts_known")))
    keys = version_keys(row_key("1", table), table)
    assert len(keys) == 3
    assert {key.partition(",")[0] for key in keys} == {"id:1"}


def test_statements_of_the_source(tmp_path: Path) -> None:
    """A new column, TRUNCATE and DROP TABLE end versions; what was known stays."""
    source = DdlSource()
    history = [{"table": "shop.t", "to": "shop.th"}, {"table": "shop.t", "to": "shop.tk", "kind": "bitemporal"}]
    follower = Follower(source, tmp_path, more={"tables": {"defaults": {"buckets": 2}, "history": history}})
    source.create("t", {"id": "int", "n": "int"})
    source.put("t", 1, n=1)
    source.put("t", 2, n=2)
    follower.run()
    source.add("t", "d", "int", 7, "DEFAULT 7")
    source.put("t", 1, n=3)
    follower.run()
    source.truncate("t")
    source.put("t", 2, n=4)
    follower.run()
    source.drop_table("t")
    follower.idle()
    rows = follower.all_rows("tk")
    names = ("id", "n", "d", "start_at", "end_at", "valid_from", "valid_to", "is_current")
    now = [[row[name] for name in names] for row in rows if row["known_to"] is None]
    assert sorted(map(str, now)) == sorted(str([row[name] for name in names]) for row in follower.all_rows("th"))
    ended = [(row["id"], row["n"]) for row in rows if row["known_to"] is not None]
    assert sorted(ended) == [(1, 1), (1, 3), (2, 2), (2, 4)]
