"""Writers that share a table: whose pending instants are whose, and what a commit does that another has overtaken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hudilake import clock
from hudilake.clock import now_ms
from hudilake.commit.commit import OvertakenError
from hudilake.commit.preconditions import ForeignActionError
from hudilake.errors import LostOwnershipError
from hudilake.format.timeline.instant import CLUSTERING, COMPACTION, REPLACE_COMMIT, Instant, State
from hudilake.locking.base import LostLockError
from hudilake.locking.choose import LockConfig
from hudilake.locking.heartbeat import HEARTBEAT_PATH
from hudilake.locking.ownership import Locking
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.records.layout import METADATA_PATH
from hudilake.services.compaction import CompactionConfig, abandoned, due, resume, run, schedule
from hudilake.services.fsck import fsck
from hudilake.storage import StorageError
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable
from tests.hudilake import lake
from tests.hudilake.services.compaction.steps import serially

OFTEN = CompactionConfig(after_commits=1, tombstone_retention_hours=0)


def writer(path: Path, name: str, *, one_run: bool = False, timeout_s: float = 600.0) -> HudiTable:
    locking = Locking(LockConfig(heartbeat_timeout_s=timeout_s), name, one_run)
    return HudiTable.open(lake.storage_at(path), locking=locking)


def beating(path: Path) -> set[str]:
    folder = path / HEARTBEAT_PATH
    return {file.name for file in folder.iterdir()} if folder.exists() else set()


@pytest.fixture(params=[None, MetadataConfig()], ids=["listed", "indexed"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    lake.new_table(tmp_path, request.param)
    return tmp_path


def healthy(path: Path, model: lake.Model) -> None:
    lake.check(path, model)
    assert [f for f in fsck(lake.storage_at(path)).findings if f.severity != "info"] == []
    assert beating(path) == set()
    assert not (path / ".hoodie/lock").exists()


def test_other_writers_do_not_wait_until_markers_are_deleted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks for those of a completed instant."""
    a, held = writer(path, "a"), list[bool]()
    delete_tree = LocalStorage.delete_tree

    def deleted(storage: LocalStorage, prefix: str) -> None:
        if prefix.startswith(".hoodie/.temp"):
            held.append((path / ".hoodie/lock").exists())
        delete_tree(storage, prefix)

    monkeypatch.setattr(LocalStorage, "delete_tree", deleted)
    lake.commit(a, lake.upserts(range(8), 1))
    assert held == [False]
    assert not [file for file in (path / ".hoodie/.temp").rglob("*") if file.is_file()]


def test_the_look_of_a_refresh_serves_one_begin(tmp_path: Path) -> None:
    """The next begin looks by itself, and sees that another writer has dropped and made the metadata table."""
    lake.new_table(tmp_path, MetadataConfig())
    a, b, model = writer(tmp_path, "a"), writer(tmp_path, "b"), lake.Model()
    a.refresh(begins=True)
    a.state.check_config()  # as begin does
    for order, metadata in enumerate((None, MetadataConfig()), start=1):
        assert b.keep_metadata(metadata)
        changes = lake.upserts(range(8), order)
        lake.commit(a, changes)
        model.apply(changes)
        healthy(tmp_path, model)
        assert bool(a.config.metadata_partitions) == any((tmp_path / METADATA_PATH).rglob("*.hfile"))
        assert bool(a.config.metadata_partitions) == (metadata is not None)


def test_a_living_writers_instant_is_left_alone(path: Path) -> None:
    a, b, model = writer(path, "a"), writer(path, "b"), lake.Model()
    instant = a.begin()
    results = lake.write(a, instant, lake.upserts(range(8), 1))
    assert b.rollback_pending() == []
    assert beating(path) == {instant}
    a.commit(instant, results)
    model.apply(lake.upserts(range(8), 1))
    healthy(path, model)


def test_a_silent_writers_instant_is_rolled_back(path: Path) -> None:
    a, b = writer(path, "a"), writer(path, "b", timeout_s=60)
    instant = a.begin()
    results = lake.write(a, instant, lake.upserts(range(8), 1))
    assert b.rollback_pending() == []
    os.utime(path / HEARTBEAT_PATH / instant, ((now_ms() - 61_000) / 1000,) * 2)
    assert b.rollback_pending() == [instant]
    with pytest.raises(LostOwnershipError):
        a.commit(instant, results)
    healthy(path, lake.Model())


