"""Hudi Spark skips by the row groups and pages of our ordered base files, and we read as little of the same file."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from hudilake.policies import OrderPolicy
from hudilake.read import TableReader
from hudilake.read.inside.tally import ReadTally
from hudilake.services.compaction import CompactionConfig, run
from tests.hudilake.lake import commit, new_table, upserts
from tests.hudilake.services.compaction.steps import serially
from tests.judges import hudi_rs
from tests.judges.hudi_spark import HudiSpark
from tests.spark_session import configured

pytestmark = [pytest.mark.spark, pytest.mark.judge]

ROWS = 24_000
#: Prices rise with the id, ids are spread over the keys.
CONDITION = "price >= 100 and price < 101"
FOUND = 100


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One base file, its rows by price: two row groups of 12,000 rows, a page for each 5,000 rows."""
    path = tmp_path_factory.mktemp("ordered")
    table = new_table(path, buckets=1)
    commit(table, upserts(range(ROWS), 1))
    order = OrderPolicy(columns=("price",), curve="linear")
    run(table, CompactionConfig(after_commits=1, row_group_rows=12_000, order_by=order), serially)
    return path


def scanned(frame: DataFrame) -> int:
    """The rows that Spark's scans of files gave to the rest of a query that was run."""
    plan = frame._jdf.queryExecution().executedPlan()
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        plan = plan.executedPlan()
    leaves, total = plan.collectLeaves(), 0
    for i in range(leaves.size()):
        total += leaves.apply(i).metrics().apply("numOutputRows").value()
    return int(total)


@pytest.mark.full
def test_hudi_spark_reads_a_part_of_the_file(lake: Path, hudi_spark: HudiSpark) -> None:
    everything = hudi_spark.frame(str(lake)).select("id", "price")
    assert len(everything.collect()) == scanned(everything) == ROWS
    # In a session that has read many other tables, a scan gave the rows that pass alone (measured).
    with configured(hudi_spark.session, {"spark.sql.parquet.enableVectorizedReader": "true"}):
        some = everything.where(CONDITION)
        assert len(some.collect()) == FOUND
        assert FOUND <= scanned(some) <= 2_000  # the last page of its row group of 12,000
    with configured(hudi_spark.session, {"spark.sql.parquet.filterPushdown": "false"}):
        without = everything.where(CONDITION)
        assert len(without.collect()) == FOUND
        assert scanned(without) == ROWS


@pytest.mark.full
def test_we_read_a_part_of_the_file(lake: Path) -> None:
    reader, tally = TableReader.open(str(lake)), ReadTally()
    plan = reader.plan(condition=CONDITION, columns=["id", "price"])
    rows = sum(batch.num_rows for batch in reader.batches(plan, tally))
    assert (rows, tally.row_groups, tally.of_row_groups) == (FOUND, 1, 2)
    assert (tally.pages, tally.of_pages) == (4, 12)  # of id, price, record key and ordering column
    assert tally.bytes < tally.of_bytes / 4


def test_hudi_rs_gives_the_rows(lake: Path) -> None:
    """It reads the whole file, whatever the filter (measured: hudi-rs 0.5.0, bytes of system calls)."""
    found = hudi_rs.where(lake, ("price", ">=", "100"), ("price", "<", "101"))
    assert sorted(row["id"] for row in found.to_pylist()) == list(range(10_500, 10_600))
