"""Hudi Spark reads stitched tables as the model has them, and compacts them in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudilake.format.timeline.instant import COMMIT
from tests.binlake.rows.merging.stitched import TYPES, Model, merging
from tests.binlake.rows.merging.stitched_table import StitchedTable
from tests.binlake.rows.merging.test_stitched_table import Source
from tests.hypothesis_profile import scaled
from tests.judges.agreement import assert_judges_agree
from tests.judges.hudi_spark import HudiSpark
from tests.spark_session import configured

CONF = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.datasource.write.recordkey.field": "id",
}


@pytest.fixture
def hudi(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose compactions keep the metadata table as ours do."""
    with configured(spark, CONF) as session:
        yield session


@pytest.mark.judge
@pytest.mark.parametrize("seed", range(scaled(1)))
def test_compactions_by_spark_in_between(tmp_path: Path, hudi: SparkSession, hudi_spark: HudiSpark, seed: int) -> None:
    rule = merging(("columns", "columns", "row"))
    here, model, source = StitchedTable.at(tmp_path, rule, 0, "column"), Model(rule), Source(seed)
    for turn in range(9):
        events = [event for _ in range(3) for event in source.batch()]
        here.run(events)
        model.take(events)
        if turn % 4 == 3:
            hudi.sql(f"CALL run_compaction(op => 'scheduleAndExecute', path => '{here.uri}')").collect()
            here.restart()
        if turn % 4 >= 2:
            assert_judges_agree(here.uri, model.rows(), spark=hudi_spark, columns=list(TYPES))
    assert len([i for i in here.table.hudi.timeline.completed() if i.action == COMMIT]) == 2
