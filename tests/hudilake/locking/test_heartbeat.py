"""Heartbeats: made once, kept fresh, found dead, and lost when others may have acted upon it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudilake.clock import now_ms
from hudilake.errors import LostOwnershipError
from hudilake.locking.heartbeat import HEARTBEAT_PATH, Heartbeat, Heartbeats
from hudilake.locking.process_identity import ProcessIdentity, this_process
from hudilake.storage import AlreadyExistsError, Storage, StorageError, open_storage
from tests.hudilake.failing_storage import AnsweringStorage, CountingStorage
from tests.hudilake.locking.elapsed_clock import ElapsedClock
from tests.hudilake.locking.workers import wait_until
from tests.logged import events

INSTANT, OTHER = "20260101000000000", "20260101000000001"
PATH = f"{HEARTBEAT_PATH}/{INSTANT}"


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path) if request.param == "local" else f"memory://beats/{tmp_path.name}")


@pytest.fixture
def elapsed_clock(monkeypatch: pytest.MonkeyPatch) -> ElapsedClock:
    return ElapsedClock(monkeypatch)


def lost(beats: Heartbeats, instant: str = INSTANT) -> bool:
    try:
        beats.check(instant)
    except LostOwnershipError:
        return True
    return False


def wait_for_beats(beats: Heartbeats, count: int) -> None:
    """Return when the file was beaten so many times."""
    for _ in range(count):
        before = beats.find(INSTANT)
        assert before is not None
        wait_until(lambda before=before: beats.find(INSTANT) != before)  # type: ignore[misc]


def test_a_time_is_taken_once(storage: Storage) -> None:
    first, second = Heartbeats(storage, "one", 60), Heartbeats(storage, "two", 60)
    first.start(INSTANT)
    with pytest.raises(AlreadyExistsError):
        second.start(INSTANT)
    first.check(INSTANT)
    assert lost(second)
    assert (first.beats(INSTANT), second.beats(INSTANT)) == (True, False)
    found = second.find(INSTANT)
    assert found is not None
    assert (found.owner, found.pid, found.process) == ("one", os.getpid(), this_process())
    second.stop(INSTANT)
    assert first.find(INSTANT) is not None
    first.stop(INSTANT)
    assert first.find(INSTANT) is None


def _threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "binlake-heartbeat every 0.21 s"}


@pytest.mark.usefixtures("elapsed_clock")
def test_one_thread_keeps_all_fresh_and_ends(storage: Storage) -> None:
    beats, others = Heartbeats(storage, "one", 2.1), Heartbeats(storage.sub("another"), "one", 2.1)
    for n in range(5):
        beats.start(f"{INSTANT[:-1]}{n}")
    others.start(INSTANT)
    assert len(_threads()) == 1
    first = beats.find(INSTANT)
    assert first is not None
    wait_until(lambda: (beats.find(INSTANT) or first).modified_ms >= first.modified_ms + 300)
    for n in range(5):
        beats.check(f"{INSTANT[:-1]}{n}")
        beats.stop(f"{INSTANT[:-1]}{n}")
    assert others.beats(INSTANT)
    others.stop(INSTANT)
    wait_until(lambda: not _threads())
    beats.start(INSTANT)
    assert len(_threads()) == 1
    beats.close()
    wait_until(lambda: not _threads())
    assert beats.find(INSTANT) is not None
    assert lost(beats)


@pytest.mark.usefixtures("elapsed_clock")
def test_a_deleted_one_is_lost_and_not_brought_back(storage: Storage) -> None:
    beats = Heartbeats(storage, "one", 3)
    beats.start(INSTANT)
    beats.start(OTHER)
    storage.delete(PATH)
    wait_until(lambda: lost(beats))
    with pytest.raises(LostOwnershipError, match="deleted"):
        beats.check(INSTANT)
    assert beats.find(INSTANT) is None
    beats.check(OTHER)
    beats.close()


def test_one_that_somebody_else_has_taken_is_lost_and_left_alone(storage: Storage) -> None:
    beats = Heartbeats(storage, "one", 1)
    beats.start(INSTANT)
    storage.delete(PATH)
    storage.create(PATH, b"")
    wait_until(lambda: lost(beats))
    beats.stop(INSTANT)
    assert storage.read(PATH) == b""


def test_a_store_that_fails_for_too_long_loses_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, elapsed_clock: ElapsedClock
) -> None:
    down = threading.Event()

    def fault(method: str, path: str, action: Callable[[], object]) -> None:
        if down.is_set():
            raise StorageError("down")

    beats = Heartbeats(AnsweringStorage(open_storage(str(tmp_path)), fault=fault), "one", 3.0)
    beats.start(INSTANT)
    down.set()
    wait_until(lambda: "heartbeat_failed" in events(caplog))
    warned = events(caplog)["heartbeat_failed"]
    assert warned["levelname"] == "WARNING"
    assert warned["path"].endswith(PATH)
    elapsed_clock.advance(2.9)
    beats.check(INSTANT)
    down.clear()
    wait_for_beats(beats, 3)  # the first one may have begun before the time passed, the last one not have ended
    elapsed_clock.advance(2.9)
    beats.check(INSTANT)
    down.set()
    elapsed_clock.advance(3.1)
    assert lost(beats)
    down.clear()
    time.sleep(0.7)
    assert lost(beats), "once lost, it stays lost"
    down.set()
    beats.stop(INSTANT)


def test_a_foreign_one_is_judged_by_its_time() -> None:
    now = now_ms()
    assert Heartbeat("", None, now - 900).alive(now, 1)
    assert not Heartbeat("", None, now - 1100).alive(now, 1)
    assert Heartbeat("", None, now + 5000).alive(now, 1)


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"\xff", b'{"owner": "x"}', b'{"owner": "x", "process": 3}'])
def test_any_body_is_read(storage: Storage, body: bytes) -> None:
    storage.create(PATH, body)
    found = Heartbeats(storage, "one", 60).find(INSTANT)
    assert found is not None
    assert found.process is None
    assert (found.host, found.pid) == (None, None)
    assert found.alive(now_ms(), 60)


def test_a_process_that_is_gone_is_seen_at_once() -> None:
    script = (
        "import json; from hudilake.locking.process_identity import this_process as t;"
        "print(json.dumps(t().to_json()), flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        identity = ProcessIdentity.from_json(json.loads(process.stdout.readline()))
        assert identity is not None
        beat = Heartbeat("x", identity, now_ms())
        assert beat.alive(now_ms(), 60)
        assert not Heartbeat("x", replace(identity, started=identity.started - 1), now_ms()).alive(now_ms(), 60)
        elsewhere = replace(identity, place="another machine", pid=2**22 + 1)
        assert Heartbeat("x", elsewhere, now_ms()).alive(now_ms(), 60)
        process.kill()
        wait_until(lambda: not beat.alive(now_ms(), 60))  # not waited for yet: a zombie counts as gone
    assert not beat.alive(now_ms(), 60)


def test_calls(tmp_path: Path) -> None:
    counted = CountingStorage(open_storage(str(tmp_path)))
    beats = Heartbeats(counted, "one", 60)
    beats.start(INSTANT)
    beats.check(INSTANT)
    beats.find(INSTANT)
    beats.stop(INSTANT)
    assert [method for method, _ in counted.calls] == ["create", "read", "stat", "delete"]
