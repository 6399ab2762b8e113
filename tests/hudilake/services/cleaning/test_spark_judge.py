"""Hudi Spark 1.2.0 and hudi-rs on a table that we clean, savepoint and archive; Hudi Spark cleans and archives after us
and we after it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from hudilake.commit import clean as clean_action
from hudilake.commit.savepoint_record import savepoints
from hudilake.errors import UnsupportedError
from hudilake.format.timeline.instant import CLEAN, SAVEPOINT, Instant, State
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean, finish_pending, plan_clean
from hudilake.services.fsck import fsck
from hudilake.services.savepoint import create_savepoint, delete_savepoint
from hudilake.table.table import HudiTable
from tests.hudilake.lake import SCHEMA, Change, row_of, storage_at, upserts
from tests.hudilake.services.cleaning.aged import Aged
from tests.hypothesis_profile import scaled, usually
from tests.judges import hudi_rs
from tests.judges.agreement import assert_judges_agree, assert_same
from tests.judges.hudi_spark import HudiSpark
from tests.spark_session import configured

pytestmark = [pytest.mark.spark, pytest.mark.judge]

CLEANING = CleaningConfig(commits=3)
BOUNDS = ArchivalConfig(min_commits=5, max_commits=6)
INDEX = ("hoodie.metadata.index.bloom.filter.enable", "hoodie.metadata.index.column.stats.enable")
indexed = pytest.mark.parametrize("indexed", usually([True], [False, True]))


@pytest.fixture
def hudi(spark: SparkSession, indexed: bool) -> Iterator[SparkSession]:
    """A session whose Hudi writers and procedures keep the metadata table as the table has it."""
    flag = str(indexed).lower()
    conf = {"hoodie.metadata.enable": flag, **dict.fromkeys(INDEX, flag)}
    conf["hoodie.datasource.write.recordkey.field"] = "id"
    with configured(spark, conf) as session:
        yield session


def agree(aged: Aged, spark: HudiSpark) -> None:
    """All three readers, and what fsck has to say."""
    assert_judges_agree(aged.path, aged.model.rows(), spark=spark, columns=SCHEMA.names)
    found = [f"{f.what}: {f.path}" for f in fsck(storage_at(aged.path)).findings if f.severity == "error"]
    assert found == [], found


def hudi_write(session: SparkSession, aged: Aged, changes: Iterable[Change], **options: str) -> None:
    """An upsert by Hudi's writer, with its own services as asked for (dots written as ``__``)."""
    changes = list(changes)
    aged.model.apply(changes)
    fields = "id long, name string, qty int, price decimal(10,2), at timestamp, day string, _binlake_order long"
    frame = session.createDataFrame([tuple(row_of(c).values()) for c in changes], fields)
    given = {
        "hoodie.table.name": "t1",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.embed.timeline.server": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        **{name: session.conf.get(name) or "" for name in ("hoodie.metadata.enable", *INDEX)},
        **{name.replace("__", "."): value for name, value in options.items()},
    }
    frame.write.format("hudi").options(**given).mode("append").save(str(aged.path))


CLEANS = {"hoodie__clean__automatic": "true", "hoodie__clean__commits__retained": "3"}
ARCHIVES = {
    **CLEANS,
    "hoodie__archive__automatic": "true",
    "hoodie__keep__min__commits": "5",
    "hoodie__keep__max__commits": "6",
}


@pytest.mark.full
@indexed
def test_all_reads_of_a_cleaned_and_archived_table(tmp_path: Path, hudi_spark: HudiSpark, indexed: bool) -> None:
    """Snapshot, time travel within the retention, increments: after the clean, and after the archival."""
    aged, uri = Aged(tmp_path, indexed), str(tmp_path)
    aged.write(upserts(range(3), 50, "cold", day="d0"))
    aged.live(5)
    done = {i.requested_time: i.completion_time or "" for i in aged.table.timeline.completed()}
    agree(aged, hudi_spark)

    def reads() -> None:
        agree(aged, hudi_spark)
        for instant, rows in aged.moments[-3:]:
            assert_same(f"Spark as of {instant}", hudi_spark.as_of(uri, instant), rows, SCHEMA.names)
            assert_same(f"hudi-rs as of {instant}", hudi_rs.as_of(uri, instant), rows, SCHEMA.names)
            assert aged.as_of(instant) == rows
        assert_same("all of Spark's", hudi_spark.incremental(uri, "000"), aged.model.rows(), SCHEMA.names)
        since = done[aged.moments[-4][0]]
        news = hudi_spark.incremental(uri, since)
        assert {r["_hoodie_commit_time"] for r in news} <= {instant for instant, _ in aged.moments[-3:]}
        assert news
        assert_same("hudi-rs increment", hudi_rs.incremental(uri, since), news, SCHEMA.names)

    assert clean(aged.table, CLEANING) is not None
    reads()
    assert archive(aged.table, BOUNDS, CLEANING) > 0
    reads()
    with pytest.raises(UnsupportedError, match="cleaned"):
        aged.as_of(aged.moments[3][0])
    for _ in range(2):
        aged.live(2)
        clean(aged.table, CLEANING)
        archive(aged.table, BOUNDS, CLEANING)
    agree(aged, hudi_spark)


