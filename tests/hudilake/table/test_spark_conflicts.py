"""Commits side by side, in the eyes of Hudi Spark: its own writer beside ours, and commits that end out of turn."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hudilake.commit.commit import OvertakenError
from hudilake.commit.intent import GroupIntent, Intent
from hudilake.errors import LostOwnershipError
from hudilake.format.definition.bucket import bucket_ids
from hudilake.locking.choose import LockConfig
from hudilake.locking.ownership import Locking
from hudilake.metadata.config import MetadataConfig
from hudilake.services.fsck import fsck
from hudilake.table.table import HudiTable
from tests.hudilake import lake
from tests.hudilake.lake import SCHEMA, Change, Model, upserts
from tests.hudilake.table.test_spark_judge import spark_write
from tests.judges.agreement import assert_judges_agree, assert_same
from tests.judges.hudi_spark import HudiSpark

pytestmark = [pytest.mark.spark, pytest.mark.judge]

#: As docs/operations.md has them.
OCC = {
    "hoodie__write__concurrency__mode": "optimistic_concurrency_control",
    "hoodie__clean__failed__writes__policy": "LAZY",
    "hoodie__write__lock__provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}
#: Ids of d1 by bucket, of two.
ONE, OTHER = ([i for i in range(20) if bucket_ids(pa.array([str(i)]), ("id",), 2)[0] == b] for b in (0, 1))


def opened(path: Path, name: str, metadata: MetadataConfig | None = None) -> HudiTable:
    """As a process of its own has it."""
    locking = Locking(LockConfig(), name)
    return HudiTable.open(lake.storage_at(path), metadata=metadata, locking=locking, conflicts="row")


def begin(table: HudiTable, changes: list[Change]) -> str:
    """With what it will write."""
    table.refresh()
    groups = lake.groups(table, changes)
    return table.begin(Intent.of_groups(GroupIntent(g.partition_path, g.file_id) for g in groups))


def healthy(path: Path, model: Model, hudi_spark: HudiSpark) -> None:
    """For every reader and for fsck."""
    assert_judges_agree(path, model.rows(), spark=hudi_spark, columns=SCHEMA.names)
    assert [f for f in fsck(lake.storage_at(path)).findings if f.severity != "info"] == []


@pytest.mark.full
def test_hudis_own_writer_commits_beside_ours(tmp_path: Path, spark: SparkSession, hudi_spark: HudiSpark) -> None:
    """Another file group never stands in the way; the same one does, and is named."""
    lake.new_table(tmp_path)
    table, model = opened(tmp_path, "ours"), Model()
    first, theirs = upserts(ONE[:4], 100), upserts(OTHER[:4], 110, "hudi")
    instant = begin(table, first)
    results = lake.write(table, instant, first)
    spark_write(spark, tmp_path, theirs, **OCC)
    table.commit(instant, results)
    model.apply(theirs)
    model.apply(first)
    healthy(tmp_path, model, hudi_spark)
    mine, met = upserts(OTHER[:2], 120, "late"), upserts(OTHER[1:3], 130, "met")
    instant = begin(table, mine)
    results = lake.write(table, instant, mine)
    spark_write(spark, tmp_path, met, **OCC)
    with pytest.raises(OvertakenError, match="both write file group 00000001"):
        table.commit(instant, results)
    table.abort(instant)
    model.apply(met)
    healthy(tmp_path, model, hudi_spark)


def test_hudi_rolls_an_announced_instant_back(tmp_path: Path, spark: SparkSession, hudi_spark: HudiSpark) -> None:
    """A Hudi writer that believes to be alone takes every pending instant for dead."""
    lake.new_table(tmp_path)
    table, model = opened(tmp_path, "ours"), Model()
    lake.commit(table, upserts(ONE[:4], 90))
    model.apply(upserts(ONE[:4], 90))
    mine, theirs = upserts(ONE[:2], 100), upserts(OTHER[:4], 110, "hudi")
    instant = begin(table, mine)
    results = lake.write(table, instant, mine)
    spark_write(spark, tmp_path, theirs)
    with pytest.raises(LostOwnershipError):
        table.commit(instant, results)
    model.apply(theirs)
    assert not any(instant in name for name in lake.data_files(tmp_path))
    healthy(tmp_path, model, hudi_spark)


@pytest.mark.full
def test_commits_that_end_out_of_turn(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    """The ranges of their partition hold the rows of both, and incremental reads go by completion."""
    indexed = MetadataConfig()
    lake.new_table(tmp_path, indexed)
    early, late, model = opened(tmp_path, "early", indexed), opened(tmp_path, "late", indexed), Model()
    start = upserts(ONE[:2] + OTHER[:2], 100, "m")
    lake.commit(early, start)
    first, second = upserts(ONE[:3], 900, "z"), upserts(OTHER[:3], 500, "a")
    one, two = begin(early, first), begin(late, second)
    written = lake.write(early, one, first)
    between = late.commit(two, lake.write(late, two, second))
    last = early.commit(one, written)
    for changes in (start, second, first):
        model.apply(changes)
    healthy(tmp_path, model, hudi_spark)
    skipping = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
    frame = hudi_spark.frame(str(tmp_path), skipping)
    assert frame.filter("name >= 'z' and _binlake_order > 800").count() == 3
    assert frame.filter("name < 'b' and _binlake_order < 600").count() == 3
    newest = [lake.row_of(change) for change in first]
    assert_same("after the one between", hudi_spark.incremental(str(tmp_path), between), newest, SCHEMA.names)
    assert hudi_spark.incremental(str(tmp_path), last) == []
