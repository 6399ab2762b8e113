"""Hudi Spark 1.2.0 reads a table before and after it was moved to other buckets, and writes on with the new counts."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hudilake.services.fsck import fsck
from hudilake.table.table import HudiTable
from tests.binlake.cli.fed_lake import BY_PROCESS, FedLake
from tests.judges.agreement import assert_judges_agree, assert_same
from tests.judges.hudi_spark import HudiSpark
from tests.selection import first

pytestmark = [pytest.mark.spark, pytest.mark.judge]

COLUMNS = ["id", "owner", "region"]
BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.hash.field": "id",
    "hoodie.bucket.index.num.buckets": "3",
    "hoodie.bucket.index.partition.rule.type": "regex",
}


def rows(owners: dict[int, str]) -> list[dict[str, object]]:
    return [{"id": key, "owner": owner, "region": "eu"} for key, owner in owners.items()]


def groups(table: HudiTable) -> set[str]:
    return {piece.file_id for piece in table.file_slices()}


def write(session: SparkSession, uri: str, owners: dict[int, str], **options: str) -> None:
    """An upsert by Hudi's writer over stored rows."""
    stored = session.read.format("hudi").load(uri).filter(f"id in ({','.join(map(str, owners))})")
    names = ["id", "owner", "balance", "region", "_binlake_order"]
    given = [(r["id"], owners[r["id"]], r["balance"], r["region"], r["_binlake_order"] + 1) for r in stored.collect()]
    frame = session.createDataFrame(given, stored.select(*names).schema)
    made = {
        "hoodie.table.name": "a",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.embed.timeline.server": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        **BUCKETS,
        **options,
    }
    frame.write.format("hudi").options(**made).mode("append").save(uri)


@pytest.mark.full
def test_hudi_reads_and_writes_on(tmp_path: Path, spark: SparkSession, hudi_spark: HudiSpark) -> None:
    lake = FedLake(tmp_path, {"partition": {"column": "region"}, "retention": None})
    lake.feed(6)
    uri = f"{lake.path}/shop/a"
    owners = {key: "o5" for key in range(6) if key != 2}
    before = lake.commits()[-1]
    assert lake.run("rebucket", "shop.a", "--buckets", "3").exit_code == 0
    assert_judges_agree(uri, rows(owners), spark=hudi_spark, columns=COLUMNS)
    assert_same("Spark before the move", hudi_spark.as_of(uri, before), rows(owners), COLUMNS)
    assert hudi_spark.incremental(uri, lake.table().timeline.completed()[-2].completion_time or "") == []
    told = lake.run("rebucket", "shop.a", "--buckets", "5", "--partition", "region=eu")
    assert told.exit_code == 0, told.output
    assert_judges_agree(uri, rows(owners), spark=hudi_spark, columns=COLUMNS)
    known = groups(lake.table())
    write(spark, uri, {0: "s0", 4: "s4"}, **{"hoodie.bucket.index.partition.expressions": "^region=eu$,5"})
    owners |= {0: "s0", 4: "s4"}
    assert groups(lake.table()) <= known
    assert_judges_agree(uri, rows(owners), spark=hudi_spark, columns=COLUMNS)
    assert [f.what for f in fsck(lake.table().storage, grace_ms=0).findings if f.severity == "error"] == []


@pytest.mark.parametrize(
    "more", first(1, [{"merge": {"engine": "partial_update"}}, {"type": "copy_on_write"}]), ids=["mor", "cow"]
)
def test_hudi_reads_the_empty_base_files_of_buckets_with_deleted_rows_alone(
    tmp_path: Path, hudi_spark: HudiSpark, more: dict[str, object]
) -> None:
    lake = FedLake(tmp_path, {**more, "buckets": 1, "compaction": {**BY_PROCESS, "tombstone_retention_hours": 24}})
    lake.feed(8)
    told = lake.run("rebucket", "shop.a", "--buckets", "16")
    assert told.exit_code == 0, told.output
    files = [
        Path(lake.path / "shop/a" / piece.base_file.path) for piece in lake.table().file_slices() if piece.base_file
    ]
    assert 0 in [pq.read_metadata(file).num_rows for file in files]
    expected = rows({key: "o7" for key in range(8) if key != 4})
    assert_judges_agree(f"{lake.path}/shop/a", expected, spark=hudi_spark, columns=COLUMNS)
