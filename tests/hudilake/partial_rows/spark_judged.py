"""Random histories with partial rows, read and compacted by Hudi Spark 1.2.0, and skipped by our index."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.files.log_file import iter_blocks
from hudilake.metadata import table as metadata_table
from hudilake.metadata.indexed_columns import ColumnTypes
from hudilake.metadata.records.delta import MetadataDelta
from hudilake.read import And, Eq
from tests.hudilake.metadata.spark_index import frame
from tests.hudilake.partial_rows.conditions import Condition, condition
from tests.hudilake.partial_rows.histories import History, ours
from tests.hudilake.partial_rows.lake import COLUMNS, Full, Lake, Part, cells
from tests.hypothesis_profile import scaled
from tests.judges.agreement import assert_judges_agree, assert_same, read_ourselves
from tests.judges.hudi_spark import HudiSpark

pytestmark = [pytest.mark.spark, pytest.mark.judge]

STEPS = 6
INDEX = ("hoodie.metadata.index.bloom.filter.enable", "hoodie.metadata.index.column.stats.enable")


@pytest.fixture
def compactor(spark: SparkSession) -> Iterator[Callable[[Lake], bool]]:
    """Hudi's own compaction, which keeps the metadata table as the table has it."""
    fixed = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.datasource.write.recordkey.field": "id"}

    def compact(lake: Lake) -> bool:
        flag = str(bool(lake.table.config.metadata_partitions)).lower()
        for name, value in ({"hoodie.metadata.enable": flag, **dict.fromkeys(INDEX, flag), **fixed}).items():
            spark.conf.set(name, value)
        done = spark.sql(f"CALL run_compaction(op => 'scheduleAndExecute', path => '{lake.path}')").collect()
        lake.opened()
        return bool(done)

    yield compact
    for name in ("hoodie.metadata.enable", *INDEX, *fixed):
        spark.conf.unset(name)


@pytest.mark.parametrize("seed", range(scaled(20, least=2, divisor=10)))
def test_both_judges_after_every_step(
    tmp_path: Path, hudi_spark: HudiSpark, compactor: Callable[[Lake], bool], seed: int
) -> None:
    history, dice = History(tmp_path, seed, [ours, compactor]), random.Random(seed)
    lake = history.lake
    for _ in history.steps(STEPS):
        assert_judges_agree(tmp_path, lake.rows(), spark=hudi_spark, columns=COLUMNS)
        if lake.model and lake.table.config.metadata_partitions:
            judge_skipping(hudi_spark.session, lake, [condition(lake.rows(), dice) for _ in range(2)])
    for instant in list(lake.pictures)[::3]:
        assert_same(instant, hudi_spark.as_of(str(tmp_path), instant), lake.pictures[instant], COLUMNS)


def judge_skipping(session: SparkSession, lake: Lake, conditions: list[Condition]) -> None:
    """Hudi Spark with data skipping gives the rows that pass."""
    rows = frame(session, lake.path, skipping=True)
    for item in conditions:
        found = [row.asDict() for row in rows.where(item.sql).collect()]
        assert_same(item.sql, found, [row for row in lake.rows() if item.passes(row)], COLUMNS)


def one_row_in_two_files(path: Path) -> Lake:
    """A row that has ``a`` from the base file and ``b`` from a log file."""
    lake = Lake.new(path, indexed=True)
    lake.commit({1: Full(cells(1)), 2: Full(cells(2))}, base=True)
    lake.commit({1: Part(cells(50, "b"))})
    return lake


BOTH = Condition(And((Eq("a", 7), Eq("b", "b50"))), "a = 7 and b = 'b50'", lambda r: r["id"] == 1)


def test_a_row_whose_columns_are_in_two_files_is_not_skipped(tmp_path: Path, spark: SparkSession) -> None:
    judge_skipping(spark, one_row_in_two_files(tmp_path), [BOTH])


def test_the_control_nulls_for_columns_that_partial_rows_lack_lose_the_row(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such statistics are Hudi's own."""

    def with_nulls(delta: MetadataDelta, types: ColumnTypes) -> MetadataDelta:
        files = []
        for file in delta.added:
            nulls = (ColumnRange(c, types[c][0], None, None, 1, 1, types[c][1]) for c in types if c in file.lacking)
            files.append(replace(file, ranges=(*(file.ranges or ()), *nulls)))
        return replace(delta, added=tuple(files))

    monkeypatch.setattr(metadata_table, "of_files", with_nulls)
    lake = one_row_in_two_files(tmp_path)
    with pytest.raises(AssertionError, match="gives 0 rows where 1 are expected"):
        judge_skipping(spark, lake, [BOTH])


@pytest.mark.parametrize("block", ["avro", "parquet"])
def test_partial_rows_that_hudi_spark_merges(tmp_path: Path, hudi_spark: HudiSpark, block: str) -> None:
    """``MERGE INTO`` writes partial rows, with the events' orders as ordering values."""
    session, name, path = hudi_spark.session, f"merged_{block}", tmp_path / "t"
    session.conf.set("hoodie.logfile.data.block.format", block)
    session.conf.set("hoodie.metadata.enable", "false")
    try:
        session.sql(
            f"CREATE TABLE {name} (id BIGINT, a BIGINT, b STRING, c STRING, ts BIGINT) USING hudi "
            "TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts') "
            f"LOCATION '{path}'"
        )
        session.sql(f"INSERT INTO {name} SELECT id, id * 7, concat('b', id), 'c', 100 FROM range(1, 7)")
        for number, change in enumerate(("b = s.v", "b = s.v, c = NULL", "a = 5")):
            session.sql(
                f"MERGE INTO {name} t USING (SELECT id, concat('new{number}', id) v, {200 + number}L ts "
                f"FROM range({1 + number}, 5)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET {change}, ts = s.ts"
            )
        blocks = [
            item
            for file in path.glob(".*.log.*")
            if not file.name.endswith(".crc")
            for item in iter_blocks(file.read_bytes())
        ]
        assert any(item.is_partial for item in blocks)
        assert_same("binlake", read_ourselves(path), hudi_spark.snapshot(str(path)), ["id", "a", "b", "c", "ts"])
    finally:
        session.sql(f"DROP TABLE IF EXISTS {name}")
        session.conf.unset("hoodie.logfile.data.block.format")
        session.conf.unset("hoodie.metadata.enable")
