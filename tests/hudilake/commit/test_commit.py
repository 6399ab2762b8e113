"""The last look before a commit completes, at what another writer did since the timeline was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.clock import InstantClock
from hudilake.commit.commit import CommitPlan, apply_commit
from hudilake.commit.rollback import roll_back
from hudilake.errors import LostOwnershipError
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.format.timeline.instant import DELTA_COMMIT, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage import open_storage
from tests.hudilake import lake
from tests.hudilake.table.test_several_writers import writer

INFLIGHT = Instant("20260101000000000", DELTA_COMMIT, State.INFLIGHT)
PLAN = CommitPlan(INFLIGHT, "20260101000000001", CommitMetadata((), {}))


def test_an_instant_that_was_rolled_back_meanwhile_is_not_completed(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path), {"fsync": "false"})
    with pytest.raises(LostOwnershipError, match="rolled this instant back"):
        apply_commit(storage, PLAN)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_an_instant_that_was_completed_meanwhile_is_not_completed_again(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path), {"fsync": "false"})
    storage.create(INFLIGHT.path, b"")
    other = INFLIGHT.in_state(State.COMPLETED, "20260101000000009")
    storage.create(other.path, b"theirs")
    with pytest.raises(LostOwnershipError, match="completed this instant"):
        apply_commit(storage, PLAN)
    assert storage.read(other.path) == b"theirs"


def test_control_an_inflight_instant_is_completed(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path), {"fsync": "false"})
    storage.create(INFLIGHT.in_state(State.REQUESTED).path, b"")
    storage.create(INFLIGHT.path, b"")
    assert storage.stat(apply_commit(storage, PLAN).path) is not None


def test_a_commit_that_completed_meanwhile_is_not_rolled_back(tmp_path: Path) -> None:
    """And no rollback is planned: the next writer would carry it out."""
    storage = open_storage(str(tmp_path), {"fsync": "false"})
    storage.create(INFLIGHT.path, b"")
    storage.create(INFLIGHT.in_state(State.COMPLETED, "20260101000000009").path, b"theirs")
    with pytest.raises(LostOwnershipError, match="completed this instant"):
        roll_back(storage, Timeline(storage), InstantClock(), INFLIGHT)
    assert [p.name for p in tmp_path.rglob("*rollback*")] == []


def test_a_writer_whose_heartbeat_is_lost_does_not_commit(tmp_path: Path) -> None:
    """Though its instant is still there: another writer may be about to roll it back."""
    lake.new_table(tmp_path)
    table = writer(tmp_path, "a")
    instant = table.begin()
    results = lake.write(table, instant, lake.upserts(range(8), 1))
    table.ownership.end(instant)
    with pytest.raises(LostOwnershipError, match="heartbeat is lost"):
        table.commit(instant, results)
    assert [p.name for p in tmp_path.rglob("*.deltacommit")] == []
