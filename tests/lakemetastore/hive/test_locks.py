"""Locks of one store, taken through two processes' worth of services."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from hive_metastore import ttypes

from lakemetastore.errors import NoSuchLockError
from lakemetastore.hive.lock_state import EXCLUSIVE, SHARED_READ, SHARED_WRITE, LockPart
from lakemetastore.hive.locks import Locks
from lakemetastore.log.stores.base import LogStore
from tests.lakemetastore.hive.clients import client
from tests.lakemetastore.hive.hive_server import HiveServer


def part(kind: int, database: str = "a", table: str | None = "t", partition: str | None = None) -> LockPart:
    return LockPart(kind, 2, database, table, partition)


@pytest.fixture
def two(store: LogStore) -> tuple[Locks, Locks]:
    return Locks(store), Locks(store)


def test_the_next_in_line_holds_the_lock_when_it_is_released(two: tuple[Locks, Locks]) -> None:
    here, there = two
    first = here.take([part(EXCLUSIVE)], "u", "h")
    second = there.take([part(EXCLUSIVE)], "u", "h")
    third = here.take([part(SHARED_READ)], "u", "h")
    assert first.waits_for is None
    assert second.waits_for == first.lock
    assert third.waits_for == first.lock
    here.release(first.lock.id)
    assert there.check(second.lock.id).waits_for is None
    assert here.check(third.lock.id).waits_for == second.lock
    there.release(second.lock.id)
    assert here.check(third.lock.id).waits_for is None


@pytest.mark.parametrize(
    ("one", "other", "exclude"),
    [
        (part(SHARED_READ), part(SHARED_READ), False),
        (part(SHARED_READ), part(SHARED_WRITE), False),
        (part(SHARED_WRITE), part(SHARED_READ), False),
        (part(SHARED_WRITE), part(SHARED_WRITE), True),
        (part(EXCLUSIVE), part(SHARED_READ), True),
        (part(SHARED_READ), part(EXCLUSIVE), True),
        (part(4), part(SHARED_READ), False),
        (part(4), part(SHARED_WRITE), True),
        (part(4), part(4), True),
        (part(99), part(SHARED_READ), True),
        (part(EXCLUSIVE), part(EXCLUSIVE, table="u"), False),
        (part(EXCLUSIVE), part(EXCLUSIVE, database="b"), False),
        (part(EXCLUSIVE), part(EXCLUSIVE, table=None), True),
        (part(EXCLUSIVE, partition="p=1"), part(EXCLUSIVE, partition="p=2"), False),
        (part(EXCLUSIVE, partition="p=1"), part(EXCLUSIVE), True),
    ],
)
def test_which_locks_exclude_each_other(
    two: tuple[Locks, Locks], one: LockPart, other: LockPart, exclude: bool
) -> None:
    assert two[0].take([one], "u", "h").waits_for is None
    assert (two[1].take([other], "u", "h").waits_for is not None) == exclude


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the clock of all locks on by so many milliseconds."""
    moments = [0]

    def on(milliseconds: int) -> None:
        moments[0] += milliseconds

    monkeypatch.setattr("lakemetastore.hive.locks.now_ms", lambda: 1_700_000_000_000 + moments[0])
    return on


def test_a_lock_ends_when_its_client_is_silent(store: LogStore, passes: Callable[[int], None]) -> None:
    quick = Locks(store, timeout_ms=50)
    first = quick.take([part(EXCLUSIVE)], "u", "h")
    second = Locks(store).take([part(EXCLUSIVE)], "u", "h")
    assert second.waits_for == first.lock
    passes(60)
    with pytest.raises(NoSuchLockError, match=f"No such lock lockid:{first.lock.id}"):
        quick.check(first.lock.id)
    assert quick.take([part(EXCLUSIVE)], "u", "h").waits_for is None
    with pytest.raises(NoSuchLockError):
        quick.heartbeat(second.lock.id)


def test_a_heartbeat_keeps_a_lock(store: LogStore, passes: Callable[[int], None]) -> None:
    locks = Locks(store, timeout_ms=200)
    taken = locks.take([part(EXCLUSIVE)], "u", "h").lock.id
    for beat in (locks.heartbeat, locks.check, locks.heartbeat):
        passes(100)
        beat(taken)
    assert [asked.lock.id for asked in locks.all()] == [taken]


def test_only_one_of_many_threads_holds_the_lock(store: LogStore) -> None:
    held: list[int] = []
    most: list[int] = []

    def work(locks: Locks) -> None:
        for _ in range(3):
            asked = locks.take([part(EXCLUSIVE)], "u", "h")
            while asked.waits_for is not None:
                threading.Event().wait(0.002)
                asked = locks.check(asked.lock.id)
            held.append(asked.lock.id)
            most.append(len(held))
            threading.Event().wait(0.001)
            held.remove(asked.lock.id)
            locks.release(asked.lock.id)

    threads = [threading.Thread(target=work, args=(Locks(store),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1] * 12


def test_locks_over_the_socket(server: HiveServer) -> None:
    asked = ttypes.LockRequest(
        [ttypes.LockComponent(ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, "Sales", "Orders")], None, "ann", "h1"
    )
    with client(server.address) as one, client(server.address) as two:
        first, second = one.lock(asked), two.lock(asked)
        assert (first.state, second.state) == (ttypes.LockState.ACQUIRED, ttypes.LockState.WAITING)
        one.heartbeat(ttypes.HeartbeatRequest(lockid=first.lockid))
        shown = two.show_locks(ttypes.ShowLocksRequest(dbname="sales")).locks
        assert [(e.lockid, e.state, e.blockedByExtId, e.user) for e in shown] == [
            (first.lockid, ttypes.LockState.ACQUIRED, None, "ann"),
            (second.lockid, ttypes.LockState.WAITING, first.lockid, "ann"),
        ]
        assert two.show_locks(ttypes.ShowLocksRequest(dbname="other")).locks == []
        one.unlock(ttypes.UnlockRequest(first.lockid))
        assert two.check_lock(ttypes.CheckLockRequest(second.lockid)).state == ttypes.LockState.ACQUIRED
        with pytest.raises(ttypes.NoSuchLockException):
            one.unlock(ttypes.UnlockRequest(first.lockid))
        with pytest.raises(ttypes.NoSuchTxnException):
            one.lock(ttypes.LockRequest(asked.component, 7, "ann", "h1"))
