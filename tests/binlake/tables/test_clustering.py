"""Clusterings by a running stream: between its batches and beside them. No change is ever lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from binlake.tables.services.policy import clustering_config
from hudilake.format.timeline.instant import CLUSTERING, Instant, State
from hudilake.policies import FileSizePolicy
from hudilake.services.clustering.plan import plan, plan_of
from hudilake.services.clustering.scheduling import schedule
from hudilake.services.compaction import CompactionConfig
from hudilake.services.compaction import run as compact
from hudilake.services.compaction import schedule as plan_compaction
from hudilake.table.table import HudiTable
from tests.binlake.tables.clustered import KEYED, WAIT_S, ClusteredLake, Gate, drawn
from tests.binlake.tables.clusterer import Clusterer


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", drawn("append", "cow_bloom", "mor_record_index"))
def test_inline(tmp_path: Path, kind: str) -> None:
    here = ClusteredLake(tmp_path, kind, "inline")
    for _ in range(7):
        here.batch()
    assert len(here.clusterings()) == 2
    assert here.pending() == []


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", drawn("append", "cow_in_memory"))
def test_commits_go_on_beside_a_clustering(tmp_path: Path, kind: str) -> None:
    """New rows go to other file groups than the planned ones, so the clustering is not in vain."""
    here = ClusteredLake(tmp_path, kind, "async", Gate(is_open=False))
    for _ in range(3):
        here.batch(changes=0)
    assert here.gate.entered.wait(WAIT_S)
    (pending,) = here.pending()
    planned = {region: here.groups(region) for region in ("eu", "us")}
    for _ in range(2):
        here.batch(changes=0)
    here.settle()
    here.batch(changes=0)
    assert [done.requested_time for done in here.clusterings()] == [pending.requested_time]
    for region, groups in planned.items():
        assert not set(groups) & set(here.groups(region))
    for _ in range(3):
        here.batch()


@pytest.mark.parametrize("kind", drawn("mor_external", among=KEYED))
def test_a_clustering_gives_way_to_changes(tmp_path: Path, kind: str) -> None:
    here = ClusteredLake(tmp_path, kind, "async", Gate(is_open=False))
    for _ in range(3):
        here.batch(changes=0)
    assert here.gate.entered.wait(WAIT_S)
    changed = next(key for key, (_, region) in here.rows.items() if region == "eu")
    before = {region: here.groups(region) for region in ("eu", "us")}
    here.put("u", changed, "changed", "eu")
    here.run()
    here.check()
    here.settle()
    here.put("u", changed, "changed again", "eu")
    here.run()
    here.check()
    assert len(here.clusterings()) == 1
    assert here.groups("eu") == before["eu"]  # its unit gave way
    assert not set(here.groups("us")) & set(before["us"])


@pytest.mark.parametrize("kind", drawn("mor_record_index", among=KEYED))
def test_a_plan_of_hudi_keeps_changes_away_from_its_file_groups(tmp_path: Path, kind: str) -> None:
    """It does not give way. New rows go elsewhere meanwhile, and we can execute it."""
    here = ClusteredLake(tmp_path, kind, "process")
    for _ in range(2):
        here.batch(changes=0)
    clusterer = Clusterer(here)
    table = clusterer.table.hudi
    config = clustering_config(clusterer.table.rules)
    as_hudi = replace(plan_of(plan(table, config), config), extra={})
    requested = Instant(table.clock.next(), CLUSTERING, State.REQUESTED)
    table.storage.create(requested.path, as_hudi.to_bytes(table.storage.uri))
    here.batch(changes=0)
    key, (_, region) = next(iter(here.rows.items()))
    here.put("u", key, "waits", region)
    assert "a pending clustering of Hudi will replace" in (here.run().error or "")
    clusterer.open()  # which leaves the plan of another writer as it is
    clusterer.begin()
    done = clusterer.end()
    assert done is not None
    assert (done.instant, done.completed) == (requested.requested_time, True)
    here.go_on()


@pytest.mark.parametrize("kind", drawn("cow_bloom", among=KEYED))
def test_an_execution_that_dies_is_rolled_back(tmp_path: Path, kind: str) -> None:
    here = ClusteredLake(tmp_path, kind, "process")
    here.batch()
    clusterer = Clusterer(here)
    assert clusterer.plan() is not None
    clusterer.begin()
    assert [one.state for one in here.pending()] == [State.INFLIGHT]
    here.start()
    assert len(here.pending()) == 1  # its process lives
    clusterer.open()
    assert here.pending() == []
    here.go_on()


def test_open_file_groups_of_an_append_table_are_left_to_a_commit_under_way(tmp_path: Path) -> None:
    """Tasks write large batches, and their commit does not say to which file groups."""
    here = ClusteredLake(tmp_path, "append", "process")
    for _ in range(2):
        here.batch()
    table = Clusterer(here).table
    config = replace(clustering_config(table.rules), sizes=FileSizePolicy(target_bytes=1 << 20, small_bytes=1 << 19))
    stream = HudiTable.open(table.storage)
    instant = stream.begin()
    assert schedule(table.hudi, config) is None
    stream.abort(instant)
    assert schedule(table.hudi, config) is not None


def test_compaction_leaves_planned_file_groups_out_unless_all_must_be_compacted(tmp_path: Path) -> None:
    """A statement that changes a type compacts all log files: the clustering gives way."""
    here = ClusteredLake(tmp_path, "mor_record_index", "process")
    for _ in range(2):
        here.batch(changes=4)
    clusterer, config = Clusterer(here), CompactionConfig(after_commits=1, tombstone_retention_hours=0)
    assert clusterer.plan() is not None
    table = here.table()
    assert any(piece.log_files for piece in table.file_slices())
    assert plan_compaction(table, config) is None
    assert len(compact(table, config, here.gate, now=True)) == 1
    clusterer.begin()
    done = clusterer.end()
    assert done is None or done.gave_way == 1  # of two units
    assert here.pending() == []
    here.go_on()
    here.batch()
