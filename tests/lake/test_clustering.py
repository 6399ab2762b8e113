"""Clusterings by a running stream: between its batches and beside them. No change is ever lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake.clustered import KEYED, WAIT_S, ClusteredLake, Gate, drawn


@pytest.mark.parametrize("kind", drawn("append", "cow_bloom", "mor_record_index"))
def test_inline(tmp_path: Path, kind: str) -> None:
    here = ClusteredLake(tmp_path, kind, "inline")
    for _ in range(7):
        here.batch()
    assert len(here.clusterings()) == 2
    assert here.pending() == []


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
