"""Hudi Spark 1.2.0 and hudi-rs on a table that we put back, and we on one that Hudi has put back; both go on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudilake.format.timeline.instant import RESTORE, State
from hudilake.services import restore as module
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.restore import finish_pending_restores, restore
from hudilake.services.savepoint import create_savepoint
from tests.hudilake.lake import SCHEMA, upserts
from tests.hudilake.services.cleaning import test_spark_judge as cleaning_judge
from tests.hudilake.services.cleaning.aged import INDEX
from tests.hudilake.services.cleaning.test_spark_judge import ARCHIVES, agree, hudi_write
from tests.hudilake.services.restore.past import Past
from tests.hypothesis_profile import usually
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same
from tests.judges.hudi_spark import HudiSpark

pytestmark = [pytest.mark.spark, pytest.mark.judge]

hudi = cleaning_judge.hudi
indexed = pytest.mark.parametrize("indexed", usually([True], [False, True]))


def lived(path: Path, indexed: bool) -> Past:
    """Some rounds; two buckets and partitions."""
    past = Past(path, indexed, buckets=2)
    past.live(2)
    past.write(upserts(range(3), 109, "other day", day="d2"))
    past.order = 120
    past.live(2)
    return past


@pytest.mark.full
@indexed
def test_both_go_on_after_our_restore(tmp_path: Path, hudi: SparkSession, hudi_spark: HudiSpark, indexed: bool) -> None:
    """To a commit and to a compaction; snapshots, increments and time travel before and after further writes."""
    past, uri = lived(tmp_path, indexed), str(tmp_path)
    for wanted in (past.moments[-2][0], past.moments[5][0], past.moments[3][0]):
        past.restore(wanted)
        agree(past, hudi_spark)
        assert_same("all of Spark's", hudi_spark.incremental(uri, "000"), past.model.rows(), SCHEMA.names)
        assert_same("hudi-rs increment", hudi_rs.incremental(uri, "000"), past.model.rows(), SCHEMA.names)
        for instant, rows in past.moments[-2:]:
            assert_same(f"Spark as of {instant}", hudi_spark.as_of(uri, instant), rows, SCHEMA.names)
            assert_same(f"hudi-rs as of {instant}", hudi_rs.as_of(uri, instant), rows, SCHEMA.names)
    for order in range(501, 505):
        hudi_write(hudi, past, upserts([1, 60], order, "hudi"), **ARCHIVES)
    agree(past, hudi_spark)
    hudi.conf.set("hoodie.compact.inline.max.delta.commits", "1")
    hudi.sql(f"CALL run_compaction(op => 'scheduleAndExecute', path => '{uri}')").collect()
    hudi.conf.unset("hoodie.compact.inline.max.delta.commits")
    agree(past, hudi_spark)
    past.order = 600
    past.reopen()
    past.live(2)
    agree(past, hudi_spark)
    clean(past.table, CleaningConfig(commits=3))
    past.restore(past.moments[-2][0])
    agree(past, hudi_spark)


@pytest.mark.full
@indexed
def test_we_go_on_after_hudis_restore(tmp_path: Path, hudi: SparkSession, hudi_spark: HudiSpark, indexed: bool) -> None:
    past = lived(tmp_path, indexed)
    wanted = past.moments[5][0]
    create_savepoint(past.table, wanted, "we")
    hudi_restores(past, hudi, wanted)
    past.forget_after(wanted)
    past.reopen()
    assert len(past.table.timeline.completed_actions({RESTORE})) == 1
    past.table.keep_metadata(INDEX if indexed else None)
    agree(past, hudi_spark)
    past.order = 300
    past.live(2)
    agree(past, hudi_spark)
    hudi_write(hudi, past, upserts([1, 60], 501, "hudi"))
    agree(past, hudi_spark)
    past.reopen()
    past.restore(past.moments[-2][0])
    agree(past, hudi_spark)


def hudi_restores(past: Past, session: SparkSession, instant: str) -> None:
    """By its procedure. An index whose base files are all younger it wants to be deleted first, so it is."""
    past.reopen().keep_metadata(None)
    enabled = session.conf.get("hoodie.metadata.enable") or ""
    session.conf.set("hoodie.metadata.enable", "false")
    session.sql(f"CALL rollback_to_savepoint(path => '{past.path}', instant_time => '{instant}')").collect()
    session.conf.set("hoodie.metadata.enable", enabled)


@pytest.mark.full
@indexed
def test_hudi_waits_for_our_restore_and_finishes_it(
    tmp_path: Path, hudi: SparkSession, hudi_spark: HudiSpark, indexed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dead between two instants: Hudi's writer refuses, its restore to the same savepoint goes on with our plan; so do
    we."""
    past = lived(tmp_path, indexed)
    wanted = past.moments[5][0]
    create_savepoint(past.table, wanted, "we")
    undo, left = module._undo, [2]

    def dies(*arguments: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        undo(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(module, "_undo", dies)
        with pytest.raises(KeyboardInterrupt):
            restore(past.table, wanted, INDEX if indexed else None)
    with pytest.raises(Exception, match="pending restore"):
        hudi_write(hudi, past.copied(tmp_path.with_name(f"{tmp_path.name}-written")), upserts([1], 900))
    theirs = past.copied(tmp_path.with_name(f"{tmp_path.name}-theirs"))
    hudi_restores(theirs, hudi, wanted)
    for both in (past, theirs):
        both.forget_after(wanted)
        finish_pending_restores(both.reopen(), INDEX if indexed else None)
        assert both.reopen().timeline.pending() == []
        agree(both, hudi_spark)
        both.table.keep_metadata(INDEX if indexed else None)
        both.order = 700
        both.live(1)
        agree(both, hudi_spark)


@pytest.mark.full
@pytest.mark.parametrize("indexed", [False])
def test_we_finish_hudis_restore(tmp_path: Path, hudi: SparkSession, hudi_spark: HudiSpark, indexed: bool) -> None:
    """Of which the end, and the rollback of one instant, did not come to pass."""
    past = lived(tmp_path, indexed)
    wanted, last = past.moments[5][0], past.moments[6][0]
    create_savepoint(past.table, wanted, "we")
    before = past.copied(tmp_path.with_name(f"{tmp_path.name}-before"))
    hudi_restores(past, hudi, wanted)
    (restored,) = past.reopen().timeline.completed_actions({RESTORE})
    timeline = tmp_path / ".hoodie/timeline"
    (tmp_path / restored.path).unlink()
    (timeline / f".{restored.file_name}.crc").unlink(missing_ok=True)
    for file in before.path.rglob(f"*{last}*"):
        if file.is_file():
            shutil.copy(file, tmp_path / file.relative_to(before.path))
    past.forget_after(wanted)
    past.recover()
    (done,) = past.table.timeline.completed_actions({RESTORE})
    assert (done.requested_time, done.state) == (restored.requested_time, State.COMPLETED)
    agree(past, hudi_spark)
    past.order = 400
    past.live(1)
    agree(past, hudi_spark)
