"""The storage-based lock: every answer a store can give to the three conditional writes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hudilake.clock import now_ms
from hudilake.errors import CorruptDataError
from hudilake.locking.base import LockHeldError, LostLockError
from hudilake.locking.process_identity import this_process
from hudilake.locking.storage_lock import LOCK_PATH, LockData, StorageLock
from hudilake.storage import OutcomeUnknownError, StorageError, open_storage
from hudilake.storage.abilities import ConditionalStore, ReplacedError, Version
from tests.conftest import BUCKET
from tests.hudilake.locking.workers import has_lost, wait_until
from tests.hudilake.storage.faults import Fault, http_proxy
from tests.logged import events
from tests.services.s3 import S3Server

Fail = Callable[[Callable[[], Version]], Version]


@dataclass
class Answering:
    """A real store whose next conditional writes get the answers in ``answers``; None: its own."""

    inner: ConditionalStore
    answers: list[Fail | None] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    reads_fail: bool = False

    def read_versioned(self, path: str) -> tuple[bytes, Version]:
        self.calls.append("read")
        if self.reads_fail:
            raise StorageError("no answer")
        return self.inner.read_versioned(path)

    def replace_if(self, path: str, data: bytes, version: Version | None) -> Version:
        self.calls.append("replace")
        answer = self.answers.pop(0) if self.answers else None
        return answer(lambda: self.inner.replace_if(path, data, version)) if answer else self._own(path, data, version)

    def within(self, seconds: float) -> ConditionalStore:
        return self

    def _own(self, path: str, data: bytes, version: Version | None) -> Version:
        return self.inner.replace_if(path, data, version)


def done_but_412(action: Callable[[], Version]) -> Version:
    """The client tried again after a lost answer and met its own write."""
    action()
    raise ReplacedError("412")


def done_but_silent(action: Callable[[], Version]) -> Version:
    action()
    raise OutcomeUnknownError("timeout")


def silent(action: Callable[[], Version]) -> Version:
    """Not done, and no answer."""
    raise OutcomeUnknownError("503")


@pytest.fixture(params=["memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Answering:
    if request.param == "memory":
        found = open_storage(f"memory://locks/{tmp_path.name}")
    else:
        server: S3Server = request.getfixturevalue("s3_server")
        found = open_storage(f"s3://{BUCKET}/locks/{tmp_path.name}", server.options())
    assert isinstance(found, ConditionalStore)
    return Answering(found)


def lock_on(store: ConditionalStore, uri: str = "one", **times: float) -> StorageLock:
    return StorageLock(store, f"memory://{uri}", **{"wait_s": 0.0, "validity_s": 30.0, "renew_s": 10.0, **times})


def content(store: Answering) -> dict[str, Any]:
    found = json.loads(store.inner.read_versioned(LOCK_PATH)[0])
    assert isinstance(found, dict)
    return found


def renewed_after(store: Answering, valid_until_ms: int) -> None:
    """Return when the lock is valid for longer than until then."""
    wait_until(lambda: bool(content(store)["validUntil"] > valid_until_ms), "a renewal")


def put(store: Answering, data: LockData) -> None:
    """Replace the lock, whoever holds it; once more if its owner renews it in between."""
    try:
        version: Version | None = store.inner.read_versioned(LOCK_PATH)[1]
    except StorageError:
        version = None
    try:
        store.inner.replace_if(LOCK_PATH, data.to_bytes(), version)
    except ReplacedError:
        put(store, data)


def test_taken_renewed_and_freed(store: Answering) -> None:
    lock = lock_on(store, renew_s=0.1)
    for _ in range(2):
        with lock:
            lock.check()
            first = content(store)
            assert not first["expired"]
            assert abs(first["validUntil"] - now_ms() - 30_000) < 5_000
            renewed_after(store, first["validUntil"])
            second = content(store)
            assert second["owner"] == first["owner"]
            lock.check()
        freed = content(store)
        assert freed["expired"]
        assert freed["owner"] == second["owner"]
        assert freed["validUntil"] >= second["validUntil"]


def test_what_it_costs(store: Answering) -> None:
    with lock_on(store) as lock:
        lock.check()
    assert store.calls == ["read", "replace", "read", "replace"]


def test_others_wait(store: Answering) -> None:
    with lock_on(store, "one") as lock:
        with pytest.raises(LockHeldError, match=f"process {this_process().pid} on "), lock_on(store, "two", wait_s=0.1):
            pass
        lock.check()
    with lock_on(store, "two") as lock:
        lock.check()


def test_a_foreign_lock_ends_with_its_validity_and_drift(store: Answering) -> None:
    put(store, LockData(False, now_ms() + 300, "a-hudi-writer"))
    with pytest.raises(LockHeldError, match="a-hudi-writer"), lock_on(store, wait_s=0.5):
        pass
    with lock_on(store, wait_s=1.5, validity_s=0.5) as lock:
        lock.check()
    put(store, LockData(True, now_ms() + 60_000, "a-hudi-writer"))
    with lock_on(store) as lock:
        lock.check()


def test_a_dead_process_is_not_waited_for(store: Answering) -> None:
    gone = replace(this_process(), started=-1)
    put(store, LockData(False, now_ms() + 60_000, "x", replace(gone, place="elsewhere")))
    with pytest.raises(LockHeldError), lock_on(store):
        pass
    put(store, LockData(False, now_ms() + 60_000, "x", gone))
    with lock_on(store) as lock:
        lock.check()


# --- what follows upon a write that brought no plain answer ---------------------------------------------------------


def test_a_ghost_of_taking_is_laid(store: Answering) -> None:
    """The attempt counts as failed, and the file is free for everybody."""
    store.answers = [done_but_412]
    with pytest.raises(LockHeldError), lock_on(store):
        pass
    assert content(store)["expired"]
    with lock_on(store, "two") as lock:
        lock.check()


def test_a_ghost_that_came_without_an_answer_is_laid_by_the_next_attempt(store: Answering) -> None:
    lock = lock_on(store)
    store.answers = [done_but_silent]
    with pytest.raises(OutcomeUnknownError), lock:
        pass
    with pytest.raises(LockHeldError), lock_on(store, "two"):
        pass
    with pytest.raises(LockHeldError), lock:
        pass
    assert content(store)["expired"]
    with lock:
        lock.check()


@pytest.mark.parametrize("fail", [done_but_412, done_but_silent, silent])
def test_taking_goes_on_after_any_answer(store: Answering, fail: Fail) -> None:
    store.answers = [fail, None]
    with lock_on(store, wait_s=2) as lock:
        lock.check()
        with pytest.raises(LockHeldError), lock_on(store, "two"):
            pass


def test_taking_without_any_answer_tells_so(store: Answering) -> None:
    store.answers = [silent] * 1000
    with pytest.raises(OutcomeUnknownError), lock_on(store, wait_s=0.1):
        pass
    store.answers, store.reads_fail = [], True
    with pytest.raises(StorageError, match="no answer"), lock_on(store, wait_s=0.1):
        pass
    store.reads_fail = False
    with lock_on(store):
        pass


def test_a_race_is_lost_to_another(store: Answering) -> None:
    def other(action: Callable[[], Version]) -> Version:
        put(store, LockData(False, now_ms() + 60_000, "faster"))
        return action()

    store.answers = [other]
    with pytest.raises(LockHeldError, match="faster"), lock_on(store):
        pass
    assert not content(store)["expired"]


@pytest.mark.parametrize("fail", [done_but_412, done_but_silent, silent])
def test_a_renewal_with_any_answer_keeps_it(store: Answering, fail: Fail) -> None:
    with lock_on(store, validity_s=60, renew_s=0.1) as lock:
        first = content(store)["validUntil"]
        store.answers = [fail, fail, None]
        wait_until(lambda: not store.answers)
        renewed_after(store, first)
        lock.check()
    assert content(store)["expired"]


def test_a_renewal_that_meets_another_owner_loses_it(store: Answering) -> None:
    with lock_on(store, validity_s=60, renew_s=0.1) as lock:
        put(store, LockData(False, now_ms() + 60_000, "thief"))
        wait_until(lambda: has_lost(lock), "a renewal")
        with pytest.raises(LostLockError, match="another process has replaced"):
            lock.check()
    assert content(store) == {"expired": False, "validUntil": content(store)["validUntil"], "owner": "thief"}


@pytest.mark.first(1)
def test_renewals_without_any_answer_lose_it_with_the_validity(
    store: Answering, caplog: pytest.LogCaptureFixture
) -> None:
    with lock_on(store, validity_s=3.0, renew_s=0.1) as lock:
        store.answers = [silent] * 10_000
        lock.check()
        wait_until(lambda: has_lost(lock), "the end of the validity")
        store.answers = []
        time.sleep(0.2)
        with pytest.raises(LostLockError, match="last renewed"):
            lock.check()
        assert events(caplog)["lock_not_renewed"]["levelname"] == "WARNING"
    with lock_on(store, "two", wait_s=60, validity_s=1.0, renew_s=0.1):
        pass


@pytest.mark.parametrize("fail", [done_but_412, done_but_silent, silent])
def test_freeing_with_any_answer_frees_it(store: Answering, fail: Fail) -> None:
    with lock_on(store):
        store.answers = [fail, None]
    assert content(store)["expired"]


def test_freeing_without_any_answer_leaves_it_to_its_validity(
    store: Answering, caplog: pytest.LogCaptureFixture
) -> None:
    lock = lock_on(store, validity_s=1.0)
    with lock:
        store.answers = [silent] * 1000
    store.answers = []
    assert events(caplog)["lock_not_released"]["levelname"] == "WARNING"
    with pytest.raises(LockHeldError), lock_on(store, "two"):
        pass
    with lock_on(store, "two", wait_s=60, validity_s=1.0, renew_s=0.1):
        pass


def test_what_was_ours_and_not_freed_is_taken_again_at_once(store: Answering) -> None:
    lock = lock_on(store, validity_s=30, wait_s=1)
    with lock:
        store.answers = [silent] * 1000
    store.answers = []
    with lock:
        lock.check()


def test_freeing_leaves_anothers_alone(store: Answering) -> None:
    with lock_on(store):
        put(store, LockData(False, now_ms() + 60_000, "thief"))
    assert (content(store)["owner"], content(store)["expired"]) == ("thief", False)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'{"expired":null,"validUntil":1,"owner":"x"}', b'{"expired":true,"validUntil":"1","owner":"x"}'],
)
def test_a_file_that_is_none_is_refused(store: Answering, body: bytes) -> None:
    store.inner.replace_if(LOCK_PATH, body, None)
    with pytest.raises(CorruptDataError, match="lock file"), lock_on(store):
        pass


def test_through_a_connection_that_loses_every_first_answer(s3_server: S3Server, tmp_path: Path) -> None:
    """The real client's own retries: each of the three writes is done, answered with an error, and tried again."""
    with http_proxy(s3_server.endpoint) as proxy:
        found = open_storage(f"s3://{BUCKET}/locks/{tmp_path.name}", s3_server.options(endpoint=proxy.endpoint))
        assert isinstance(found, ConditionalStore)
        lost = Fault("PUT", 503, reaches_store=True)
        proxy.faults = [lost]
        with lock_on(found, wait_s=10) as lock:
            assert lost.times == 0
            lock.check()
            lost.times = 1
        assert lost.times == 0
        assert json.loads(found.read_versioned(LOCK_PATH)[0])["expired"]
