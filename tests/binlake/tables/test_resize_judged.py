"""Hudi Spark on a table with consistent hashing: it reads and upserts before and after our splits, and we go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from hudilake.format.definition.consistent import HASHING_PATH
from hudilake.services.rebucket.steps import rings_of
from hudilake.services.rebucket.units import BucketChange
from tests.binlake.rows.upsert.ingest import Ingest, rows_of
from tests.binlake.tables.test_rebucket import ids, inserts
from tests.binlake.tables.test_resize import errors, lake, opened, resized
from tests.judges.agreement import assert_judges_agree
from tests.judges.hudi_spark import HudiSpark
from tests.model import Shape

pytestmark = [pytest.mark.spark, pytest.mark.judge]

SHAPE = Shape(("id", "code"), "region", "identity", "region")
OPTIONS = {
    "hoodie.table.name": "items",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "id,code",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.embed.timeline.server": "false",
    "hoodie.clean.automatic": "false",
}


def hudi_touches(session: SparkSession, here: Ingest) -> None:
    """Hudi's writer updates every row."""
    held = session.read.format("hudi").load(here.uri)
    columns = [name for name in held.columns if not name.startswith("_hoodie_")]
    order = sf.col("_binlake_order") + 1
    changed = held.select(*columns).withColumn("ratio", sf.lit(0.5)).withColumn("_binlake_order", order)
    changed.localCheckpoint().write.format("hudi").options(**OPTIONS).mode("append").save(here.uri)


def agree(here: Ingest, spark: HudiSpark, count: int) -> None:
    assert ids(here) == list(range(count))
    assert_judges_agree(here.uri, rows_of(here.root), spark=spark)
    # After Hudi's commits the statistics of our binary column are wrong, and fsck says so.
    assert [found for found in errors(here) if "statistics" not in found] == []


@pytest.mark.full
def test_hudi_and_we_go_on_after_each_other(tmp_path: Path, spark: SparkSession, hudi_spark: HudiSpark) -> None:
    here = lake(tmp_path, SHAPE)
    here.run(inserts(0, 40))
    hudi_touches(spark, here)
    agree(here, hudi_spark, 40)
    assert {one["ratio"] for one in rows_of(here.root)} == {0.5}
    first = sorted({piece.partition_path for piece in opened(here).hudi.file_slices()})[0]
    resized(here, BucketChange(first, (0,)), BucketChange(first, (1,)))
    agree(here, hudi_spark, 40)
    hudi_touches(spark, here)
    agree(here, hudi_spark, 40)
    resized(here, BucketChange(first, (0, 1, 2)))
    here.restart()
    here.run(inserts(40, 20))
    agree(here, hudi_spark, 60)
    assert rings_of(opened(here).hudi, "t").count(first) == 2
    written = [info.path for info in here.root.sub(here.rules.path).walk(HASHING_PATH)]
    assert len([path for path in written if path.endswith(".hashing_meta") and first in path]) == 3
