"""The Thrift server without a catalog: messages, limits, ends."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest
from thrift.Thrift import TApplicationException

from lakemetastore.catalog.catalog import Catalog
from lakemetastore.hive.context import Services
from lakemetastore.hive.functions import Functions
from lakemetastore.hive.hive_calls import HiveCalls
from lakemetastore.hive.limits import Limits
from lakemetastore.hive.locks import Locks
from lakemetastore.hive.server import ThriftServer, listen
from lakemetastore.hive.session import Session
from lakemetastore.hive.wire import MessageReader, ThriftMessage
from lakemetastore.log.stores.base import LogStore
from tests.lakemetastore.hive.clients import client, raw
from tests.lakemetastore.hive.conftest import Calls

GET_NAME = b"\x80\x01\x00\x01\x00\x00\x00\x07getName\x00\x00\x00\x07\x00"


Start = Callable[..., ThriftServer]  # limits by name


@pytest.fixture
def services(store: LogStore) -> Services:
    return Services(Catalog(store), Locks(store), Functions(store), {"hive.x": "1"})


@pytest.fixture
def start(services: Services, calls: Calls) -> Iterator[Start]:
    servers: list[ThriftServer] = []

    def started(**limits: float) -> ThriftServer:
        server = ThriftServer(
            HiveCalls(services, calls),
            listener=listen("127.0.0.1", 0),
            limits=Limits(**limits),  # type: ignore[arg-type]
            on_call=calls,
        )
        server.start()
        servers.append(server)
        return server

    yield started
    for server in servers:
        server.stop(drain_seconds=1.0)


def test_calls_that_need_no_catalog(start: Start, calls: Calls) -> None:
    server = start()
    with client(server.address) as c:
        assert c.getName() == "new db based metaserver"
        assert c.getStatus() == 2
        assert c.aliveSince() > 1_600_000_000
        assert c.set_ugi("spark", ["a", "b"]) == ["a", "b"]
        assert c.get_config_value("hive.x", "2") == "1"
        assert c.get_config_value("hive.y", "2") == "2"
        c.shutdown()
        assert c.getVersion() == "3.0"
    assert ("shutdown", "ok") in calls.outcomes


def test_an_unknown_method_is_answered_as_by_thrift_and_the_connection_goes_on(start: Start, calls: Calls) -> None:
    with client(start().address) as c:
        with pytest.raises(TApplicationException) as unknown:
            c.get_resource_plan(None)
        assert unknown.value.type == TApplicationException.UNKNOWN_METHOD
        assert unknown.value.message == "Invalid method name: 'get_resource_plan'"
        assert c.getStatus() == 2
    assert calls.outcomes[0] == ("-", "unsupported")


def test_a_message_may_come_byte_by_byte_and_several_at_once(start: Start) -> None:
    with raw(start().address) as sock:
        for byte in GET_NAME:
            sock.sendall(bytes([byte]))
        one = _answer(sock)
        sock.sendall(GET_NAME * 3)
        reader = _reader(sock)
        assert [reader.read(), reader.read(), reader.read()] == [one] * 3


def test_the_older_form_without_a_version_is_read(start: Start) -> None:
    with raw(start().address) as sock:
        sock.sendall(b"\x00\x00\x00\x07getName\x01\x00\x00\x00\x07\x00")
        assert b"new db based metaserver" in _answer(sock).raw


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        struct.pack("!I", len(GET_NAME)) + GET_NAME,
        GET_NAME[:-1] + b"\x0b\x00\x01\x7f\xff\xff\xff",
        GET_NAME[:-1] + b"\x0b\x00\x01\xff\xff\xff\xff",
        GET_NAME[:-1] + b"\x0f\x00\x01\x0b\x7f\xff\xff\xff",
        GET_NAME[:-1] + b"\x0d\x00\x01\x0b\x0b\x7f\xff\xff\xff",
        GET_NAME[:-1] + b"\x0c\x00\x01" * 1000,
        GET_NAME[:-1] + b"\x63\x00\x01",
        b"\x80\x01\x00\x01\x7f\xff\xff\xff",
    ],
    ids=["http", "tls", "framed", "string-2gb", "string-negative", "list-2g", "map-2g", "depth", "type", "name-2gb"],
)
def test_nonsense_ends_the_connection_and_is_counted(start: Start, calls: Calls, data: bytes) -> None:
    server = start()
    with raw(server.address) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        assert _until_closed(sock) == b""
    assert calls.outcomes == [("-", "malformed")]
    with client(server.address) as c:
        assert c.getStatus() == 2


def test_arguments_of_another_type_are_refused_and_the_connection_goes_on(start: Start, calls: Calls) -> None:
    server = start()
    name = b"set_ugi"
    head = b"\x80\x01\x00\x01\x00\x00\x00\x07" + name + b"\x00\x00\x00\x01"
    with raw(server.address) as sock:
        sock.sendall(head + b"\x0f\x00\x02\x08\x00\x00\x00\x01\x00\x00\x00\x05\x00")
        assert b"cannot be read" in _answer(sock).raw
        sock.sendall(GET_NAME)
        assert b"metaserver" in _answer(sock).raw
    assert calls.outcomes[0] == ("set_ugi", "malformed")


def test_an_unknown_field_of_the_arguments_is_left_out(start: Start) -> None:
    with raw(start().address) as sock:
        sock.sendall(GET_NAME[:-1] + b"\x0b\x00\x63\x00\x00\x00\x02ab\x0c\x00\x64\x00\x00")
        assert b"metaserver" in _answer(sock).raw


def test_a_long_message_is_refused_when_it_is_too_long(start: Start, calls: Calls) -> None:
    with raw(start(message=1000).address) as sock:
        sock.sendall(GET_NAME[:-1] + b"\x0b\x00\x01\x00\x00\x10\x00" + b"x" * 100)
        assert _until_closed(sock) == b""
    assert calls.outcomes == [("-", "malformed")]


def test_silent_and_slow_clients_are_sent_away(start: Start, calls: Calls) -> None:
    server = start(idle_seconds=0.2, message_seconds=0.3)
    with raw(server.address) as silent, raw(server.address) as slow:
        slow.sendall(GET_NAME[:5])
        assert _until_closed(silent) == b""
        assert _until_closed(slow) == b""


def test_idle_clients_do_not_shut_out_others_the_longest_idle_one_goes(start: Start) -> None:
    server = start(connections=3)
    with raw(server.address) as silent, client(server.address) as one, client(server.address) as two:
        assert one.getStatus() == two.getStatus() == 2
        with client(server.address) as further:
            assert further.getStatus() == 2
            assert one.getStatus() == two.getStatus() == 2
        assert _until_closed(silent) == b""
    with contextlib.ExitStack() as crowd:
        for _ in range(20):
            crowd.enter_context(raw(server.address))
        with client(server.address) as late:
            assert late.getStatus() == 2


def test_a_client_is_sent_away_while_all_others_are_being_answered() -> None:
    runs, go = threading.Semaphore(0), threading.Event()

    def answer(session: Session, request: ThriftMessage) -> bytes:
        runs.release()
        assert go.wait(60)
        return b"done"

    server = ThriftServer(answer, listener=listen("127.0.0.1", 0), limits=Limits(connections=2))
    server.start()
    with raw(server.address) as one, raw(server.address) as two:
        for busy in (one, two):
            busy.sendall(GET_NAME)
            assert runs.acquire(timeout=60)
        with raw(server.address) as third:
            assert _until_closed(third) == b""
        go.set()
        assert one.recv(4) == two.recv(4) == b"done"
    server.stop()


def test_stop_lets_a_running_call_end_and_closes_idle_clients() -> None:
    runs, go = threading.Event(), threading.Event()

    def answer(session: Session, request: ThriftMessage) -> bytes:
        runs.set()
        assert go.wait(60)
        return b"done"

    server = ThriftServer(answer, listener=listen("127.0.0.1", 0))
    server.start()
    with raw(server.address) as busy, raw(server.address) as idle:
        busy.sendall(GET_NAME)
        assert runs.wait(60)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        assert _until_closed(idle) == b""
        go.set()
        assert _until_closed(busy) == b"done"
        stopping.join(60)
        assert not stopping.is_alive()


def test_two_servers_share_a_port(services: Services) -> None:
    first = ThriftServer(HiveCalls(services), listener=listen("127.0.0.1", 0, shared=True))
    second = ThriftServer(HiveCalls(services), listener=listen(*first.address, shared=True))
    first.start()
    second.start()
    with client(first.address) as c:
        assert c.getStatus() == 2
    first.stop()
    with client(second.address) as c:
        assert c.getStatus() == 2
    second.stop()


def _answer(sock: socket.socket) -> ThriftMessage:
    message = _reader(sock).read()
    assert message is not None
    return message


def _reader(sock: socket.socket) -> MessageReader:
    return MessageReader(lambda begins: sock.recv(1 << 16), Limits())


def _until_closed(sock: socket.socket) -> bytes:
    got = b""
    try:
        while piece := sock.recv(4096):
            got += piece
    except ConnectionResetError:
        pass
    return got
