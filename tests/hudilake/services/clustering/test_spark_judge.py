"""Hudi Spark 1.2.0 reads what we cluster, goes on with it, and executes a plan of ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudilake.format.timeline.instant import CLUSTERING, Instant, State
from hudilake.services.clustering.plan import plan, plan_of
from hudilake.services.fsck import Severity, fsck
from hudilake.table.table import HudiTable
from tests.hudilake.lake import SCHEMA, Change, deletes, row_of, upserts
from tests.hudilake.services.clustering.made import Made, clustering
from tests.hypothesis_profile import is_nightly
from tests.judges.agreement import assert_judges_agree, assert_same
from tests.judges.hudi_spark import HudiSpark
from tests.spark_session import configured

pytestmark = [pytest.mark.spark, pytest.mark.judge]

OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.index.type": "SIMPLE",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.embed.timeline.server": "false",
}


@pytest.fixture
def hudi(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose Hudi writers and procedures keep the metadata table and the index as the table has them."""
    with configured(spark, OPTIONS) as session:
        yield session


def hudi_upserts(session: SparkSession, made: Made, changes: Iterable[Change]) -> None:
    """An upsert by Hudi's writer."""
    fields = "id long, name string, qty int, price decimal(10,2), at timestamp, day string, _binlake_order long"
    changes = list(changes)
    frame = session.createDataFrame([tuple(row_of(change).values()) for change in changes], fields)
    options = {"hoodie.table.name": "t1", "hoodie.datasource.write.operation": "upsert", **OPTIONS}
    frame.write.format("hudi").options(**options).mode("append").save(str(made.path))
    made.model.apply(changes)


def agree(made: Made, spark: HudiSpark) -> None:
    """All three readers, and what fsck has to say."""
    assert_judges_agree(made.path, made.model.rows(), spark=spark, columns=SCHEMA.names)
    assert [f for f in fsck(made.table.storage, grace_ms=0).findings if f.severity is Severity.ERROR] == []


@pytest.mark.full
def test_hudi_reads_goes_on_and_executes(tmp_path: Path, hudi: SparkSession, hudi_spark: HudiSpark) -> None:
    made, uri = Made.at(tmp_path / "t", "simple"), str(tmp_path / "t")
    first = made.commit([*upserts(range(0, 30, 2), 1), *upserts(range(100, 110), 1, day="d2")], "a")
    early = made.model.rows()
    made.commit(upserts(range(1, 30, 2), 2), "b")
    made.commit([*upserts([3, 4], 3, "x"), *deletes([5, 6], 3)], "b")
    made.cluster(clustering("qty", "name", curve="hilbert"))
    writes = made.table.timeline.completed()
    assert_same("time travel", hudi_spark.as_of(uri, first), early, SCHEMA.names)
    assert hudi_spark.incremental(uri, writes[-2].completion_time or "") == []  # the clustering alone
    changed = hudi_spark.incremental(uri, writes[0].completion_time or "")
    assert {row["_hoodie_commit_time"] for row in changed} == {write.requested_time for write in writes[1:3]}
    if is_nightly():  # as long as all the rest
        hudi_upserts(hudi, made, [*upserts([0, 7, 40], 5, "hudi"), *upserts([3], 1, "late")])

    table = HudiTable.open(made.table.storage, made.table.config)
    config = clustering("id", select="all")
    planned = plan_of(plan(table, config), config)
    requested = Instant(table.clock.next_begin(), CLUSTERING, State.REQUESTED)
    table.storage.create(requested.path, planned.to_bytes(table.storage.uri))
    made.check()
    options = ",".join(f"{name}={value}" for name, value in OPTIONS.items())
    call = f"CALL run_clustering(path => '{uri}', op => 'execute', order => 'id', options => '{options}')"
    hudi.sql(call).collect()
    table = HudiTable.open(made.table.storage, made.table.config)
    (done,) = [write for write in table.timeline.completed() if write.requested_time == requested.requested_time]
    assert done.action == "replacecommit"
    replaced = table.timeline.commit_metadata(done).replaced
    assert replaced is not None
    assert {(path, name) for path, names in replaced.items() for name in names} == planned.planned
    agree(made, hudi_spark)
