"""What every store of logs does, one after another."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.metastore.log_stores import Place
from hudilake.errors import ConfigError
from lakemetastore.log.stores.base import Entry, LogStore, TrimmedError

LOG = "tables/0a-b_c"


def _filled(store: LogStore, count: int, log: str = LOG) -> list[Entry]:
    entries = [Entry(version, f"entry {version}".encode()) for version in range(1, count + 1)]
    assert all(store.append(log, entry.version, entry.data) for entry in entries)
    return entries


@pytest.mark.first(6)
def test_entries_are_read_as_they_were_appended(store: LogStore) -> None:
    assert (store.last(LOG), store.read(LOG, 0), store.snapshot(LOG)) == (0, [], None)
    entries = _filled(store, 5)
    assert store.read(LOG, 0) == entries
    assert store.read(LOG, 3) == entries[3:]
    assert store.read(LOG, 1, 2) == entries[1:3]
    assert store.read(LOG, 5) == []
    assert store.last(LOG) == 5
    assert list(store.logs()) == [LOG]


def test_a_version_is_given_once_and_only_behind_the_one_before(store: LogStore) -> None:
    _filled(store, 2)
    assert not store.append(LOG, 2, b"another")
    assert not store.append(LOG, 1, b"another")
    assert not store.append(LOG, 4, b"too far")
    assert not store.append("catalog", 2, b"too far")
    assert store.read(LOG, 0) == [Entry(1, b"entry 1"), Entry(2, b"entry 2")]
    assert store.last("catalog") == 0
    assert store.append(LOG, 3, b"third")


@pytest.mark.first(7)
def test_of_many_threads_one_wins_each_version(store: LogStore) -> None:
    threads, start = 8, threading.Barrier(8)

    def append(thread: int, version: int) -> bool:
        start.wait()
        return store.append(LOG, version, f"{thread}".encode())

    with ThreadPoolExecutor(threads) as pool:
        for version in (1, 2, 3):
            won = list(pool.map(append, range(threads), [version] * threads))
            assert won.count(True) == 1
            assert store.read(LOG, version - 1) == [Entry(version, f"{won.index(True)}".encode())]


@pytest.mark.first(6)
def test_large_and_empty_values_come_back(store: LogStore) -> None:
    large = bytes(range(256)) * 20_000
    assert store.append(LOG, 1, large)
    assert store.append(LOG, 2, b"")
    store.write_snapshot(LOG, 2, large)
    assert store.read(LOG, 0) == [Entry(1, large), Entry(2, b"")]
    assert store.snapshot(LOG) == Entry(2, large)


def test_two_snapshots_stay(store: LogStore) -> None:
    _filled(store, 6)
    for version in (2, 4, 6):
        store.write_snapshot(LOG, version, f"state {version}".encode())
    store.write_snapshot(LOG, 6, b"state 6")
    assert store.snapshot(LOG) == Entry(6, b"state 6")
    assert store.snapshot(LOG, before=6) == Entry(4, b"state 4")
    assert len(store.read(LOG, 0)) == 6


def test_a_deleted_log_takes_no_snapshot(store: LogStore) -> None:
    _filled(store, 2)
    store.delete(LOG)
    store.write_snapshot(LOG, 2, b"state 2")
    assert (store.snapshot(LOG), store.last(LOG), list(store.logs())) == (None, 0, [])


@pytest.mark.first(7)
def test_only_what_a_snapshot_covers_is_forgotten(store: LogStore) -> None:
    entries = _filled(store, 6)
    store.trim(LOG, 6)
    assert store.read(LOG, 0) == entries
    store.write_snapshot(LOG, 4, b"state 4")
    store.trim(LOG, 5)
    assert store.read(LOG, 0) == entries
    store.trim(LOG, 3)
    assert store.read(LOG, 3) == entries[3:]
    for after in (0, 1, 2):
        with pytest.raises(TrimmedError):
            store.read(LOG, after)
    assert store.last(LOG) == 6
    assert not store.append(LOG, 6, b"another")
    assert store.append(LOG, 7, b"entry 7")


def test_a_log_whose_entries_are_all_covered_goes_on(store: LogStore) -> None:
    _filled(store, 3)
    store.write_snapshot(LOG, 3, b"state 3")
    store.trim(LOG, 3)
    assert (store.last(LOG), store.read(LOG, 3), store.snapshot(LOG)) == (3, [], Entry(3, b"state 3"))
    with pytest.raises(TrimmedError):
        store.read(LOG, 1)
    assert not store.append(LOG, 3, b"another")
    assert store.append(LOG, 4, b"entry 4")
    assert store.read(LOG, 3) == [Entry(4, b"entry 4")]


def test_a_reader_that_is_ahead_of_the_log_is_told(store: LogStore) -> None:
    _filled(store, 2)
    with pytest.raises(TrimmedError):
        store.read(LOG, 3)
    store.delete(LOG)
    with pytest.raises(TrimmedError):
        store.read(LOG, 2)


def test_logs_are_apart(store: LogStore) -> None:
    for log in ("tables", "tables/a", "tables/ab", "table_", "tablex"):
        _filled(store, 2, log)
        store.write_snapshot(log, 2, log.encode())
    assert list(store.logs()) == ["table_", "tables", "tables/a", "tables/ab", "tablex"]
    assert list(store.logs("tables/")) == ["tables/a", "tables/ab"]
    assert list(store.logs("tables/a")) == ["tables/a", "tables/ab"]
    assert list(store.logs("table_")) == ["table_"]
    store.delete("tables")
    store.delete("tables/a")
    store.delete("tables/none")
    assert list(store.logs()) == ["table_", "tables/ab", "tablex"]
    assert (store.last("tables"), store.snapshot("tables"), store.read("tables", 0)) == (0, None, [])
    assert store.snapshot("tables/ab") == Entry(2, b"tables/ab")


def test_another_opening_of_the_store_sees_the_same(place: Place, store: LogStore) -> None:
    _filled(store, 2)
    other = place.open()
    assert other.read(LOG, 1) == [Entry(2, b"entry 2")]
    assert not other.append(LOG, 2, b"another")
    assert other.append(LOG, 3, b"entry 3")
    assert store.read(LOG, 2) == [Entry(3, b"entry 3")]
    other.close()


@pytest.mark.first(44)
@pytest.mark.parametrize("log", ["", "/a", "a/", "A", "a//b", "../a", "a.b", "a" * 256])
def test_a_name_that_is_none_is_refused(store: LogStore, log: str) -> None:
    with pytest.raises(ConfigError, match="no name of a log"):
        store.append(log, 1, b"")
    with pytest.raises(ConfigError, match="no name of a log"):
        store.read(log, 0)


def test_a_turn_comes_up_and_does_not_exclude(store: LogStore) -> None:
    with store.turn(LOG, 1) as mine, store.turn(LOG, 0.1) as theirs:
        assert not theirs
        assert store.append(LOG, 1, b"")
    with store.turn(LOG, 1) as again:
        assert again == mine