def test_the_next_run_takes_what_the_last_one_left(path: Path) -> None:
    first = writer(path, "stream shop", one_run=True)
    instant = first.begin()
    results = lake.write(first, instant, lake.upserts(range(8), 1))
    stranger = writer(path, "stream shop")
    assert stranger.rollback_pending() == []
    following, model = writer(path, "stream shop", one_run=True), lake.Model()
    assert following.rollback_pending() == [instant]
    lake.commit(following, lake.upserts(range(4), 2))
    model.apply(lake.upserts(range(4), 2))
    with pytest.raises(LostOwnershipError):
        first.commit(instant, results)
    healthy(path, model)


def test_files_of_an_instant_that_was_taken_do_not_stay(path: Path) -> None:
    first = writer(path, "a", one_run=True)
    instant = first.begin()
    writer(path, "a", one_run=True).rollback_pending()
    results = lake.write(first, instant, lake.upserts(range(8), 1))  # tasks that were slow
    assert any(instant in name for name in lake.data_files(path))
    with pytest.raises(LostOwnershipError):
        first.commit(instant, results)
    assert not any(instant in name for name in lake.data_files(path))
    assert not (path / ".hoodie/.temp" / instant).exists()


def test_an_overtaken_commit_is_refused_and_done_again(path: Path) -> None:
    a, b, model = writer(path, "a"), writer(path, "b"), lake.Model()
    instant = a.begin()
    results = lake.write(a, instant, lake.upserts(range(8), 2))
    lake.commit(b, lake.upserts(range(4, 12), 1))
    model.apply(lake.upserts(range(4, 12), 1))
    with pytest.raises(OvertakenError):
        a.commit(instant, results)
    a.abort(instant)
    lake.commit(a, lake.upserts(range(8), 2))
    model.apply(lake.upserts(range(8), 2))
    healthy(path, model)


