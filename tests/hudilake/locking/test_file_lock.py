"""The lock file on local disk and HDFS: what it costs, what it says, and when it is lost."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from hudilake.locking.base import LockHeldError, LostLockError
from hudilake.locking.file_lock import LOCK_PATH, FileLock
from hudilake.locking.shared_lock import Lease
from hudilake.storage import Storage, StorageError, open_storage
from tests.hudilake.failing_storage import AnsweringStorage, CountingStorage
from tests.hudilake.locking.elapsed_clock import ElapsedClock
from tests.hudilake.locking.workers import has_lost, wait_until
from tests.services.hdfs import HdfsCluster


@pytest.fixture(params=["local", pytest.param("hdfs", marks=pytest.mark.hdfs)])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return open_storage(str(tmp_path))
    cluster: HdfsCluster = request.getfixturevalue("hdfs_cluster")
    return open_storage(f"{cluster.uri}/locks/{tmp_path.name}")


def test_taken_and_freed(storage: Storage) -> None:
    lock = FileLock(storage, wait_s=0)
    assert lock.shared
    with pytest.raises(LostLockError):
        lock.check()
    for _ in range(2):
        with lock:
            lock.check()
            with FileLock(storage, wait_s=0) as same:
                same.check()
            lock.check()
            assert json.loads(storage.read(LOCK_PATH))["process"]["pid"] == os.getpid()
        assert storage.stat(LOCK_PATH) is None
    with pytest.raises(LostLockError):
        lock.check()


@pytest.mark.first(1)
def test_a_foreign_lock_is_respected_and_explained(storage: Storage) -> None:
    """Hudi's own is empty."""
    storage.create(LOCK_PATH, b"")
    with pytest.raises(LockHeldError) as caught, FileLock(storage, wait_s=0):
        pass
    assert "does not say who it is" in str(caught.value)
    assert "delete the file if no Hudi writer runs" in caught.value.do_next
    time.sleep(0.1)
    with FileLock(storage, wait_s=1, foreign_expiry_s=0.05) as lock:
        lock.check()
    storage.create(LOCK_PATH, b"")
    with pytest.raises(LockHeldError, match="Hudi's own"), FileLock(storage, wait_s=0, foreign_expiry_s=60):
        pass


def test_a_lock_that_was_taken_away_is_lost_and_left_alone(storage: Storage) -> None:
    lock = FileLock(storage, wait_s=0)
    with lock:
        storage.delete(LOCK_PATH)
        with pytest.raises(LostLockError, match="deleted or replaced"):
            lock.check()
        storage.create(LOCK_PATH, b"another's")
        with pytest.raises(LostLockError):
            lock.check()
    assert storage.read(LOCK_PATH) == b"another's"


def test_a_renewal_notices_and_does_not_bring_it_back(storage: Storage) -> None:
    with FileLock(storage, wait_s=0, renew_s=0.05):
        storage.delete(LOCK_PATH)
        time.sleep(0.3)
        assert storage.stat(LOCK_PATH) is None


def test_it_is_kept_fresh(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renewed until far behind its first validity; the control is not renewed."""
    elapsed_clock = ElapsedClock(monkeypatch)

    def modified_ms() -> int:
        file = storage.stat(LOCK_PATH)
        assert file is not None
        return file.modified_ms

    with FileLock(storage, wait_s=0, validity_s=20.0, renew_s=0.1) as lock:
        for _ in range(3):
            for _ in range(3):  # the first one may have begun before the time passed, the last one not have ended
                before_ms = modified_ms()
                wait_until(lambda before_ms=before_ms: modified_ms() > before_ms, "a renewal")  # type: ignore[misc]
            elapsed_clock.advance(15.0)
            lock.check()
    with FileLock(storage, wait_s=0, validity_s=20.0, renew_s=600.0) as lock:
        elapsed_clock.advance(30.0)
        assert has_lost(lock)


def test_what_it_costs(tmp_path: Path) -> None:
    counted = CountingStorage(open_storage(str(tmp_path)))
    with FileLock(counted, wait_s=0):
        pass
    assert [method for method, _ in counted.calls] == ["create", "read", "delete"]


def test_nothing_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    storage = open_storage(str(tmp_path))
    with FileLock(storage, wait_s=0):
        pass
    assert synced == []
    storage.create("a", b"x")
    assert synced, "the control"


def test_two_objects_on_other_names_of_one_table(tmp_path: Path) -> None:
    """The process's lock does not know that they are one; the file does, and this process is alive."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    other = FileLock(open_storage(str(tmp_path / "link")), wait_s=0.05)
    with (
        FileLock(open_storage(str(tmp_path / "real")), wait_s=0),
        pytest.raises(LockHeldError, match=f"process {os.getpid()}"),
        other,
    ):
        pass
    with other:
        other.check()


def test_threads_wait_for_one_another(tmp_path: Path) -> None:
    count = [0]

    def work() -> None:
        for _ in range(10):
            with FileLock(open_storage(str(tmp_path)), wait_s=20):
                seen = count[0]
                time.sleep(0.0005)
                count[0] = seen + 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == [40]


def test_it_is_not_renewed_in_the_last_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may have found it dead by then, and be about to delete it (``docs/model/FileLock.tla``)."""
    elapsed_clock = ElapsedClock(monkeypatch)
    lock = FileLock(open_storage(str(tmp_path)), wait_s=0, validity_s=6000.0, renew_s=600.0)
    for silent_s, renewed in ((5300.0, True), (5700.0, False)):
        with lock:
            os.utime(tmp_path / LOCK_PATH, (1, 1))
            elapsed_clock.advance(silent_s)
            lease = lock._local.held
            assert isinstance(lease, Lease)
            lock._renew(lease)
            assert ((tmp_path / LOCK_PATH).stat().st_mtime > 1) is renewed
            assert has_lost(lock) is not renewed


@pytest.mark.full
def test_a_renewal_that_fails_for_too_long_loses_it(tmp_path: Path) -> None:
    down = threading.Event()

    def fault(method: str, path: str, action: object) -> None:
        if down.is_set():
            raise StorageError("down")

    storage = AnsweringStorage(open_storage(str(tmp_path)), fault=fault)
    lock = FileLock(storage, wait_s=0, validity_s=4.0, renew_s=0.05)
    with lock:
        down.set()
        with pytest.raises(StorageError, match="down"):
            lock.check()
        time.sleep(0.3)
        down.clear()
        time.sleep(0.3)
        lock.check()
        down.set()
        wait_until(lambda: has_lost(lock), "the end of the validity")
        down.clear()
        with pytest.raises(LostLockError, match="last renewed"):
            lock.check()
    assert storage.stat(LOCK_PATH) is not None, "what may be another's is not freed"
    with FileLock(storage, wait_s=5) as other:
        other.check()


def test_a_store_that_fails_is_told_and_the_process_is_not_locked(tmp_path: Path) -> None:
    failing = [True]

    def fault(method: str, path: str, action: object) -> None:
        if failing[0]:
            raise StorageError("down")

    lock = FileLock(AnsweringStorage(open_storage(str(tmp_path)), fault=fault), wait_s=0)
    with pytest.raises(StorageError, match="down"), lock:
        pass
    failing[0] = False
    with lock:
        lock.check()
