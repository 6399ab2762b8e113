"""Hudi Spark reads tables of a merge engine at every instant, and compacts them in between."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.binlake.stream.test_engines import SUMS, Stream, randomly
from tests.hypothesis_profile import scaled
from tests.judges.hudi_spark import HudiSpark

pytestmark = [pytest.mark.spark, pytest.mark.judge]

INDEX = ("hoodie.metadata.index.bloom.filter.enable", "hoodie.metadata.index.column.stats.enable")
COLUMNS = ("owner", "balance", "id")


def by_spark(spark: HudiSpark, stream: Stream, *columns: str) -> list[tuple[Any, ...]]:
    """The table through Hudi Spark."""
    rows = spark.snapshot(str(stream.path / "shop/facts"))
    return sorted(tuple(row[name] for name in columns) for row in rows)


def compact(session: SparkSession, path: Path, key: str) -> None:
    """Hudi's own compaction, with the metadata table that the table has."""
    conf = {"hoodie.metadata.enable": "true", **dict.fromkeys(INDEX, "true")}
    conf |= {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.datasource.write.recordkey.field": key}
    for name, value in conf.items():
        session.conf.set(name, value)
    try:
        session.sql(f"CALL run_compaction(op => 'scheduleandexecute', path => '{path}')").collect()
    finally:
        for name in conf:
            session.conf.unset(name)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(scaled(2, least=1)))
def test_sums_at_every_instant(tmp_path: Path, spark: SparkSession, hudi_spark: HudiSpark, seed: int) -> None:
    rng = random.Random(seed)
    stream = Stream(tmp_path, SUMS)
    for turn in range(5):
        randomly(stream, rng, 8)
        stream.again(rng.randint(0, 4))
        stream.batch()
        assert by_spark(hudi_spark, stream, *COLUMNS) == stream.sums() == stream.lake(*COLUMNS)
        if turn % 2:
            compact(spark, tmp_path / "shop/facts", "owner")
            assert by_spark(hudi_spark, stream, *COLUMNS) == stream.sums() == stream.lake(*COLUMNS)


@pytest.mark.full
def test_partial_updates_after_a_compaction_by_spark(
    tmp_path: Path, spark: SparkSession, hudi_spark: HudiSpark
) -> None:
    stream = Stream(tmp_path, {"engine": "partial_update"}, key=None)
    columns = ("id", "owner", "region")
    stream.put("c", 1, "a", region="eu")
    stream.put("c", 2, "b", region=None)
    stream.batch()
    stream.put("d", 2)
    stream.put("u", 1, "c", region=None)
    stream.batch()
    compact(spark, tmp_path / "shop/facts", "id")
    stream.again(1)  # a delete that comes again, and the update of another row
    stream.put("c", 2, "e", region=None)
    stream.batch()
    assert by_spark(hudi_spark, stream, *columns) == stream.lake(*columns) == [(1, "c", "eu"), (2, "e", None)]