def test_an_instant_that_began_unseen_and_long_ago_is_taken_in(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks of a writer another one begins; the writer's own later instants do not hide it."""
    a, b, model, start = writer(path, "a"), writer(path, "b"), lake.Model(), now_ms()
    slow = b.begin()
    monkeypatch.setattr("hudilake.clock.now_ms", lambda: start + 60_000)
    lake.commit(a, lake.upserts(range(4), 1))
    model.apply(lake.upserts(range(4), 1))
    with pytest.raises(OvertakenError):
        b.commit(slow, lake.write(b, slow, lake.upserts(range(8), 2)))
    b.abort(slow)
    lake.commit(b, lake.upserts(range(8), 2))
    model.apply(lake.upserts(range(8), 2))
    other = b.begin()
    monkeypatch.setattr("hudilake.clock.now_ms", lambda: start + 120_000)
    early = a.begin()
    results = lake.write(a, early, lake.upserts(range(2), 3))
    b.commit(other, lake.write(b, other, lake.upserts(range(3), 3)))
    model.apply(lake.upserts(range(3), 3))
    with pytest.raises(OvertakenError):
        a.commit(early, results)
    a.abort(early)
    healthy(path, model)


def test_a_compaction_does_not_overtake(path: Path) -> None:
    a, b, model = writer(path, "a"), writer(path, "b"), lake.Model()
    lake.commit(a, lake.upserts(range(8), 1))
    requested = schedule(b, OFTEN)
    assert requested is not None
    a.refresh()  # else it may begin in the millisecond before, and the compaction waits for it
    instant = a.begin()
    results = lake.write(a, instant, lake.upserts(range(8), 2))
    assert resume(a, requested, OFTEN) is None  # b works on it
    b.ownership.end(requested.requested_time)
    assert len(run(b, OFTEN, serially)) == 1
    a.commit(instant, results)
    model.apply(lake.upserts(range(8), 2))
    healthy(path, model)


def test_a_compaction_has_one_worker(path: Path) -> None:
    a, b = writer(path, "a"), writer(path, "b")
    lake.commit(a, lake.upserts(range(8), 1))
    requested = schedule(a, OFTEN)
    assert requested is not None
    b.refresh()
    assert abandoned(b) == []
    assert due(b, OFTEN) is None
    assert run(b, OFTEN, serially) == []
    a.ownership.end(requested.requested_time)
    assert [i.requested_time for i in run(b, OFTEN, serially)] == [requested.requested_time]
    assert beating(path) == set()


def test_a_failing_compaction_is_for_the_next_one(path: Path) -> None:
    a, b = writer(path, "a"), writer(path, "b")
    lake.commit(a, lake.upserts(range(8), 1))

    def failing(*_: object) -> list[object]:
        raise OSError("a task fell over")

    with pytest.raises(OSError, match="fell over"):
        run(a, OFTEN, failing)  # type: ignore[arg-type]
    assert beating(path) == set()
    assert len(run(b, OFTEN, serially)) == 1


def test_nothing_completes_outside_of_the_lock(path: Path) -> None:
    table = writer(path, "a")
    name = Instant(table.clock.next(), "deltacommit", State.COMPLETED, table.clock.next()).path
    with pytest.raises(LostLockError):
        table.storage.create(name, b"x")
    with table.state.lock:
        table.storage.create(name, b"x")  # the control


def test_a_lock_that_was_lost_is_noticed_before_the_commit(path: Path) -> None:
    table = writer(path, "a")
    instant = table.begin()
    results = lake.write(table, instant, lake.upserts(range(8), 1))
    with table.exclusively():
        (path / ".hoodie/lock").unlink()  # as another writer does after its expiry
        with pytest.raises(LostLockError):
            table.commit(instant, results)
    assert lake.ours(path) == []


def test_a_replacecommit_and_a_commit_have_different_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock went back, so each time is the next one after those that its writer knows."""
    lake.new_table(tmp_path)
    monkeypatch.setattr(clock, "now_ms", lambda: 0)
    a, b, c = (writer(tmp_path, name) for name in "abc")
    replaced = b.begin_replace()
    b.commit(replaced, [], replaced={})
    instant = a.begin()
    assert instant != replaced
    a.abort(instant)  # nobody has completed that time
    assert c.clock.next() == replaced  # the control: whoever knows no more takes the same one


@pytest.mark.parametrize("action", [CLUSTERING, REPLACE_COMMIT])
def test_nothing_is_written_beside_what_replaces_file_groups(path: Path, action: str) -> None:
    table = writer(path, "a")
    pending = Instant(table.clock.next(), action, State.REQUESTED)
    table.storage.create(pending.path, b"")
    table.refresh()
    before = lake.tree(path)
    with pytest.raises(ForeignActionError, match=f"a {action} is pending"):
        table.begin()
    assert lake.tree(path) == before


def test_a_pending_compaction_does_not_stop_a_writer(path: Path) -> None:
    table = writer(path, "a")
    lake.commit(table, lake.upserts(range(4), 1))
    assert schedule(table, OFTEN) is not None
    lake.commit(table, lake.upserts(range(4), 2))
    assert [i.action for i in table.timeline.pending()] == [COMPACTION]


def _cannot_roll_back(*_: object) -> None:
    raise StorageError("the store failed")


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "alone"])
def test_what_a_writer_could_not_roll_back_goes_with_its_next_commit(
    path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    """Else compaction, archival and other streams would wait for it as long as the process lives."""
    table = writer(path, "a") if shared else HudiTable.open(lake.storage_at(path), metadata=MetadataConfig())
    instant = table.begin()
    lake.write(table, instant, lake.upserts(range(4), 100))
    with monkeypatch.context() as patch:
        patch.setattr("hudilake.table.publisher.roll_back", _cannot_roll_back)
        with pytest.raises(StorageError):
            table.abort(instant)
    assert beating(path) == set()
    assert [pending.requested_time for pending in table.timeline.pending()] == [instant]
    model, changes = lake.Model(), lake.upserts(range(2), 110)
    model.apply(changes)
    lake.commit(table, changes)
    assert table.timeline.pending() == []
    healthy(path, model)


def test_another_writer_takes_what_could_not_be_rolled_back_for_dead(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = writer(path, "a"), writer(path, "b")
    instant = a.begin()
    lake.write(a, instant, lake.upserts(range(4), 100))
    assert b.rollback_pending() == []  # the control: it lives
    with monkeypatch.context() as patch:
        patch.setattr("hudilake.table.publisher.roll_back", _cannot_roll_back)
        with pytest.raises(StorageError):
            a.abort(instant)
    assert b.rollback_pending() == [instant]
