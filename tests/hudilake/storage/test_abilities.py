"""What only some stores can do: conditional replaces, touching, writing without syncing."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from hudilake.clock import now_ms
from hudilake.storage import OutcomeUnknownError, Storage, StorageError, StorageNotFoundError, open_storage
from hudilake.storage.abilities import ConditionalStore, DurableWrites, ReplacedError, Touchable, Version, unsynced
from hudilake.storage.local import LocalStorage
from tests.conftest import BUCKET
from tests.hudilake.storage.faults import Fault, http_proxy
from tests.services.s3 import S3Server

PATH = "locks/one.json"


@pytest.fixture(params=["memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ConditionalStore:
    if request.param == "memory":
        found = open_storage(f"memory://conditional/{tmp_path.name}")
    else:
        server: S3Server = request.getfixturevalue("s3_server")
        found = open_storage(f"s3://{BUCKET}/conditional/{tmp_path.name}", server.options())
    assert isinstance(found, ConditionalStore)
    return found


def test_a_replace_needs_the_version_that_is_there(store: ConditionalStore) -> None:
    with pytest.raises(StorageNotFoundError):
        store.read_versioned(PATH)
    first = store.replace_if(PATH, b"one", None)
    with pytest.raises(ReplacedError):
        store.replace_if(PATH, b"other", None)
    second = store.replace_if(PATH, b"two", first)
    with pytest.raises(ReplacedError):
        store.replace_if(PATH, b"other", first)
    assert store.read_versioned(PATH) == (b"two", second)
    third = store.within(5).replace_if(PATH, b"three", second)
    assert store.read_versioned(PATH) == (b"three", third)


def test_a_replace_of_what_is_gone(store: ConditionalStore) -> None:
    with pytest.raises(ReplacedError):
        store.replace_if(PATH, b"x", Version('"0123"', None))
    with pytest.raises(StorageNotFoundError):
        store.read_versioned(PATH)


def test_of_several_one_replaces(store: ConditionalStore) -> None:
    version = store.replace_if(PATH, b"start", None)
    won: list[int] = []

    def work(n: int) -> None:
        try:
            store.replace_if(PATH, b"%d" % n, version)
            won.append(n)
        except ReplacedError:
            pass

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert store.read_versioned(PATH)[0] == b"%d" % won[0]


def test_no_answer_is_an_unknown_outcome_in_time(s3_server: S3Server, tmp_path: Path) -> None:
    with http_proxy(s3_server.endpoint) as proxy:
        options = s3_server.options(endpoint=proxy.endpoint)
        found = open_storage(f"s3://{BUCKET}/conditional/{tmp_path.name}", options)
        assert isinstance(found, ConditionalStore)
        store = found.within(1)
        version = store.replace_if(PATH, b"one", None)
        proxy.faults.append(Fault("PUT", 503, times=1000))
        began = time.monotonic()
        with pytest.raises(OutcomeUnknownError):
            store.replace_if(PATH, b"two", version)
        assert time.monotonic() - began < 30, "a store without a limit tries for minutes"
        proxy.faults.clear()
        proxy.faults.append(Fault("GET", 503, times=1000))
        with pytest.raises(StorageError):
            store.read_versioned(PATH)


def test_a_done_replace_whose_answer_was_lost(s3_server: S3Server, tmp_path: Path) -> None:
    """Either way the caller has to read: the client's own second try meets what the first has made."""
    with http_proxy(s3_server.endpoint) as proxy:
        options = s3_server.options(endpoint=proxy.endpoint)
        store = open_storage(f"s3://{BUCKET}/conditional/{tmp_path.name}", options)
        assert isinstance(store, ConditionalStore)
        version = store.replace_if(PATH, b"one", None)
        proxy.faults.append(Fault("PUT", 503, reaches_store=True))
        with pytest.raises((ReplacedError, OutcomeUnknownError)):
            store.replace_if(PATH, b"two", version)
        assert store.read_versioned(PATH)[0] == b"two"


def test_touch(storage: Storage) -> None:
    if not isinstance(storage, Touchable):
        assert storage.uri.startswith(("memory:", "s3:"))
        return
    assert not storage.touch("a/b")
    storage.create("a/b", b"x")
    first = storage.stat("a/b")
    assert first is not None
    time.sleep(0.03)
    assert storage.touch("a/b")
    found = storage.stat("a/b")
    assert found is not None
    assert first.modified_ms < found.modified_ms <= now_ms() + 1000
    assert storage.read("a/b") == b"x"


def test_unsynced(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = unsynced(storage)
    quick.create("a/b", b"x")
    assert storage.read("a/b") == b"x"
    assert (quick is storage) == (not isinstance(storage, DurableWrites))
    assert quick.uri == storage.uri
    if not isinstance(storage, LocalStorage):
        return
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    quick.write("a/c", b"x")
    quick.delete("a/c")
    assert synced == []
    storage.write("a/c", b"x")
    assert synced
