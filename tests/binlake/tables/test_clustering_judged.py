"""Hudi Spark beside clusterings: it reads before, during and after ours, writes beside our plan, and we execute its."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from binlake.stream.spark.tasks import service_tasks
from hudilake.read import Incremental, TableReader
from hudilake.storage import open_storage
from tests.binlake.tables.clustered import ClusteredLake
from tests.binlake.tables.clusterer import Clusterer
from tests.judges.agreement import assert_judges_agree, assert_same
from tests.judges.hudi_spark import HudiSpark

pytestmark = [pytest.mark.spark, pytest.mark.judge]

NAMES = ["id", "owner", "region"]
OPTIONS = {
    "hoodie.table.name": "a",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.index.type": "BLOOM",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.embed.timeline.server": "false",
    "hoodie.clean.automatic": "false",
}


def agree(here: ClusteredLake, spark: HudiSpark) -> None:
    """All readers show the source's rows."""
    assert_judges_agree(here.place, wanted(here), spark=spark, columns=NAMES)


def wanted(here: ClusteredLake) -> list[dict[str, object]]:
    """The rows."""
    return [{"id": key, "owner": owner, "region": region} for key, (owner, region) in here.rows.items()]


def hudi_inserts(session: SparkSession, here: ClusteredLake, key: int) -> None:
    """Hudi's writer adds a row."""
    held = session.read.format("hudi").load(str(here.place))
    columns = [name for name in held.columns if not name.startswith("_hoodie_")]
    row = held.select(*columns).limit(1).withColumn("id", sf.lit(key)).withColumn("owner", sf.lit("hudi"))
    row = row.withColumn("region", sf.lit("eu")).localCheckpoint()
    row.write.format("hudi").options(**OPTIONS).mode("append").save(str(here.place))
    here.rows[key] = "hudi", "eu"


def changed_since(here: ClusteredLake, spark: HudiSpark, completion: str) -> set[int]:
    """The keys of the rows that changed after a commit, by us and by Hudi."""
    reader = TableReader.open(open_storage(str(here.place)))
    mine = set(reader.read(Incremental(completion), columns=["id"]).read_all().column("id").to_pylist())
    assert {row["id"] for row in spark.incremental(str(here.place), completion)} == mine
    return mine


@pytest.mark.full
def test_hudi_beside_our_clustering(tmp_path: Path, spark: SparkSession, hudi_spark: HudiSpark) -> None:
    here = ClusteredLake(tmp_path, "cow_bloom", "process")
    for _ in range(2):
        here.batch(changes=1)
    last = here.table().timeline.newest_first()[0]
    clusterer = Clusterer(here)
    assert clusterer.plan() is not None
    hudi_inserts(spark, here, 1001)  # beside the plan, which stays
    assert len(here.pending()) == 1
    clusterer.begin(service_tasks(spark.sparkContext))
    assert_same("Hudi Spark", hudi_spark.snapshot(str(here.place)), wanted(here), NAMES)  # its files count for nobody
    done = clusterer.end()
    assert done is not None
    assert (done.completed, done.gave_way) == (True, 0)
    agree(here, hudi_spark)
    assert changed_since(here, hudi_spark, last.completion_time or "") == {1001}
    here.start()
    here.change(3)
    here.insert(2)
    here.run()
    here.check()


def test_we_execute_a_plan_of_hudi(tmp_path: Path, spark: SparkSession, hudi_spark: HudiSpark) -> None:
    here = ClusteredLake(tmp_path, "cow_bloom", "process")
    for _ in range(2):
        here.batch(changes=0)
    groups = {path: here.groups(path) for path in ("eu", "us")}
    spark.sql(f"CALL run_clustering(path => '{here.place}', op => 'schedule', order => 'owner')").collect()
    assert len(here.pending()) == 1
    here.start()
    here.batch(changes=0)  # new rows go elsewhere
    here.put("u", next(iter(here.rows)), "waits", next(iter(here.rows.values()))[1])
    assert "a pending clustering of Hudi will replace" in (here.run().error or "")
    clusterer = Clusterer(here)
    clusterer.begin()
    done = clusterer.end()
    assert done is not None
    assert done.completed
    assert not {*groups["eu"], *groups["us"]} & {*here.groups("eu"), *here.groups("us")}
    here.go_on()
    agree(here, hudi_spark)
