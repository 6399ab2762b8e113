"""A table as a Spark DataFrame."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
import urllib3
from pyspark.sql import SparkSession

from binlake.stream.spark.dataframe import ROWS_IN_PROCESS_KEY, in_tasks, read_dataframe, to_dataframe
from binlake.stream.spark.frames import METASTORE_KEY
from hudilake.errors import UnsupportedError
from hudilake.read import Incremental, IndexReads, ReadOptimized, Snapshot, TableReader
from hudilake.storage import open_storage
from lakemetastore.api import paths
from tests.hudilake.read.lakes import ALL, everything, random_table
from tests.lakemetastore.http.served import serving
from tests.spark_session import configured

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frame")
    random_table(path, 3, keys=40)
    return path


def keys(rows: list[Any]) -> list[int]:
    return sorted(row["id"] for row in rows)


@pytest.mark.lines
def test_every_row_and_type(spark: SparkSession, lake: Path) -> None:
    frame = read_dataframe(spark, str(lake), columns=ALL)
    assert frame.columns == ALL
    expected = {row["id"]: row for row in everything(lake)}
    found = {row["id"]: row.asDict() for row in frame.collect()}
    assert found.keys() == expected.keys()
    for key, row in found.items():
        for name in ("n", "price", "name", "flag", "day", "part"):
            assert row[name] == expected[key][name], (key, name)
    assert frame.count() == len(expected)  # the same slices once more


def test_one_task_for_each_slice_that_is_left(spark: SparkSession, lake: Path) -> None:
    plan = TableReader.open(str(lake)).plan(condition="id IN (1, 2) AND n >= -4", columns=["id"])
    assert 0 < len(plan.slices) < 12
    frame = to_dataframe(spark, plan)
    assert frame.rdd.getNumPartitions() == len(plan.slices)
    assert keys(frame.collect()) == sorted(
        row["id"] for row in everything(lake) if row["id"] in (1, 2) and row["n"] is not None
    )


def test_conditions_are_exact(spark: SparkSession, lake: Path) -> None:
    expected = sorted(row["id"] for row in everything(lake) if row["double"] == 0.5 and row["part"] != "p1")
    assert keys(read_dataframe(spark, str(lake), condition="double = 0.5 AND part <> 'p1'").collect()) == expected
    by_arrow = (pc.field("double") == 0.5) & (pc.field("part") != "p1")
    assert keys(read_dataframe(spark, str(lake), condition=by_arrow).collect()) == expected
    with pytest.raises(UnsupportedError, match="LOWER"):
        read_dataframe(spark, str(lake), condition="lower(name) = 'a'")


def test_nothing_left(spark: SparkSession, lake: Path) -> None:
    frame = read_dataframe(spark, str(lake), condition="n > 1000", columns=["id", "at"])
    assert (frame.collect(), frame.columns) == ([], ["id", "at"])


def test_other_queries(spark: SparkSession, lake: Path) -> None:
    reader = TableReader.open(str(lake))
    commits = reader.table.timeline.completed()
    for query in (Snapshot(commits[2].requested_time), ReadOptimized(), Incremental(commits[3].completion_time or "")):
        batches = reader.batches(reader.plan(query, columns=["id"]))
        expected = sorted(key for batch in batches for key in batch.column("id").to_pylist())
        assert keys(read_dataframe(spark, str(lake), query=query, columns=["id"]).collect()) == expected


def test_the_index_is_read_in_tasks(spark: SparkSession, lake: Path) -> None:
    condition = "n > 2 AND id IN (1, 5, 9)"
    reader = TableReader.open(str(lake), reads=IndexReads(0, in_tasks(spark)))
    plan = reader.plan(condition=condition)
    assert not plan.warnings
    assert any("read in tasks" in step.why for step in plan.steps)
    assert plan.slices == TableReader.open(str(lake)).plan(condition=condition).slices
    rows = read_dataframe(spark, str(lake), condition=condition, index_rows_in_process=0).collect()
    assert keys(rows) == sorted(r["id"] for r in everything(lake) if r["id"] in (1, 5, 9) and (r["n"] or 0) > 2)


@pytest.mark.lines
def test_the_session_says_when_the_index_is_read_in_tasks(spark: SparkSession, lake: Path) -> None:
    jobs = []
    for limit in ("0", "100000"):
        spark.conf.set(ROWS_IN_PROCESS_KEY, limit)
        spark.sparkContext.setJobGroup(f"limit {limit}", "planning")
        read_dataframe(spark, str(lake), condition="n > 2")
        jobs.append(len(spark.sparkContext.statusTracker().getJobIdsForGroup(f"limit {limit}")))
    spark.conf.unset(ROWS_IN_PROCESS_KEY)
    assert jobs[0] > 0
    assert jobs[1] == 0


def test_tasks_that_cannot_read_the_index_leave_every_file(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    """The driver only lists; the damage is met by the tasks."""
    path = tmp_path / "t"
    shutil.copytree(lake, path)
    for log in (path / ".hoodie/metadata/column_stats").glob(".*.log.*"):
        log.write_bytes(log.read_bytes()[:-5])
    for base in (path / ".hoodie/metadata/column_stats").glob("*.hfile"):
        base.write_bytes(base.read_bytes()[:-5])
    reader = TableReader.open(str(path), reads=IndexReads(0, in_tasks(spark)))
    plan = reader.plan(condition="n > 1000")
    assert len(plan.slices) == plan.steps[0].slices
    (warning,) = plan.warnings
    assert (warning.step, "cannot be read" in warning.what) == ("column stats", True), warning
    expected = sorted(r["id"] for r in everything(lake) if (r["n"] or 0) > 2)
    assert keys(read_dataframe(spark, str(path), condition="n > 2", index_rows_in_process=0).collect()) == expected


def test_the_metastore_of_the_session_is_asked(spark: SparkSession, lake: Path) -> None:
    """The frame has the same rows, and as many tasks."""
    words = {"condition": "part <> 'p1' AND n >= 0", "columns": ["id"]}
    alone = read_dataframe(spark, str(lake), **words)  # type: ignore[arg-type]
    with serving([open_storage(str(lake.parent))]) as address, configured(spark, {METASTORE_KEY: address}):
        served = read_dataframe(spark, str(lake), **words)  # type: ignore[arg-type]
        text = urllib3.request("GET", address + paths.METRICS).data.decode()
    assert f'route="{paths.PLAN}",status="200"}} 1.0' in text
    assert served.rdd.getNumPartitions() == alone.rdd.getNumPartitions()
    assert keys(served.collect()) == keys(alone.collect())
