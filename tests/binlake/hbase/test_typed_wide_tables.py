"""The example ``conf/hbase.yaml`` over the recording: its wide rows equal HBase's final scan, through every reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from binlake.hbase.settings.declared import wide_column
from tests.binlake.hbase.cells_world import CellsWorld
from tests.binlake.hbase.recordings import topic, truth
from tests.binlake.hbase.rules.slow import pivot
from tests.judges.agreement import assert_judges_agree
from tests.judges.hudi_spark import HudiSpark
from tests.paths import CONF

TABLE = "shop:orders"
(ORDERS, _) = yaml.safe_load((CONF / "hbase.yaml").read_text())["tables"]["cells"]
COLUMNS = {name: wide_column(name, declared) for name, declared in ORDERS["wide"]["columns"].items()}


def orders(path: Path) -> tuple[Path, list[dict[str, Any]]]:
    """The wide table after a batch a partition of the topic, with a compaction between; and what it must hold."""
    world = CellsWorld(path, ())
    every = {"after_commits": 2, "mode": "inline"}
    world.start(tables={"cells": [ORDERS], "defaults": {"buckets": 2, "compaction": every}})
    for records in topic(TABLE, "wal").values():
        world.deliver(records)
        world.feed()
    wanted = pivot(truth(TABLE), COLUMNS.values())
    assert not wanted.faults
    return path / "lake" / "shop" / "orders", list(wanted.rows.values())


def test_hudi_rs_and_ours(tmp_path: Path) -> None:
    table, wanted = orders(tmp_path)
    assert list(table.glob(".hoodie/timeline/*_*.commit"))  # a compaction
    assert_judges_agree(table, wanted, columns=list(COLUMNS))


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.judge
def test_hudi_spark_too(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    table, wanted = orders(tmp_path)
    assert_judges_agree(table, wanted, spark=hudi_spark, columns=list(COLUMNS))
    third = (
        hudi_spark.frame(str(table)).selectExpr("order_id", "attributes['attr:3'] AS three").where("three IS NOT NULL")
    )
    held = {row["order_id"]: dict(row["attributes"] or []).get("attr:3") for row in wanted}
    assert {row.order_id: row.three for row in third.collect()} == {key: value for key, value in held.items() if value}
