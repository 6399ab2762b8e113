"""Calls that are made at once: their results, their errors, and a process that was forked."""

from __future__ import annotations

import os
import threading
from functools import partial
from pathlib import Path

import pytest

from hudilake.locking.fenced import fenced
from hudilake.locking.process_lock import ProcessLock
from hudilake.storage import Storage, open_storage
from hudilake.storage.at_once import at_once
from hudilake.storage.local import LocalStorage
from hudilake.storage.metered import Meter, MeteredStorage
from hudilake.storage.passing import is_near


def zero() -> int:
    """A call that does nothing."""
    return 0


def test_results_come_in_order_and_the_calls_are_made_together() -> None:
    """Each call waits for all others: one after the other they would never end."""
    together = threading.Barrier(4)

    def call(number: int) -> int:
        together.wait(timeout=60)
        return number

    assert at_once([partial(call, number) for number in range(4)]) == [0, 1, 2, 3]
    assert at_once(list[partial[int]]()) == []


def test_the_first_error_is_raised_once_all_have_ended() -> None:
    failed, ended = threading.Event(), list[str]()

    def fails(what: str) -> int:
        failed.set()
        raise ValueError(what)

    def ends() -> int:
        assert failed.wait(timeout=60)
        ended.append("it")
        return 0

    with pytest.raises(ValueError, match="first"):
        at_once([lambda: fails("first"), ends, lambda: fails("second")])
    assert ended == ["it"]


def test_reads_of_a_local_disk_are_made_one_after_the_other(tmp_path: Path) -> None:
    """Also through what passes its calls on; all other stores, and writes, are called by several threads."""
    disk = LocalStorage(tmp_path)
    metered = MeteredStorage(fenced(disk, ProcessLock(disk.uri)), Meter())

    def threads(reads: Storage | None) -> int:
        return len(set(at_once([threading.get_ident] * 3, reads=reads)))

    assert [threads(disk), threads(metered), threads(metered.sub("a"))] == [1, 1, 1]
    memory = open_storage("memory://at-once", {})
    assert min(threads(None), threads(memory), threads(MeteredStorage(memory, Meter()))) > 1
    assert (is_near(metered), is_near(memory)) == (True, False)


def test_a_forked_process_has_threads_of_its_own() -> None:
    """Those of its parent are not there: a call given to them would wait forever."""
    at_once([zero, zero])
    child = os.fork()
    if child == 0:
        os._exit(0 if at_once([zero, zero]) == [0, 0] else 1)
    for _ in range(600):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        threading.Event().wait(0.1)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert ended == child
    assert os.waitstatus_to_exitcode(status) == 0
