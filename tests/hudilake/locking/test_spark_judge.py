"""Hudi's own locks beside ours: its file lock and ours exclude each other, its lock file's classes read ours."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from hudilake.clock import now_ms
from hudilake.locking.base import LockHeldError, LostLockError
from hudilake.locking.file_lock import LOCK_PATH, FileLock
from hudilake.locking.heartbeat import HEARTBEAT_PATH, Heartbeats
from hudilake.locking.process_identity import this_process
from hudilake.locking.storage_lock import LOCK_PATH as STORAGE_LOCK_PATH
from hudilake.locking.storage_lock import LockData, StorageLock
from hudilake.storage import open_storage
from hudilake.storage.abilities import ConditionalStore
from tests.hudilake.locking.workers import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.judge]

INSTANT = "20260101000000000"
_LOCKS = "org.apache.hudi.client.transaction.lock"


class HudiFileLock:
    """Hudi's FileSystemBasedLockProvider on a table, as a writer with these settings makes it."""

    def __init__(self, spark: SparkSession, table: Path, expire_minutes: int = 0) -> None:
        self.jvm = cast("Any", spark.sparkContext._jvm)
        org = self.jvm.org.apache.hudi
        properties = org.common.config.TypedProperties()
        properties.setProperty("hoodie.base.path", str(table))
        properties.setProperty("hoodie.write.lock.filesystem.expire", str(expire_minutes))
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        configuration = self.jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(hadoop)
        self.provider = org.client.transaction.lock.FileSystemBasedLockProvider(
            org.common.config.LockConfiguration(properties), configuration
        )

    def try_lock(self) -> bool:
        return bool(self.provider.tryLock(100, self.jvm.java.util.concurrent.TimeUnit.MILLISECONDS))

    def unlock(self) -> None:
        self.provider.unlock()


def test_they_exclude_each_other(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    storage = open_storage(str(tmp_path))
    theirs, ours = HudiFileLock(spark, tmp_path), FileLock(storage, wait_s=0.3)
    assert theirs.provider.getLock().endswith(LOCK_PATH)
    for _ in range(2):
        assert theirs.try_lock()
        assert not theirs.try_lock()
        assert storage.read(LOCK_PATH) == b""
        with pytest.raises(LockHeldError, match="Hudi's own"), ours:
            pass
        theirs.unlock()
        with ours:
            assert not theirs.try_lock()
            assert json.loads(theirs.provider.getCurrentOwnerLockInfo())["process"]["pid"] == os.getpid()
            ours.check()
        assert theirs.try_lock()
        theirs.unlock()
        with ours:
            ours.check()


def test_their_expiry_spares_a_lock_that_is_renewed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    theirs = HudiFileLock(spark, tmp_path, expire_minutes=1)
    two_minutes_ago = time.time_ns() // 1_000_000_000 - 120
    with FileLock(open_storage(str(tmp_path)), wait_s=0, renew_s=0.2) as lock:
        os.utime(tmp_path / LOCK_PATH, (two_minutes_ago, two_minutes_ago))
        wait_until(lambda: (tmp_path / LOCK_PATH).stat().st_mtime > two_minutes_ago + 60, "a renewal")
        assert not theirs.try_lock()
        lock.check()
    with FileLock(open_storage(str(tmp_path)), wait_s=0, renew_s=20) as lock:
        os.utime(tmp_path / LOCK_PATH, (two_minutes_ago, two_minutes_ago))
        assert theirs.try_lock(), "the control: without a renewal it is theirs"
        with pytest.raises(LostLockError):
            lock.check()
    assert (tmp_path / LOCK_PATH).exists(), "theirs is not freed by us"
    theirs.unlock()


@pytest.mark.full
def test_their_close_frees_ours_and_we_notice(spark: SparkSession, tmp_path: Path) -> None:
    """Hudi's close deletes the file whoever holds it."""
    (tmp_path / ".hoodie").mkdir()
    theirs = HudiFileLock(spark, tmp_path)
    with FileLock(open_storage(str(tmp_path)), wait_s=0) as lock:
        theirs.provider.close()
        with pytest.raises(LostLockError, match="deleted"):
            lock.check()


@pytest.mark.full
def test_our_takeover_of_theirs(spark: SparkSession, tmp_path: Path) -> None:
    """With the checksum file that Hadoop keeps beside it."""
    (tmp_path / ".hoodie").mkdir()
    storage = open_storage(str(tmp_path))
    theirs = HudiFileLock(spark, tmp_path)
    assert theirs.try_lock()
    time.sleep(0.2)
    with FileLock(storage, wait_s=1, foreign_expiry_s=0.1) as lock:
        assert not theirs.try_lock()
        lock.check()
    assert theirs.try_lock()
    theirs.unlock()


def test_the_lock_file_of_object_stores(spark: SparkSession, tmp_path: Path) -> None:
    """What we write is read by Hudi's class, with the field it does not know; what it writes is read by us."""
    jvm = cast("Any", spark.sparkContext._jvm)
    file_class = getattr(jvm, f"{_LOCKS}.models.StorageLockFile")
    store = open_storage(f"memory://judge/{tmp_path.name}")
    assert isinstance(store, ConditionalStore)
    with StorageLock(store, f"memory://judge/{tmp_path.name}"):
        ours = store.read_versioned(STORAGE_LOCK_PATH)[0]
        read = file_class.createFromStream(jvm.java.io.ByteArrayInputStream(ours), "v1")
        said = LockData.from_bytes(ours, "")
        assert said.process == this_process()
        assert (read.isExpired(), read.getValidUntilMs(), read.getOwner()) == (False, said.valid_until_ms, said.owner)
    freed = store.read_versioned(STORAGE_LOCK_PATH)[0]
    assert file_class.createFromStream(jvm.java.io.ByteArrayInputStream(freed), "v2").isExpired()
    theirs = bytes(file_class.toByteArray(getattr(jvm, f"{_LOCKS}.models.StorageLockData")(False, now_ms(), "who")))
    again = LockData.from_bytes(theirs, "")
    assert (again.expired, again.owner, again.process) == (False, "who", None)
    assert json.loads(LockData(False, again.valid_until_ms, "who").to_bytes()) == json.loads(theirs)


def test_heartbeats(spark: SparkSession, tmp_path: Path) -> None:
    """Hudi takes ours for alive, and out of date when it is; we take Hudi's by its time."""
    jvm = cast("Any", spark.sparkContext._jvm)
    org = jvm.org.apache.hudi
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    storage = org.storage.HoodieStorageUtils.getStorage(
        str(tmp_path), jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(hadoop)
    )
    client = org.client.heartbeat.HoodieHeartbeatClient(storage, str(tmp_path), 1000, 2)
    beats = Heartbeats(open_storage(str(tmp_path)), "ours", 600)
    beats.start(INSTANT)
    assert not client.isHeartbeatExpired(INSTANT)
    old = time.time_ns() // 1_000_000_000 - 60
    os.utime(tmp_path / HEARTBEAT_PATH / INSTANT, (old, old))
    assert client.isHeartbeatExpired(INSTANT)
    beats.stop(INSTANT)
    assert client.isHeartbeatExpired(INSTANT)
    client.start(INSTANT)
    found = beats.find(INSTANT)
    assert found is not None
    assert found.process is None
    assert found.alive(now_ms(), 60)
    client.close()
    time.sleep(0.3)
    assert not found.alive(now_ms(), 0.2)
