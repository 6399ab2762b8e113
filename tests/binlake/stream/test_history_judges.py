"""Hudi's own Spark bundle and hudi-rs read history tables: now, as they were, and what commits brought."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream import test_bitemporal
from tests.binlake.stream.test_change_rows import feed_at, said
from tests.binlake.stream.test_engines_spark import compact as compact_by_spark
from tests.binlake.stream.test_history import FILE, Feed, log_randomly, sequences
from tests.binlake.stream.test_tracked import TRACKED
from tests.judges import hudi_rs
from tests.judges.agreement import assert_judges_agree, assert_same, read_ourselves
from tests.judges.hudi_spark import HudiSpark

pytestmark = [pytest.mark.spark, pytest.mark.judge]
COLUMNS = ("id", "owner", "start_at", "end_at", "is_current")


@pytest.mark.full
@pytest.mark.parametrize("type_", ["merge_on_read", "copy_on_write"])
@pytest.mark.parametrize("compact", [False, True])
def test_judges_read_the_versions(hudi_spark: HudiSpark, tmp_path: Path, type_: str, compact: bool) -> None:
    """Late events, deletes, TRUNCATE; log files alone, and base files with log files on them."""
    rng = random.Random(7)
    upkeep = {"mode": "inline", "after_commits": 3} if compact else {"mode": "off"}
    feed = Feed.at(tmp_path, compaction=upkeep, type=type_)
    feed.put("c", 1)
    log_randomly(feed, rng, 40)
    for numbers in sequences(feed, rng):
        feed.deliver(*numbers)
        feed.stream.batch()
    path = tmp_path / "shop/facts_history"
    expected = [dict(zip(COLUMNS, version, strict=True)) for version in feed.model.versions()]
    assert_judges_agree(path, expected, spark=hudi_spark, columns=COLUMNS)
    by_sql = hudi_spark.frame(str(path)).where(f"start_at <= {FILE + 200} and (is_current or end_at > {FILE + 200})")
    now = [row for row in expected if row["start_at"] <= FILE + 200 and (row["end_at"] or 1 << 62) > FILE + 200]
    assert by_sql.count() == len(now) > 0
    instants = [instant.requested_time for instant in HudiTable.open(open_storage(str(path))).timeline.completed()]
    middle = instants[len(instants) // 2]
    then = read_ourselves(path, middle)
    assert len(then) not in (0, len(expected))
    assert_same("Hudi Spark, time travel", hudi_spark.as_of(str(path), middle), then, COLUMNS)
    assert_same("hudi-rs, time travel", hudi_rs.as_of(str(path), middle), then, COLUMNS)


def test_judges_read_what_was_known(hudi_spark: HudiSpark, tmp_path: Path) -> None:
    rng = random.Random(9)
    feed = test_bitemporal.feed_at(tmp_path, compaction={"mode": "inline", "after_commits": 3})
    feed.put("c", 1)
    log_randomly(feed, rng, 30)
    for numbers in sequences(feed, rng):
        feed.deliver(*numbers)
        feed.stream.batch()
    columns = (*COLUMNS, "known_at", "known_to")
    rows = read_ourselves(tmp_path / "shop/facts_known").select(columns).to_pylist()
    assert len(rows) > len(feed.model.versions())
    assert_judges_agree(tmp_path / "shop/facts_known", rows, spark=hudi_spark, columns=columns)


def test_judges_read_the_changes(hudi_spark: HudiSpark, tmp_path: Path) -> None:
    rng = random.Random(8)
    feed = feed_at(tmp_path, compaction={"mode": "inline", "after_commits": 3})
    feed.put("c", 1)
    log_randomly(feed, rng, 30)
    for numbers in sequences(feed, rng):
        feed.deliver(*numbers)
        feed.stream.batch()
    names = ("id", "start_at", "change_type", "owner")
    expected = [dict(zip(names, (k, FILE + p, t, o), strict=True)) for k, p, t, o in said(feed.model)]
    assert_judges_agree(tmp_path / "shop/facts_changes", expected, spark=hudi_spark, columns=names)


@pytest.mark.full
@pytest.mark.parametrize("type_", ["merge_on_read", "copy_on_write"])
@pytest.mark.parametrize("ours", [True, False])
def test_judges_read_versions_of_tracked_columns(
    spark: SparkSession, hudi_spark: HudiSpark, tmp_path: Path, type_: str, ours: bool
) -> None:
    """Versions that late events cut and join, and what was known of them; compacted in between by us, or by Hudi, which
    does not know of the events within versions. Both tables are then read as they are and as they were."""
    rng = random.Random(12)
    upkeep = {"mode": "inline", "after_commits": 3} if ours else {"mode": "off"}
    feed = Feed.at(tmp_path, compaction=upkeep, type=type_)
    feed.stream.document["tables"]["history"] = TRACKED
    feed.put("c", 1)
    log_randomly(feed, rng, 40, regions=True)
    for turn, numbers in enumerate(sequences(feed, rng)):
        feed.deliver(*numbers)
        feed.stream.batch()
        if not ours and type_ == "merge_on_read" and turn % 4 == 3:
            compact_by_spark(spark, tmp_path / "shop/facts_history", "id,start_at")
    model = feed.model.versions("region", tracked=["owner"])
    assert len(model) < len(feed.model.versions())  # some events are within versions
    names = (*COLUMNS, "region")
    expected = [dict(zip(names, version, strict=True)) for version in model]
    assert_judges_agree(tmp_path / "shop/facts_history", expected, spark=hudi_spark, columns=names)
    known = (*names, "known_at", "known_to")
    rows = read_ourselves(tmp_path / "shop/facts_known").select(known).to_pylist()
    assert sorted(row["start_at"] for row in rows if row["known_to"] is None) == sorted(row[2] for row in model)
    assert_judges_agree(tmp_path / "shop/facts_known", rows, spark=hudi_spark, columns=known)
    for table in ("facts_history", "facts_known"):
        path = tmp_path / "shop" / table
        instants = [instant.requested_time for instant in HudiTable.open(open_storage(str(path))).timeline.completed()]
        middle = instants[len(instants) // 2]
        then = read_ourselves(path, middle)
        assert then.num_rows > 0
        assert_same("Hudi Spark, time travel", hudi_spark.as_of(str(path), middle), then, names)
