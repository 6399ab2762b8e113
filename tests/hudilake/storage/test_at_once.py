"""Calls that are made at once: their results, their errors, and a process that was forked."""

from __future__ import annotations

import os
import threading
from functools import partial

import pytest

from hudilake.storage.at_once import at_once


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
