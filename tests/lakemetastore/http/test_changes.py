"""Clients that wait for a table's next commit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import urllib3

from hudilake.format.timeline.history_writer import move_to_history
from hudilake.storage import open_storage
from lakemetastore.api import paths
from lakemetastore.http.options import ServeOptions
from tests.hudilake.metadata.indexed_table import IndexedTable
from tests.hudilake.read.lakes import new_table, row
from tests.lakemetastore.http.asking import get, post
from tests.lakemetastore.http.served import serving

WATCH_MS = 100
OPTIONS = ServeOptions(watch_ms=WATCH_MS, waiters=50)


@pytest.fixture
def table(tmp_path: Path) -> IndexedTable:
    table = new_table(tmp_path / "t")
    table.write([row(key, 1) for key in range(6)])
    return table


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with serving([open_storage(str(tmp_path))], OPTIONS) as found:
        yield found


def changes(address: str, table: IndexedTable, **fields: str) -> dict[str, Any]:
    status, answer = get(address, paths.CHANGES, location=table.storage.uri, **fields)
    assert status == 200, answer
    return answer


def checks(address: str) -> int:
    return metric(address, "table_checks")


def metric(address: str, name: str) -> int:
    text = urllib3.request("GET", address + paths.METRICS).data.decode()
    return int(float(text.partition(f"\nbinlake_metastore_{name} ")[2].partition("\n")[0]))


def until_clients_wait(address: str, count: int) -> None:
    """Return when so many clients wait."""
    end = time.monotonic() + 60
    while metric(address, "waiting_clients") < count:
        assert time.monotonic() < end, "the clients do not wait"
        time.sleep(0.01)


def test_what_commits_wrote_since_a_time(table: IndexedTable, address: str) -> None:
    table.write([row(1, 2)])
    table.compact()
    everything = changes(address, table)["changes"]
    assert [one["instant"]["action"] for one in everything] == ["deltacommit", "deltacommit", "commit"]
    assert list(everything[1]["files"]) == ["part=p1"]
    rest = changes(address, table, since=everything[0]["instant"]["completed"])
    assert rest["changes"] == everything[1:]
    first = changes(address, table, limit="1")
    assert (first["changes"], first["more"]) == (everything[:1], True)
    began = time.monotonic()
    assert changes(address, table, since=everything[-1]["instant"]["completed"], wait_ms="300")["changes"] == []
    assert time.monotonic() - began > 0.25


def test_many_clients_see_a_commit_of_another_writer_by_one_watcher(table: IndexedTable, address: str) -> None:
    """It compares once in an interval, however many wait."""
    newest = changes(address, table)["changes"][-1]["instant"]["completed"]

    def wait() -> float:
        answer = changes(address, table, since=newest, wait_ms="120000")
        assert len(answer["changes"]) == 1
        return time.monotonic()

    with ThreadPoolExecutor(40) as pool:
        waiting = [pool.submit(wait) for _ in range(40)]
        until_clients_wait(address, 40)
        began, before = time.monotonic(), checks(address)
        table.write([row(1, 2)])
        committed = time.monotonic()
        seen = max(one.result() for one in waiting)
    after = checks(address)
    print(f"40 clients saw a commit within {seen - committed:.3f} s, {after - before} comparisons")
    assert after - before <= (time.monotonic() - began) * 1000 / WATCH_MS + 1


def test_nobody_waits_nothing_is_asked(table: IndexedTable, address: str) -> None:
    changes(address, table)
    before = checks(address)
    time.sleep(5 * WATCH_MS / 1000)
    assert checks(address) == before


def test_a_registration_wakes_at_once(tmp_path: Path, table: IndexedTable) -> None:
    with serving([open_storage(str(tmp_path))], ServeOptions(watch_ms=60_000)) as address:
        newest = changes(address, table)["changes"][-1]["instant"]["completed"]
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(changes, address, table, since=newest, wait_ms="50000")
            until_clients_wait(address, 1)
            table.write([row(1, 2)])
            instant = table.table.timeline.completed()[-1].requested_time
            post(address, paths.INSTANTS, {"location": table.storage.uri, "instant": instant})
            assert waiting.result(40)["changes"][0]["instant"]["requested"] == instant


def test_no_more_clients_wait_than_allowed_and_a_stop_answers_all(tmp_path: Path, table: IndexedTable) -> None:
    newest = table.table.timeline.completed()[-1].completion_time or ""
    fields = {"location": table.storage.uri, "since": newest, "wait_ms": "30000"}
    answers: list[int] = []

    with serving([open_storage(str(tmp_path))], ServeOptions(waiters=2)) as address:
        threads = [
            threading.Thread(target=lambda: answers.append(get(address, paths.CHANGES, **fields)[0])) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        until_clients_wait(address, 2)
        status, problem = get(address, paths.CHANGES, **fields)
        assert (status, problem["error"]) == (503, "TooManyWaitersError")
    for thread in threads:
        thread.join(25)
    assert answers == [200, 200]


def test_changes_that_were_archived_are_gone(table: IndexedTable, address: str) -> None:
    """The oldest that is left can be asked for; what may have been archived after an earlier time cannot."""
    for number in range(2, 5):
        table.write([row(1, number)])
    move_to_history(table.storage, table.table.timeline.completed()[:2], ())
    status, problem = get(address, paths.CHANGES, location=table.storage.uri)
    assert (status, problem["error"]) == (410, "GoneError")
    assert len(changes(address, table, since=problem["where"]["oldest"])["changes"]) == 1
