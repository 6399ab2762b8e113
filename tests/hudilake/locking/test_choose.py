"""Which lock a table gets."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from hudilake.errors import ConfigError
from hudilake.locking.base import LockHeldError, TableLock
from hudilake.locking.choose import LockConfig, Provider, table_lock
from hudilake.locking.fenced import fenced
from hudilake.locking.file_lock import FileLock
from hudilake.locking.process_lock import ProcessLock
from hudilake.locking.storage_lock import StorageLock
from hudilake.storage import open_storage

_S3 = {"region": "us-east-1", "access_key_id": "a", "secret_access_key": "b"}


@pytest.mark.parametrize(
    ("uri", "options", "provider", "kind"),
    [
        ("file:///nowhere/t", {}, "auto", FileLock),
        ("hdfs://host:8020/t", {}, "auto", FileLock),
        ("s3://bucket/t", _S3, "auto", StorageLock),
        ("memory://choose/t", {}, "auto", ProcessLock),
        ("file:///nowhere/t", {}, "process", ProcessLock),
        ("s3://bucket/t", _S3, "process", ProcessLock),
        ("file:///nowhere/t", {}, "file", FileLock),
        ("memory://choose/t", {}, "storage", StorageLock),
    ],
)
def test_the_lock_of_a_store(uri: str, options: dict[str, str], provider: Provider, kind: type[TableLock]) -> None:
    storage = open_storage(uri, options)
    lock = table_lock(storage, LockConfig(provider=provider))
    assert type(lock) is kind
    assert lock.shared == (kind is not ProcessLock)
    assert type(table_lock(fenced(storage, lock), LockConfig(provider=provider))) is kind


@pytest.mark.parametrize(
    ("uri", "options", "provider"),
    [("s3://bucket/t", _S3, "file"), ("file:///nowhere/t", {}, "storage"), ("memory://choose/t", {}, "file")],
)
def test_one_that_the_store_cannot_have(uri: str, options: dict[str, str], provider: Provider) -> None:
    with pytest.raises(ConfigError, match=provider):
        table_lock(open_storage(uri, options), LockConfig(provider=provider))


@pytest.mark.parametrize(
    "wrong",
    [
        {"provider": "zookeeper"},
        {"validity_s": 9, "renew_s": 0.5},
        {"validity_s": 290},
        {"renew_s": 0},
        {"wait_s": -1},
        {"heartbeat_timeout_s": 0},
        {"foreign_expiry_s": -1},
    ],
)
def test_times_that_cannot_work(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        LockConfig(**wrong)
    LockConfig(validity_s=10, renew_s=1, wait_s=0)


@pytest.mark.parametrize("place", ["local", "memory"])
@pytest.mark.parametrize("provider", ["auto", "storage"])
def test_two_objects_of_one_process_exclude_each_other(tmp_path: Path, place: str, provider: Provider) -> None:
    uri = str(tmp_path) if place == "local" else f"memory://choose/{tmp_path.name}"
    config = LockConfig(provider=provider if place == "memory" else "auto", wait_s=0.05)
    first, second = (table_lock(open_storage(uri), config) for _ in range(2))
    refused: list[bool] = []

    def other() -> None:
        try:
            with second:
                refused.append(False)
        except LockHeldError:
            refused.append(True)

    for held in (True, False):
        thread = threading.Thread(target=other)
        if held:
            with first:
                thread.start()
                thread.join()
        else:
            thread.start()
            thread.join()
    assert refused == [True, False]