@pytest.mark.full
@indexed
def test_taking_turns_with_hudi(tmp_path: Path, hudi: SparkSession, hudi_spark: HudiSpark, indexed: bool) -> None:
    """Hudi writes, cleans and archives after our cleans and archivals, and we after its own, three times."""
    aged = Aged(tmp_path, indexed)
    order = 500
    for _ in range(scaled(3, least=2)):
        aged.live(3)
        assert clean(aged.table, CLEANING) is not None
        archive(aged.table, BOUNDS, CLEANING)
        agree(aged, hudi_spark)
        for _ in range(3):
            order += 1
            hudi_write(hudi, aged, upserts([1, 60], order, "hudi"), **ARCHIVES)
        agree(aged, hudi_spark)
        aged.order = order = order + 10
        aged.reopen()
        aged.live(1)
        agree(aged, hudi_spark)
    cleans = aged.table.timeline.completed_actions({CLEAN})
    assert cleans
    assert aged.table.timeline.history().files
    hudi.sql(f"CREATE TABLE aged_{indexed} USING hudi LOCATION '{tmp_path}'")
    times = "start_ts => '20200101000000000', end_ts => '20991231000000000'"
    listed = hudi.sql(f"CALL show_archived_commits(table => 'aged_{indexed}', limit => 1000, {times})").collect()
    hudi.sql(f"DROP TABLE aged_{indexed}")
    old = {r["commit_time"] for r in listed}
    assert len(old) > 5
    assert old <= {c.requested_time for c in aged.table.timeline.history().commits()}


@pytest.mark.full
@indexed
def test_hudi_finishes_our_clean_and_we_its_own(
    tmp_path: Path, hudi: SparkSession, hudi_spark: HudiSpark, indexed: bool
) -> None:
    aged = Aged(tmp_path, indexed)
    aged.live(4)
    plan = plan_clean(aged.table, CLEANING)
    assert plan is not None
    requested = clean_action.request(aged.table.storage, aged.table.timeline, aged.table.clock, plan)
    agree(aged, hudi_spark)
    hudi_write(hudi, aged, upserts([60], 800, "hudi"), **CLEANS)
    agree(aged, hudi_spark)
    table = aged.reopen()
    assert requested.requested_time in {i.requested_time for i in table.timeline.completed_actions({CLEAN})}
    # Hudi's own, its completed file lost: we do it again.
    (last,) = table.timeline.completed_actions({CLEAN})[-1:]
    table.storage.delete(last.path)
    (tmp_path / last.path).with_name(f".{last.file_name}.crc").unlink(missing_ok=True)
    table = aged.reopen()
    assert len(clean_action.pending_cleans(table.timeline)) == 1
    assert [i.requested_time for i in finish_pending(table)] == [last.requested_time]
    agree(aged, hudi_spark)


@pytest.mark.full
@indexed
def test_savepoints_of_both(tmp_path: Path, hudi: SparkSession, hudi_spark: HudiSpark, indexed: bool) -> None:
    """Hudi's cleaner and archival honour ours, and ours those of Hudi; each deletes the other's."""
    aged = Aged(tmp_path, indexed)
    aged.live(1)
    ours, rows = aged.moments[-1]
    create_savepoint(aged.table, ours, "we")
    listed = hudi.sql(f"CALL show_savepoints(path => '{tmp_path}')").collect()
    assert [r["savepoint_time"] for r in listed] == [ours]
    aged.live(3)
    for order in range(801, 804):
        hudi_write(hudi, aged, upserts([60], order, "hudi"), **ARCHIVES)
    aged.reopen()
    assert aged.table.timeline.completed_actions({CLEAN})
    assert aged.as_of(ours) == rows
    with pytest.raises(IllegalArgumentException, match="Cleaner cleaned up"):  # Hudi's readers do not look at them
        hudi_spark.as_of(str(tmp_path), ours)
    aged.order = 900
    aged.live(1)
    theirs, later = aged.moments[-1]
    hudi.sql(f"CALL create_savepoint(path => '{tmp_path}', commit_time => '{theirs}')").collect()
    aged.reopen()
    assert [s.instant for s in savepoints(aged.table.storage, aged.table.timeline)] == [ours, theirs]
    aged.live(3)
    assert clean(aged.table, CLEANING) is not None
    archive(aged.table, BOUNDS, CLEANING)
    assert (aged.as_of(ours), aged.as_of(theirs)) == (rows, later)
    restored = tmp_path.with_name(f"{tmp_path.name}-restored")
    shutil.copytree(tmp_path, restored)
    # With an index Hudi asks for it to be deleted first, once no base file of it is older than the savepoint.
    HudiTable.open(storage_at(restored)).keep_metadata(None)
    hudi.conf.set("hoodie.metadata.enable", "false")
    hudi.sql(f"CALL rollback_to_savepoint(path => '{restored}', instant_time => '{theirs}')").collect()
    hudi.conf.set("hoodie.metadata.enable", str(indexed).lower())
    by_listing = hudi_spark.with_options(hoodie__metadata__enable="false")
    assert_same("Hudi's restore", by_listing.snapshot(str(restored)), later, SCHEMA.names)
    hudi.sql(f"CALL delete_savepoint(path => '{tmp_path}', instant_time => '{ours}')").collect()
    died = Instant(aged.moments[-1][0], SAVEPOINT, State.INFLIGHT)
    aged.table.storage.create(died.path, b"")
    assert aged.reopen().timeline.pending() == [died]
    agree(aged, hudi_spark)
    aged.table.rollback_pending()
    assert aged.reopen().timeline.pending() == []
    assert delete_savepoint(aged.table, theirs)
    assert savepoints(aged.table.storage, aged.reopen().timeline) == []
    assert clean(aged.table, CLEANING) is not None
    assert archive(aged.table, BOUNDS, CLEANING) > 0
    agree(aged, hudi_spark)
