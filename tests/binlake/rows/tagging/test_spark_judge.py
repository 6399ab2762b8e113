"""Hudi Spark reads tables whose index is looked up, moves rows in them by the same index, and our writer goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from hudilake.policies import IndexType, TableType
from tests.binlake.rows.tagging.test_stream import config, expected, feed, first_rows, put, rows
from tests.hypothesis_profile import is_nightly
from tests.judges import hudi_rs
from tests.judges.hudi_spark import HudiSpark

pytestmark = [pytest.mark.full, pytest.mark.spark, pytest.mark.judge]

#: The index, the table type and the partition paths are in ``hoodie.properties``.
WRITER = {
    "hoodie.table.name": "accounts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
}
Told = dict[int, tuple[str, str, str]]


def told(read: list[dict[str, Any]]) -> Told:
    """Rows by id; each once."""
    found = {r["id"]: (r["owner"], r["region"], r["_hoodie_partition_path"]) for r in read}
    assert len(found) == len(read)
    return found


def write(table: Path, spark: HudiSpark, changes: dict[int, str]) -> None:
    """An upsert of rows (id -> region) by Hudi Spark, later than all before."""
    frame: DataFrame = spark.frame(str(table))
    newest = frame.agg(sf.max("_binlake_order")).collect()[0][0]
    values = [c for c in frame.columns if not c.startswith("_hoodie")]
    donor = frame.select(values).limit(1).drop("id", "region", "owner", "_binlake_order")
    made = spark.session.createDataFrame(
        [(key, region, "by Spark", newest + 1) for key, region in changes.items()],
        "id long, region string, owner string, _binlake_order long",
    )
    made.crossJoin(donor).select(values).write.format("hudi").options(**WRITER).mode("append").save(str(table))


#: One in a usual run: each takes several seconds.
KINDS: list[tuple[IndexType, TableType]] = [("global_simple", "merge_on_read"), ("simple", "copy_on_write")]


@pytest.mark.parametrize(("index", "table_type"), KINDS if is_nightly() else KINDS[:1])
def test_hudi_spark_goes_on_and_so_do_we(
    tmp_path: Path, hudi_spark: HudiSpark, index: IndexType, table_type: TableType
) -> None:
    moving, table = index == "global_simple", tmp_path / "shop" / "accounts"
    given, log, wanted = config(tmp_path, index, table_type), first_rows(), expected()
    feed(tmp_path, given, log, 0)
    put(log, 200, 3, "eu")
    put(log, 201, 12, "us", "c")
    put(log, 202, 0, "us" if moving else "eu")
    put(log, 203, 4, "us", "d")
    feed(tmp_path, given, log, 1)
    wanted |= {3: ("at 200", "eu", "region=eu"), 12: ("at 201", "us", "region=us")}
    wanted[0] = ("at 202", "us", "region=us") if moving else ("at 202", "eu", "region=eu")
    del wanted[4]
    assert rows(tmp_path) == told(hudi_spark.snapshot(str(table))) == wanted
    write(table, hudi_spark, {0: "ap" if moving else "eu", 2: "ap", 20: "us"})
    wanted[0] = ("by Spark", "ap", "region=ap") if moving else ("by Spark", "eu", "region=eu")
    wanted |= {2: ("by Spark", "ap", "region=ap"), 20: ("by Spark", "us", "region=us")}
    assert told(hudi_rs.snapshot(table).to_pylist()) == wanted
    put(log, 5000, 0, "eu")
    put(log, 5001, 20, "us")
    put(log, 5002, 4, "us", "c")
    put(log, 5003, 2, "ap", "d")
    feed(tmp_path, given, log, 2)
    wanted |= {0: ("at 5000", "eu", "region=eu"), 20: ("at 5001", "us", "region=us"), 4: ("at 5002", "us", "region=us")}
    del wanted[2]
    assert rows(tmp_path) == told(hudi_spark.snapshot(str(table))) == wanted
