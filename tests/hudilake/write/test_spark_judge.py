"""Hudi Spark 1.2.0 and hudi-rs read copy-on-write tables of ours; Hudi Spark goes on writing, and we after it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudilake.metadata.config import MetadataConfig
from hudilake.services.fsck import fsck
from hudilake.table.table import HudiTable
from tests.hudilake.lake import SCHEMA, Change, Model, Row, commit, deletes, new_table, row_of, storage_at, upserts
from tests.judges import hudi_rs
from tests.judges.agreement import assert_judges_agree, assert_same
from tests.judges.hudi_spark import HudiSpark

pytestmark = [pytest.mark.spark, pytest.mark.judge]

WRITER = {
    "hoodie.table.name": "t1",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
    "hoodie.index.type": "BUCKET",
    "hoodie.embed.timeline.server": "false",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
HISTORY = [
    upserts(range(12), 100) + upserts(range(12), 100, day="d2"),
    upserts([1, 2], 90, "late") + deletes([3, 4], 110) + deletes([5], 99) + upserts([7], 100, "tie", "d2"),
    upserts([4], 111, "back") + upserts([50], 1, day="d3"),
]


def spark_write(spark: SparkSession, path: Path, changes: Iterable[Change]) -> None:
    """An upsert by Hudi's own writer."""
    fields = "id long, name string, qty int, price decimal(10,2), at timestamp, day string, _binlake_order long"
    frame = spark.createDataFrame([tuple(row_of(change).values()) for change in changes], fields)
    frame.write.format("hudi").options(**WRITER).mode("append").save(str(path))


def agree(path: Path, model: Model, judge: HudiSpark) -> None:
    """Both judges and we show the model's rows; fsck finds nothing."""
    assert_judges_agree(path, model.rows(), spark=judge, columns=SCHEMA.names)
    assert [finding for finding in fsck(storage_at(path)).findings if finding.severity == "error"] == []


@pytest.mark.full
def test_both_judges_read_and_hudi_goes_on_writing(tmp_path: Path, spark: SparkSession, hudi_spark: HudiSpark) -> None:
    table = new_table(tmp_path, MetadataConfig(), table_type="copy_on_write")
    model, states, instants = Model(), list[list[Row]](), list[str]()
    for changes in HISTORY:
        instants.append(commit(table, changes))
        model.apply(changes)
        states.append(model.rows())
    agree(tmp_path, model, hudi_spark)
    assert_same("read-optimized", hudi_spark.read_optimized(str(tmp_path)), model.rows(), SCHEMA.names)
    assert_same("Hudi Spark then", hudi_spark.as_of(str(tmp_path), instants[1]), states[1], SCHEMA.names)
    for instant, rows in zip(instants, states, strict=True):
        assert_same("hudi-rs then", hudi_rs.as_of(tmp_path, instant), rows, SCHEMA.names)
    second = table.timeline.completed()[1]
    changed = hudi_spark.incremental(str(tmp_path), second.completion_time or "")
    assert {(row["day"], row["id"]) for row in changed} == {("d1", 4), ("d3", 50)}

    theirs = upserts([1, 60], 500, "spark") + upserts([7], 99, "older", "d2") + upserts([8], 500, "spark", "d2")
    groups = {(piece.partition_path, piece.file_id) for piece in table.file_slices()}
    spark_write(spark, tmp_path, theirs)
    model.apply(theirs)
    agree(tmp_path, model, hudi_spark)

    reopened = HudiTable.open(table.storage, metadata=MetadataConfig())
    assert {(piece.partition_path, piece.file_id) for piece in reopened.file_slices()} == groups
    assert table.refresh()
    mine = upserts([1], 499, "late") + upserts([2], 501, "ours") + deletes([60], 500)
    commit(table, mine)
    model.apply(mine)
    agree(tmp_path, model, hudi_spark)
