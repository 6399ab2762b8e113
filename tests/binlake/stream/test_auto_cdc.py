"""Spark's AUTO CDC beside history tables: the same events give the same versions. Its pipelines need Spark 4.3."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from binlake.stream.spark.lines import spark_line
from tests.binlake.stream.auto_cdc import jar_of_tables
from tests.binlake.stream.test_history import FILE, HISTORY, Feed, versions
from tests.judges import hudi_rs

pytestmark = [pytest.mark.spark, pytest.mark.lines]
Rows = dict[str, list[tuple[Any, ...]]]


def ours(feed: Feed) -> Rows:
    path = feed.stream.path / "shop"
    newest = hudi_rs.snapshot(path / "facts").to_pylist()
    rows: Rows = {"newest": sorted((row["id"], row["owner"], row["region"]) for row in newest)}
    for table in ("versions", "tracked"):
        found = versions(path / table, "region")
        rows[table] = [
            (key, owner, region, start - FILE, end and end - FILE) for key, owner, start, end, _, region in found
        ]
    return rows


def theirs(place: Path) -> Rows:
    program = [sys.executable, "-m", "tests.binlake.stream.auto_cdc", str(place), str(jar_of_tables())]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=900, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    rows = json.loads((place / "rows.json").read_text())
    names = ("id", "owner", "region", "__START_AT", "__END_AT")
    found = {name: [tuple(row[one] for one in names if one in row) for row in rows[name]] for name in rows}
    return {name: sorted(found[name], key=lambda row: (row[0], *row[3:4])) for name in found}


def deliver(feed: Feed, place: Path, order: list[int], at_once: int = 18) -> None:
    """The same batches for both."""
    (place / "batches").mkdir(parents=True)
    for begin in range(0, len(order), at_once):
        numbers = order[begin : begin + at_once]
        feed.deliver(*numbers)
        feed.stream.batch()
        lines = []
        for envelope, key in (feed.records[number] for number in numbers):
            assert key is not None
            at = envelope["source"]["pos"]
            row = feed.model.events[at][key["id"]]
            values = {name: row and row[name] for name in ("owner", "region")}
            lines.append(json.dumps({"id": key["id"], "place": at, "op": "u" if row else "d", **values}))
        (place / "batches" / f"{begin:06}.json").write_text("\n".join(lines))


def feed_of(path: Path, dice: random.Random) -> Feed:
    """Inserts, updates, some of which change nothing, deletes and inserts again of six rows."""
    feed = Feed.at(path)
    feed.stream.document["tables"]["history"] = [
        {**HISTORY[0], "to": "shop.versions", "track_except": []},
        {**HISTORY[0], "to": "shop.tracked", "track": ["owner"]},
    ]
    feed.put("c", 1, "a", "eu")
    for _ in range(35):
        key = dice.randint(1, 6)
        if key in feed.rows and dice.random() < 0.3:
            feed.put("d", key)
        else:
            feed.put("u" if key in feed.rows else "c", key, dice.choice("ab"), dice.choice(["eu", "us", None]))
    return feed


if spark_line() == "4.3":

    @pytest.mark.parametrize("delivery", ["in order", "late and again"])
    def test_the_same_events_give_the_same_versions(tmp_path: Path, delivery: str) -> None:
        dice = random.Random(1)
        feed = feed_of(tmp_path / "lake", dice)
        order = list(range(len(feed.records)))
        if delivery != "in order":
            order.sort(key=lambda number: number + dice.choice([0, 0, 4, 40]) * dice.random())
            order += dice.sample(order, 12)
        deliver(feed, tmp_path / "cdc", order)
        expected = ours(feed)
        assert len(expected["versions"]) > len(expected["tracked"]) > len(expected["newest"]) > 1
        assert theirs(tmp_path / "cdc") == expected
