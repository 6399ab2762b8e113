"""The fence: no completed instant without the lock."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from hudilake.locking.base import LostLockError
from hudilake.locking.fenced import fenced, unfenced
from hudilake.locking.process_lock import ProcessLock
from hudilake.storage import Storage, open_storage
from hudilake.storage.base import UnfinishedWrites

COMPLETED = "20260101000000000_20260101000001000.deltacommit"
BELOW: list[Callable[[Storage], tuple[Storage, str]]] = [
    lambda s: (s, ".hoodie/timeline"),
    lambda s: (s, ".hoodie/metadata/.hoodie/timeline"),
    lambda s: (s.sub(".hoodie/metadata"), ".hoodie/timeline"),
    lambda s: (s.sub(".hoodie").sub("metadata/"), ".hoodie/timeline"),
]


@pytest.fixture
def lock() -> ProcessLock:
    return ProcessLock("memory://fenced/t", 0.05)


@pytest.fixture
def storage(tmp_path: Path, lock: ProcessLock) -> Storage:
    return fenced(open_storage(str(tmp_path)), lock)


@pytest.mark.parametrize("below", BELOW)
def test_completed_instants_need_the_lock(
    storage: Storage, lock: ProcessLock, below: Callable[[Storage], tuple[Storage, str]]
) -> None:
    place, timeline = below(storage)
    with pytest.raises(LostLockError):
        place.create(f"{timeline}/{COMPLETED}", b"x")
    assert place.list(timeline) == []
    with lock:
        place.create(f"{timeline}/{COMPLETED}", b"x")
    assert [info.size for info in place.list(timeline)] == [1]


@pytest.mark.parametrize(
    "path",
    [
        ".hoodie/timeline/20260101000000000.deltacommit.requested",
        ".hoodie/timeline/20260101000000000.deltacommit.inflight",
        f".hoodie/timeline/history/{COMPLETED}",
        f"region=eu/{COMPLETED}",
        COMPLETED,
    ],
)
def test_other_files_do_not(storage: Storage, path: str) -> None:
    storage.create(path, b"x")
    assert storage.read(path) == b"x"


def test_a_table_below_the_root_is_another_table(storage: Storage) -> None:
    """The control of ``sub``: only the table's own two timelines are fenced."""
    storage.sub("region=eu").create(f".hoodie/timeline/{COMPLETED}", b"x")


def test_a_pickled_one_is_the_storage_behind_it(storage: Storage) -> None:
    copy = pickle.loads(pickle.dumps(storage.sub(".hoodie")))
    assert copy == unfenced(storage).sub(".hoodie")
    assert type(copy) is type(unfenced(storage))


def test_unfinished_files_are_seen_where_there_are_any(storage: Storage, lock: ProcessLock, tmp_path: Path) -> None:
    assert isinstance(storage, UnfinishedWrites)
    assert isinstance(storage.sub(".hoodie"), UnfinishedWrites)
    (tmp_path / ".binlake-1.tmp").write_bytes(b"half")
    assert [info.size for info in storage.unfinished("")] == [4]
    assert not isinstance(fenced(open_storage("memory://fenced/t"), lock), UnfinishedWrites)


def test_a_second_fence_takes_the_place_of_the_first(storage: Storage) -> None:
    other = ProcessLock("memory://fenced/other", 0.05)
    with other:
        fenced(storage, other).create(f".hoodie/timeline/{COMPLETED}", b"x")
    assert unfenced(fenced(storage, other)) is unfenced(storage)
