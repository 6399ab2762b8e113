"""Joins and aggregates bucket by bucket in Spark tasks: the rows, and that nothing is shuffled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from binlake.stream.spark.bucket_aggregate import Aggregate, bucket_aggregate
from binlake.stream.spark.bucket_join import TableScan, bucket_join
from binlake.stream.spark.dataframe import read_dataframe
from tests.hudilake.query.join.lakes import asked, everything
from tests.hudilake.query.join.test_bucket_join import BY_ID, HOWS, expected, fill

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("joined")
    fill(place / "l", 1, buckets=4)
    fill(place / "r", 2, buckets=2, partition=("part",))
    return place


def shuffled(spark: SparkSession) -> int:
    """Bytes that all tasks of the session have written for or read from a shuffle."""
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(
        one.totalShuffleRead() + one.totalShuffleWrite()
        for one in (executors.apply(i) for i in range(executors.size()))
    )


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.mark.lines
def test_joins_shuffle_nothing(spark: SparkSession, lake: Path) -> None:
    left, right = TableScan(str(lake / "l")), TableScan(str(lake / "r"))
    tables = everything(lake / "l"), everything(lake / "r")
    before = shuffled(spark)
    for how in HOWS:
        frame = bucket_join(spark, left, right, ["id"], how, suffixes=("", "_r"))
        assert "Exchange" not in frame._jdf.queryExecution().executedPlan().toString()
        assert rows(frame) == expected(*tables, BY_ID, how), how
    assert shuffled(spark) == before
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    frames = [read_dataframe(spark, str(lake / name), columns=["id"]) for name in "lr"]
    assert frames[0].join(frames[1], "id").count() > 0
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert shuffled(spark) > before  # Spark's own join of the same tables


def test_aggregates(spark: SparkSession, lake: Path) -> None:
    table, stored = TableScan(str(lake / "l")), everything(lake / "l")
    aggregates = [
        Aggregate("count"),
        Aggregate("count", "note", "notes"),
        Aggregate("sum", "id"),
        Aggregate("mean", "id"),
        Aggregate("min", "note"),
        Aggregate("max", "note"),
    ]
    values = "count(*), count(note), sum(id), avg(id), min(note), max(note)"
    before = shuffled(spark)
    whole = bucket_aggregate(spark, table, ["part", "id"], [*aggregates, Aggregate("count_distinct", "note")])
    assert whole.columns[:4] == ["part", "id", "count", "notes"]
    assert rows(whole) == asked(f"SELECT part, id, {values}, count(DISTINCT note) FROM l GROUP BY ALL", stored, stored)
    assert shuffled(spark) == before
    for by in (["part"], []):
        names = ", ".join([*by, values])
        assert rows(bucket_aggregate(spark, table, by, aggregates)) == asked(
            f"SELECT {names} FROM l GROUP BY ALL", stored, stored
        )
    none = TableScan(str(lake / "l"), condition="id < 0")
    assert rows(bucket_aggregate(spark, none, [], [Aggregate("count"), Aggregate("mean", "id")])) == [(0, None)]
