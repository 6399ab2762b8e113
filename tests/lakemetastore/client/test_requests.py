"""Requests when addresses are down, slow, wrong, or come back."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hudilake.errors import ConfigError, TransientError
from hudilake.read import TableReader
from hudilake.read.source import KnownTable, Selection, SliceQuestion
from hudilake.storage import open_storage
from lakemetastore.api import paths
from lakemetastore.api.tables import TableWire
from lakemetastore.client.plans import ServicePlans
from lakemetastore.client.registration import register
from lakemetastore.client.requests import MetastoreClient, MetastoreUnreachableError, RefusedRequestError
from tests.hudilake.metadata.indexed_table import IndexedTable
from tests.hudilake.read.lakes import ids, new_table, row
from tests.lakemetastore.http.served import serving
from tests.services.certificates import Authority


@pytest.fixture
def table(tmp_path: Path) -> IndexedTable:
    table = new_table(tmp_path / "t")
    table.write([row(key, 1) for key in range(12)])
    return table


@contextlib.contextmanager
def silent() -> Iterator[Silent]:
    """An address that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Silent(listener)


class Silent:
    """Who was asked and does not answer."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        listener.setblocking(False)
        self.address = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def asked(self) -> int:
        """How many connections were made since the last time."""
        for count in itertools.count():
            try:
                self._listener.accept()[0].close()
            except BlockingIOError:
                return count
        raise AssertionError


@contextlib.contextmanager
def saying(body: bytes, status: int = 200) -> Iterator[str]:
    """An address that says the same to everything."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def refused_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def state(client: MetastoreClient, table: IndexedTable) -> str:
    return client.ask("GET", paths.TABLE, TableWire, {"location": table.storage.uri}).state


@pytest.mark.full
def test_the_next_address_answers(table: IndexedTable, tmp_path: Path) -> None:
    """And the one that failed is left alone for a while, so that it costs one timeout."""
    with silent() as slow, saying(b"", 503) as busy, serving([open_storage(str(tmp_path))]) as address:
        client = MetastoreClient([slow.address, refused_port(), busy, address], timeout_s=5.0, pause_s=600)
        first = state(client, table)
        assert slow.asked() == 1
        assert state(client, table) == first
        assert slow.asked() == 0
        assert state(pickle.loads(pickle.dumps(client)), table) == first


def test_without_any_address_a_request_fails_at_once(table: IndexedTable) -> None:
    with silent() as slow:
        client = MetastoreClient(f"{slow.address}, {refused_port()}", timeout_s=0.2, pause_s=600)
        with pytest.raises(MetastoreUnreachableError, match="does not answer"):
            state(client, table)
        assert slow.asked() == 1
        with pytest.raises(MetastoreUnreachableError, match="failed a moment ago"):
            state(client, table)
        assert slow.asked() == 0


def test_an_address_is_asked_again_after_the_pause(table: IndexedTable, tmp_path: Path) -> None:
    address = refused_port()
    client = MetastoreClient(address, timeout_s=30.0, pause_s=0.2)
    with pytest.raises(MetastoreUnreachableError):
        state(client, table)
    with serving([open_storage(str(tmp_path))], port=int(address.rpartition(":")[2])):
        time.sleep(0.2)
        assert state(client, table)


def test_a_refusal_has_the_words_of_the_service(table: IndexedTable, tmp_path: Path) -> None:
    with serving([open_storage(str(tmp_path))]) as address:
        client = MetastoreClient(address)
        with pytest.raises(RefusedRequestError, match="none of the service's lakes") as caught:
            client.ask("GET", paths.TABLE, TableWire, {"location": "file:///etc"})
        assert caught.value.status == 404
        newest = table.table.timeline.completed()[-1].requested_time
        assert register(client, table.storage.uri, newest).seen


@pytest.mark.parametrize("uris", ["", "thrift://a:1", "http://", "a:1"])
def test_addresses_that_are_none(uris: str) -> None:
    with pytest.raises(ConfigError, match="no address"):
        MetastoreClient(uris)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"state": 3}', b"[" * 5000])
def test_answers_that_are_none(table: IndexedTable, body: bytes) -> None:
    with saying(body) as address, pytest.raises(TransientError, match="not understood"):
        state(MetastoreClient(address), table)


def test_readers_go_on_from_storage(table: IndexedTable, tmp_path: Path) -> None:
    """When the service is down, slow, something else, or knows another table; the plan says so."""
    location = str(tmp_path / "t")
    alone = TableReader.open(location)
    expected = alone.plan(condition="id < 5")
    other = new_table(tmp_path / "other" / "t")
    other.write([row(1, 1)])
    with silent() as slow, saying(b"{}") as wrong, serving([open_storage(str(tmp_path / "other"))]) as elsewhere:
        for address in (refused_port(), slow.address, wrong, elsewhere):
            source = ServicePlans(MetastoreClient(address, timeout_s=0.2))
            reader = TableReader.open(location, service=source)
            plan = reader.plan(condition="id < 5")
            assert plan.warnings[0].step == "metastore"
            assert (plan.slices, plan.steps) == (expected.slices, expected.steps)
            assert ids(reader, plan) == [0, 1, 2, 3, 4]


def test_a_service_that_dies_between_two_plans(table: IndexedTable, tmp_path: Path) -> None:
    with serving([open_storage(str(tmp_path))]) as address:
        reader = TableReader.open(str(tmp_path / "t"), service=ServicePlans(MetastoreClient(address, timeout_s=30.0)))
        assert not reader.plan().warnings
        table.write([row(20, 2)])
        assert 20 in ids(reader, reader.plan(columns=["id"]))
    table.write([row(21, 3)])
    plan = reader.plan(columns=["id"])
    assert plan.warnings
    assert {20, 21} <= set(ids(reader, plan))


def test_files_that_no_completed_commit_wrote_are_not_read(table: IndexedTable, tmp_path: Path) -> None:
    """The service answers by the files of another table with the same name of its state: the reader sees it."""
    other = new_table(tmp_path / "other")
    other.write([row(key, 5) for key in range(12)])
    with serving([open_storage(str(tmp_path))]) as address:
        honest = ServicePlans(MetastoreClient(address))

        class Mixed(ServicePlans):
            def select(self, location: str, state: str, question: SliceQuestion) -> Selection | KnownTable:
                known = honest.table(other.storage.uri)
                return honest.select(other.storage.uri, known.state, question)

        reader = TableReader.open(str(tmp_path / "t"), service=Mixed(honest.connection))
        plan = reader.plan(condition="id < 5")
        assert "did not complete" in plan.warnings[0].what
        assert ids(reader, plan) == [0, 1, 2, 3, 4]


def test_tls(table: IndexedTable, tmp_path: Path) -> None:
    """A certificate of the given authority is taken, one of any other is not."""
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    with serving([open_storage(str(tmp_path))], identity=ours.identity("metastore")) as address:
        assert state(MetastoreClient(address, ca_file=str(ours.file)), table)
        for ca_file in (None, str(other.file)):
            with pytest.raises(MetastoreUnreachableError, match="certificate"):
                state(MetastoreClient(address, ca_file=ca_file), table)
