"""Hudi Spark 1.2.0 finds rows by our record index, and upserts into the table with it; we go on after it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from hudilake.format.files.hfile.reader import HFileReader
from hudilake.format.files.view import file_slices
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.live_keys import live_keys
from hudilake.policies import IndexType
from hudilake.table.table import HudiTable
from tests.hudilake.metadata.record_index.keyed_table import Group, KeyedTable, file_id, said
from tests.hudilake.metadata.spark_index import files_read, frame, write
from tests.hypothesis_profile import is_nightly
from tests.judges import hudi_rs

pytestmark = [pytest.mark.spark, pytest.mark.judge]

#: Only the record index can skip files.
CONFIG = MetadataConfig(
    column_stats=False, bloom_filters=False, compact_after=5, compact_at_most=5, record_index_file_groups=3
)
REGIONS = ("eu", "us", "ap")


def _options(index: IndexType) -> dict[str, str]:
    scope = "global.record.level" if index == "record_index" else "record.level"
    return {
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX" if index == "record_index" else "RECORD_LEVEL_INDEX",
        f"hoodie.metadata.{scope}.index.enable": "true",
        f"hoodie.metadata.{scope}.index.min.filegroup.count": "3",
        f"hoodie.metadata.{scope}.index.max.filegroup.count": "3",
        "hoodie.record.index.update.partition.path": "true",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.metadata.index.partition.stats.enable": "false",
        "hoodie.metadata.index.bloom.filter.enable": "false",
        "hoodie.embed.timeline.server": "true",
        "hoodie.metadata.compact.max.delta.commits": "3",
    }


def _places(table: HudiTable) -> dict[tuple[str, str], Group]:
    """Where each key has its row, by the files."""
    by_partition = table.config.kind.scope.by_partition
    return {
        (piece.partition_path if by_partition else "", key): (piece.partition_path, piece.file_id)
        for piece in file_slices(table.storage, table.timeline)
        for key in live_keys(table.storage, piece, table.config.ordering_field, table.timeline).to_pylist()
    }


def _agree(spark: SparkSession, table: KeyedTable) -> dict[tuple[str, str], Group]:
    """The index, the files, Spark and hudi-rs agree; returns where the keys are."""
    opened = table.reopen()
    places = _places(opened)
    assert said(opened) == places
    ids = sorted(int(key) for _, key in places)
    assert sorted(row["id"] for row in frame(spark, table.path, skipping=True).collect()) == ids
    assert sorted(hudi_rs.snapshot(table.path).column("id").to_pylist()) == ids
    return places


def _point(spark: SparkSession, table: KeyedTable, number: int, *, skipping: bool) -> tuple[list[str], int]:
    """The names that a lookup of one key finds, and how many file slices it opens."""
    rows = frame(spark, table.path, skipping=skipping, metadata=True).where(f"id = {number}")
    return [row["name"] for row in rows.collect()], files_read(rows.select("*"))


def _rows(spark: SparkSession, rows: list[tuple[int, str, str, int]]) -> DataFrame:
    return spark.createDataFrame(rows, "id long, name string, region string, ts long")


@pytest.mark.full
@pytest.mark.parametrize("index", ["record_index", *(["partitioned_record_index"] if is_nightly() else [])])
def test_taking_turns(spark: SparkSession, tmp_path: Path, index: IndexType) -> None:
    table = KeyedTable(tmp_path / "t", index, CONFIG)
    for turn in range(6):
        table.insert(REGIONS[turn % 3], turn, range(turn * 10, turn * 10 + 10))
    table.commit({("region=us", file_id(4)): ([], [45])})
    if index == "record_index":
        assert _point(spark, table, 33, skipping=True) == (["n33"], 1)
        assert _point(spark, table, 45, skipping=True) == ([], 0)
        assert _point(spark, table, 33, skipping=False)[1] == 6
    moved = [(7, "moved", "us", 100)] if index == "record_index" else []
    upserts = [(33, "changed", "eu", 100), *moved, (45, "back", "us", 100), (700, "new", "eu", 100)]
    write(_rows(spark, upserts), table.path, "region", _options(index))
    bases = (table.path / ".hoodie/metadata/record_index").glob("*.hfile")
    assert any("_0-0-0_" not in base.name for base in bases), "Hudi Spark compacted the index"
    places = _agree(spark, table)
    if is_nightly():
        deletes = {**_options(index), "hoodie.datasource.write.operation": "delete"}
        write(_rows(spark, [(11, "", "us", 200), (700, "", "eu", 200)]), table.path, "region", deletes)
        assert len(_agree(spark, table)) == len(places) - 2
    table.insert("ap", 50, [701, 702])
    table.insert("xx", 51, [800])
    places = _agree(spark, table)
    if is_nightly():
        write(_rows(spark, [(701, "again", "ap", 300)]), table.path, "region", _options(index))
        assert len(_agree(spark, table)) == len(places)


#: Java orders the first of each two before the second, bytes the other way round.
UNLIKE_KEYS = ["A", "a\U00010000z", "a\ue000z", "b\U0001f600", "b\uff21", "plain", "\U00010000", "\ue000"]


@pytest.mark.full
def test_keys_that_java_orders_otherwise_than_their_bytes(spark: SparkSession, tmp_path: Path) -> None:
    """Hudi Spark compacts the index into Java's order, which we read, and refuses to look such keys up in either order:
    its reader takes them in Java's order and compares bytes."""
    config = MetadataConfig(
        column_stats=False, bloom_filters=False, compact_after=5, compact_at_most=5, record_index_file_groups=1
    )
    table = KeyedTable(tmp_path / "t", "record_index", config, key_type=pa.string())
    table.insert("eu", 0, UNLIKE_KEYS)
    options = {**_options("record_index"), "hoodie.metadata.compact.max.delta.commits": "1"}

    def upsert(*keys: str) -> None:
        columns = "id string, name string, region string, ts long"
        rows = spark.createDataFrame([(key, "new", "eu", 100) for key in keys], columns)
        write(rows, table.path, "region", options)

    def judged() -> dict[tuple[str, str], Group]:
        opened = table.reopen()
        places = _places(opened)
        assert said(opened) == places
        wanted = sorted(key for _, key in places)
        assert sorted(row["id"] for row in frame(spark, table.path, skipping=True).collect()) == wanted
        assert sorted(hudi_rs.snapshot(table.path).column("id").to_pylist()) == wanted
        return places

    before = judged()
    upsert("plain", "plainer")
    (base,) = (b for b in (table.path / ".hoodie/metadata/record_index").glob("*.hfile") if "_0-0-0_" not in b.name)
    block = HFileReader.from_bytes(base.read_bytes()).block_bytes(0)
    assert block.index(UNLIKE_KEYS[1].encode()) < block.index(UNLIKE_KEYS[2].encode())  # in Java's order
    assert set(judged()) == {*before, ("", "plainer")}
    with pytest.raises(Py4JJavaError, match="backward seekTo"):
        upsert(*UNLIKE_KEYS[:3])
    index = table.reopen().metadata_table
    assert index is not None
    assert index.record_index is not None
    found = index.record_index.locate(pa.array(UNLIKE_KEYS), pa.array(["region=eu"] * len(UNLIKE_KEYS)))
    assert found.partition_paths.to_pylist() == ["region=eu"] * len(UNLIKE_KEYS)
    table.commit({("region=eu", file_id(0)): ([], ["b\uff21"])})
    assert set(judged()) == {*before, ("", "plainer")} - {("", "b\uff21")}
