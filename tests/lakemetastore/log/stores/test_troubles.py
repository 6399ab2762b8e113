"""Logs on stores that are in trouble: deleted beside writers, connections cut."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.metastore.log_stores import Place
from hudilake.storage import StorageError
from lakemetastore.log.errors import LogOutcomeUnknownError
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.stores.base import LogStore
from lakemetastore.log.versioned import VersionedLog
from tests.hudilake.locking.workers import wait_until
from tests.lakemetastore.log.counters import FOLD, Change, Counters, counting
from tests.lakemetastore.log.stores.kinds import place_of
from tests.services.databases import SqlServer

LOG = "tables/a"
_LONGEST_S = 120.0
POLICY = LogPolicy(snapshot_every=5, turn_timeout_s=1)


class GoneError(Exception):
    """The log that a writer wants to go on with is not there."""


def _log(store: LogStore) -> VersionedLog[Counters, Change]:
    return VersionedLog(store, LOG, FOLD, POLICY)


def _go_on(name: str) -> Callable[[Counters], Change]:
    def propose(state: Counters) -> Change:
        if not state.numbers:
            raise GoneError
        return counting(name)(state)

    return propose


@pytest.mark.first(5)
def test_a_log_that_is_deleted_beside_its_writers_is_gone(place: Place, store: LogStore) -> None:
    _log(store).commit(counting("first"))
    names, over = ("a", "b", "c"), threading.Event()

    def write(name: str) -> int:
        """Each on a log of its own, as processes have it."""
        log, done = _log(store), 0
        while not over.is_set():
            try:
                done = log.commit(_go_on(name)).version
            except (GoneError, LogOutcomeUnknownError):  # the entry went with the log while it was written
                log.close()
                return done
        raise AssertionError("the log did not go")

    with ThreadPoolExecutor(len(names)) as pool:
        try:
            writing = [pool.submit(write, name) for name in names]
            reader = _log(store)
            wait_until(lambda: reader.state().version >= 12 and {*names} <= reader.state().state.numbers.keys())
            reader.delete()
            assert all(each.result(timeout=_LONGEST_S) > 0 for each in writing)
        finally:
            over.set()
    assert (store.last(LOG), store.read(LOG, 0), store.snapshot(LOG), list(store.logs())) == (0, [], None, [])
    assert reader.state().state == Counters()


@pytest.mark.full
@pytest.mark.database
def test_a_log_on_mariadb_outlives_its_connections(request: pytest.FixtureRequest, log_mariadb: SqlServer) -> None:
    _outlives("mariadb", request, lambda: _cut_mariadb(log_mariadb))


@pytest.mark.postgresql
def test_a_log_on_postgresql_outlives_its_connections(
    request: pytest.FixtureRequest, log_postgresql: SqlServer
) -> None:
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'store%'"
    _outlives("postgresql", request, lambda: log_postgresql.service.execute(cut))


def _cut_mariadb(server: SqlServer) -> Sequence[object]:
    found = "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE user = 'binlake'"
    kills = [str(line) for line in server.service.execute(found)]
    server.service.execute("".join(kills))
    return kills


def _outlives(kind: str, request: pytest.FixtureRequest, cut: Callable[[], Sequence[object]]) -> None:
    place = place_of(kind, request.getfixturevalue, request.getfixturevalue("tmp_path"))
    store = place.open()
    log = _log(store)
    log.commit(counting("a"))
    for number in range(2, 6):
        assert cut()
        assert log.state().version == number - 1
        assert cut()
        assert log.commit(counting("a")).state.numbers == {"a": number}
    store.close()


def test_a_database_that_does_not_answer_is_told_without_its_password() -> None:
    place = Place("postgresql", "postgresql://me@127.0.0.1:1/none", {"password": "hush"})
    with pytest.raises(StorageError, match="cannot make its tables in the database") as caught:
        place.open().last(LOG)
    assert "hush" not in str(caught.value)
    assert "me:***@127.0.0.1:1/none" in str(caught.value)
