"""Backfills in Spark tasks, and what Hudi Spark reads of them (``tests/judges/test_own_sessions.py``)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from binlake.load.backfill.frames import backfill
from binlake.load.backfill.workers import SparkWorkers
from tests.binlake.load.backfill.lake_with_rows import (
    LIVE,
    backfilled,
    fed,
    filled_by,
    rows_of,
    scores,
    with_scores,
    written,
)
from tests.judges.hudi_spark import HudiSpark


@pytest.mark.spark
def test_in_spark_tasks(tmp_path: Path, spark: SparkSession) -> None:
    """Tasks read pieces, look rows up and write; a DataFrame is spooled by its own tasks."""
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores())
    filled_by(lake, source, SparkWorkers(spark.sparkContext))
    assert rows_of(lake, "score") == with_scores()
    frame = spark.createDataFrame([(n, f"label {n}") for n in range(8)], "id long, label string").repartition(3)
    report = backfill(lake.settings, "shop.a", frame, ["label"])
    assert (report.counts.changed, report.group) == (4, "backfill_2")
    assert rows_of(lake, "label") == {n: (f"label {n}",) for n in LIVE}


@pytest.mark.judge
@pytest.mark.spark
def test_hudi_reads_what_was_filled(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    """Before and after a compaction, and beside the stream's further rows."""
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores())
    backfilled(lake, source, ("score", "label"), insert=True)
    uri = f"{lake.path}/shop/a"
    for step in ("filled", "streamed", "compacted"):
        if step == "streamed":
            lake.feed(1, ("a",))
        if step == "compacted":
            assert lake.run("compact", "shop.a", "--now").exit_code == 0
        expected = rows_of(lake, "score", "label", "owner")
        rows = hudi_spark.snapshot(uri)
        assert {row["id"]: (row["score"], row["label"], row["owner"]) for row in rows} == expected, step
    assert json.dumps(sorted(expected)) == "[0, 1, 3, 4, 5, 6, 7]"
