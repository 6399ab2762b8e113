"""The stream tells the metastore of its commits, and goes on as before when the metastore is down, slow or wrong."""

from __future__ import annotations

import http.server
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from binlake.stream.monitoring.metrics import StreamMetrics
from binlake.tables.lake import Lake
from hudilake.errors import TransientError, UnsupportedError
from hudilake.storage import open_storage
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.client.registration import QueuedRegistrar, Registrar, registrar_of
from lakemetastore.lake.lake_tables import LakeTables
from lakemetastore.lake.named import NamedLake
from lakemetastore.lake.reconcile import Reconciler
from lakemetastore.lake.registration import Registration
from lakemetastore.log.stores.opening import open_store
from lakemetastore.settings.connection import MetastoreConnection
from tests.binlake.tables.clustered import ClusteredLake


@contextmanager
def _serving(answer: Callable[[http.server.BaseHTTPRequestHandler], object]) -> Iterator[str]:
    """A server whose answer to each POST is given; yields its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def _down() -> Iterator[str]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and it does not listen
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def _wrong(request: http.server.BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    request.wfile.write(b"<html>a proxy")


#: Servers by what is wrong with them. The slow one answers when the event has happened.
_SERVERS: dict[str, Callable[[threading.Event], AbstractContextManager[str]]] = {
    "down": lambda _: _down(),
    "slow": lambda answers: _serving(lambda _: answers.wait()),
    "wrong": lambda _: _serving(_wrong),
}


def _attached(table: ClusteredLake, registrar: Registrar) -> None:
    lake: Lake = table.runner._lake
    lake.registrar = registrar
    opened = lake.opened("shop/a")
    if opened is not None:
        opened.registrar = registrar


@pytest.mark.first(2)
@pytest.mark.parametrize("server", _SERVERS)
def test_the_stream_goes_on_without_the_metastore(server: str, tmp_path: Path) -> None:
    table = ClusteredLake(tmp_path, "mor_record_index", "inline")
    answers = threading.Event()
    with _SERVERS[server](answers) as address:
        # A stream that waited for the slow server would wait for ten minutes.
        registrar = registrar_of(MetastoreConnection(uri=address, timeout_seconds=600.0))
        assert isinstance(registrar, QueuedRegistrar)
        with closing(registrar):
            _attached(table, registrar)
            for _ in range(3):
                table.insert(5)
                told = table.run()
                assert (told.error, told.warning) == (None, None)
            answers.set()
            deadline = time.monotonic() + 60
            while not registrar.counts().failed:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            counts = registrar.counts()
        assert (counts.registered, counts.dropped, counts.waiting) == (0, 0, 1)
        assert registrar.counts().dropped == 1
    table.check()


def test_commits_and_services_are_told_and_taken_in(tmp_path: Path) -> None:
    table = ClusteredLake(tmp_path / "lake", "mor_record_index", "inline", retention=3)
    store = open_store(str(tmp_path / "store"))
    lakes = LakeTables(store)
    registration = Registration(Catalog(store), lakes)
    reconciler = Reconciler(registration, [NamedLake.of_root(open_storage(str(tmp_path / "lake")))])
    with closing(QueuedRegistrar(reconciler.completed)) as registrar:
        _attached(table, registrar)
        for _ in range(6):
            table.insert(5)
            table.run()
        registrar.close(wait_s=30)
        counts = registrar.counts()
    assert (counts.failed, counts.dropped, counts.waiting) == (0, 0, 0)
    timeline = table.table().timeline
    known = {(one.requested, one.action) for one in lakes.state(f"file://{table.place}").state.timeline()}
    assert {(one.requested_time, one.action) for one in timeline.completed()} <= known
    assert registration.catalog.tables.names("shop") == ["a", "a_ro", "a_rt"]


def test_what_is_refused_is_dropped_and_said(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(uri: str, instant: str) -> None:
        raise UnsupportedError("the metastore has no such lake", do_next="add it", path=uri, instant=instant)

    with caplog.at_level(logging.WARNING), closing(QueuedRegistrar(refuse)) as registrar:
        registrar.completed("file:///lake/t", "1")
        registrar.close(wait_s=10)
    assert registrar.counts().dropped == 1
    assert "file:///lake/t at 1 is not registered" in caplog.text


def test_only_the_newest_instant_of_a_table_waits() -> None:
    told: list[tuple[str, str]] = []
    answers = threading.Event()

    def tell(uri: str, instant: str) -> None:
        if not answers.is_set():
            raise TransientError("down", do_next="wait")
        told.append((uri, instant))

    with closing(QueuedRegistrar(tell, limit=2, pause_s=0.01)) as registrar:
        for instant in ("1", "3", "2"):
            registrar.completed("a", instant)
        registrar.completed("b", "1")
        registrar.completed("c", "1")
        metrics = StreamMetrics()
        metrics.registered(registrar.counts())
        assert "binlake_metastore_dropped_total 1.0" in metrics.render()
        while not registrar.counts().failed:
            time.sleep(0.001)
        answers.set()
        registrar.close(wait_s=10)
    assert sorted(told) == [("a", "3"), ("b", "1")]
