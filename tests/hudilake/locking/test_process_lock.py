"""The lock among the threads of one process."""

from __future__ import annotations

import threading
import time

import pytest

from hudilake.locking.base import LockHeldError, LostLockError
from hudilake.locking.process_lock import ProcessLock


def test_two_objects_of_one_table_exclude_each_other() -> None:
    first, second = ProcessLock("memory://x/a", 0.05), ProcessLock("memory://x/a", 0.05)
    failures: list[BaseException] = []

    def other() -> None:
        try:
            with second:
                failures.append(AssertionError("both hold it"))
        except LockHeldError as error:
            failures.append(error)

    with first:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert [type(f) for f in failures] == [LockHeldError]
    assert "MainThread" in str(failures[0])
    with second:
        second.check()


def test_other_tables_are_free() -> None:
    done = threading.Event()

    def other() -> None:
        with ProcessLock("memory://x/c", 0.05):
            done.set()

    with ProcessLock("memory://x/b", 0.05):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert done.is_set()


def test_a_thread_enters_again_and_check_knows_who_holds_it() -> None:
    lock, same = ProcessLock("memory://x/d", 0.05), ProcessLock("memory://x/d", 0.05)
    with pytest.raises(LostLockError):
        lock.check()
    raised: list[bool] = []

    def other() -> None:
        with pytest.raises(LostLockError):
            lock.check()
        raised.append(True)

    with lock:
        with same:
            lock.check()
        lock.check()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert raised == [True]
    with pytest.raises(LostLockError):
        lock.check()


def test_no_increment_is_lost_among_threads() -> None:
    count = [0]

    def work() -> None:
        for _ in range(20):
            with ProcessLock("memory://x/e", 10):
                seen = count[0]
                time.sleep(0.0001)
                count[0] = seen + 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == [80]
