"""Writers whose clocks are hours apart: a living holder keeps its lock, a dead one loses it after the validity."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from binlake.position.lease import StreamLease
from hudilake.clock import now_ms
from hudilake.errors import ConfigError, LostOwnershipError
from hudilake.locking import file_lock, heartbeat, storage_lock
from hudilake.locking.base import LockHeldError
from hudilake.locking.choose import LockConfig
from hudilake.locking.elapsed import Watch
from hudilake.locking.file_lock import FileLock
from hudilake.locking.heartbeat import HEARTBEAT_PATH, Heartbeats
from hudilake.locking.ownership import Locking
from hudilake.locking.process_identity import ProcessIdentity, this_process
from hudilake.locking.shared_lock import Lease, SharedLock
from hudilake.locking.storage_lock import StorageLock
from hudilake.storage import Storage, open_storage
from hudilake.storage.abilities import ConditionalStore
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable
from tests.hudilake import lake
from tests.hudilake.locking.elapsed_clock import ElapsedClock

HOURS_MS = 3 * 3_600_000
VALIDITY_S = 0.4


class OtherMachine:
    """Within, this process is one of another machine, whose clock is apart from ours."""

    def __init__(self, patch: pytest.MonkeyPatch, apart_ms: int) -> None:
        self._patch, self._apart_ms = patch, apart_ms

    def __enter__(self) -> None:
        true_now, here = time.time_ns, this_process()
        there = ProcessIdentity("elsewhere", here.pid, here.started, "elsewhere")
        for module in (file_lock, storage_lock):
            self._patch.setattr(module, "now_ms", lambda: true_now() // 1_000_000 + self._apart_ms)
            self._patch.setattr(module, "this_process", lambda: there)

    def __exit__(self, *_: object) -> None:
        self._patch.undo()


Make = Callable[..., SharedLock]


@pytest.fixture(params=["file", "storage"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def file(**times: float) -> SharedLock:
        return FileLock(LocalStorage(tmp_path, fsync=False), **{"validity_s": VALIDITY_S, "renew_s": 60.0, **times})

    def storage(**times: float) -> SharedLock:
        store: Any = open_storage(f"memory://clocks/{tmp_path.name}")
        assert isinstance(store, ConditionalStore)
        uri = f"memory://{os.urandom(4).hex()}"  # its process's lock is not ours
        return StorageLock(store, uri, **{"validity_s": VALIDITY_S, "renew_s": 60.0, **times})

    return file if request.param == "file" else storage


def held_elsewhere(make: Make, patch: pytest.MonkeyPatch, tmp_path: Path, apart_ms: int) -> tuple[SharedLock, Lease]:
    """A lock that a writer of another machine holds. The time of change of its file is by that writer's clock, too, as
    HDFS has it."""
    with OtherMachine(patch, apart_ms):
        theirs = make()
        lease = theirs._try()
    assert isinstance(lease, Lease)
    stamp(tmp_path, apart_ms)
    return theirs, lease


def stamp(root: Path, apart_ms: int) -> None:
    file = root / file_lock.LOCK_PATH
    if file.exists():
        at_ns = time.time_ns() + apart_ms * 1_000_000
        os.utime(file, ns=(at_ns, at_ns))


def attempts_beside_a_living_holder(
    make: Make, patch: pytest.MonkeyPatch, tmp_path: Path, apart_ms: int, times: int
) -> list[bool]:
    """Whether each of several attempts got the lock, while its holder renews it between them."""
    with pytest.MonkeyPatch.context() as elapsed:
        elapsed_clock = ElapsedClock(elapsed)
        theirs, lease = held_elsewhere(make, patch, tmp_path, apart_ms)
        ours, got = make(), list[bool]()
        for _ in range(times):
            got.append(isinstance(ours._try(), Lease))
            elapsed_clock.advance(VALIDITY_S / 4)
            time.sleep(0.002)  # a renewal has another millisecond
            with OtherMachine(patch, apart_ms):
                assert theirs._extend(lease) == ""
            stamp(tmp_path, apart_ms)
        return got


@pytest.mark.parametrize("apart_ms", [-HOURS_MS, HOURS_MS])
def test_a_living_holder_keeps_its_lock(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, apart_ms: int
) -> None:
    assert not any(attempts_beside_a_living_holder(make, monkeypatch, tmp_path, apart_ms, 8))


def test_the_control_that_trusts_clocks_takes_a_living_lock_over(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as rule:
        rule.setattr(Watch, "unchanged_s", lambda self, state: float("inf"))
        theirs, lease = held_elsewhere(make, monkeypatch, tmp_path, -HOURS_MS)
        assert isinstance(make()._try(), Lease)
    assert theirs._look(lease), "the living holder has lost it"


def test_a_dead_holder_whose_clock_is_behind_is_waited_for_until_it_was_silent_for_the_validity(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held_elsewhere(make, monkeypatch, tmp_path, -HOURS_MS)
    ours = make(wait_s=VALIDITY_S / 8)
    assert not isinstance(ours._try(), Lease)
    with ours:
        ours.check()


def test_a_lock_whose_holder_is_hours_ahead_is_refused_at_once(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held_elsewhere(make, monkeypatch, tmp_path, HOURS_MS)
    with pytest.raises(LockHeldError), make(wait_s=0.0):
        pass


def set_clock(patch: pytest.MonkeyPatch, apart_ms: int) -> None:
    """This machine's clock, as heartbeats see it, is apart from the store's."""
    true_now = now_ms
    patch.setattr(heartbeat, "now_ms", lambda: true_now() + apart_ms)


@pytest.mark.parametrize("apart_ms", [-HOURS_MS, HOURS_MS])
def test_a_living_writers_commit_is_not_rolled_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, apart_ms: int
) -> None:
    lake.new_table(tmp_path)
    living, other = (
        HudiTable.open(lake.storage_at(tmp_path), locking=Locking(LockConfig(), name)) for name in ("living", "other")
    )
    instant = living.begin()
    results = lake.write(living, instant, lake.upserts(range(8), 1))
    set_clock(monkeypatch, apart_ms)
    assert other.rollback_pending() == []
    living.commit(instant, results)
    assert [file.name for file in (tmp_path / HEARTBEAT_PATH).iterdir()] == []


def test_a_silent_writers_commit_is_rolled_back_by_one_whose_clock_is_ahead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lake.new_table(tmp_path)
    silent, other = (
        HudiTable.open(lake.storage_at(tmp_path), locking=Locking(LockConfig(), name)) for name in ("silent", "other")
    )
    instant = silent.begin()
    os.utime(tmp_path / HEARTBEAT_PATH / instant, ((now_ms() - 601_000) / 1000,) * 2)
    set_clock(monkeypatch, HOURS_MS)
    assert other.rollback_pending() == [instant]


def test_a_living_stream_keeps_its_lease(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    state = open_storage(f"memory://lease/{tmp_path.name}")
    with StreamLease(state, "shop") as living:
        set_clock(monkeypatch, HOURS_MS)
        with pytest.raises(LostOwnershipError, match="another run of this stream is active"):
            StreamLease(state, "shop").take()
        living.check()


@pytest.mark.parametrize("apart_ms", [-HOURS_MS, HOURS_MS])
def test_a_writer_that_would_date_its_beats_hours_apart_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, apart_ms: int
) -> None:
    set_clock(monkeypatch, apart_ms)
    beats = Heartbeats(LocalStorage(tmp_path, fsync=False), "one", 600.0)
    with pytest.raises(ConfigError, match="10800 s apart"):
        beats.start("20260101000000000")
    assert beats.instants() == []
    by_the_store: Storage = open_storage(f"memory://dated/{tmp_path.name}")
    others = Heartbeats(by_the_store, "one", 600.0)
    others.start("20260101000000000")
    others.check("20260101000000000")
    others.close()
