"""Bytes that are no requests: they cost the connection at most, never the server or its memory."""

from __future__ import annotations

import socket
import struct
import tracemalloc

from hive_metastore import ThriftHiveMetastore
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from lakemetastore.catalog.catalog import Catalog
from lakemetastore.hive.context import Services
from lakemetastore.hive.functions import Functions
from lakemetastore.hive.hive_calls import HiveCalls
from lakemetastore.hive.limits import Limits
from lakemetastore.hive.locks import Locks
from lakemetastore.hive.session import Session
from lakemetastore.hive.wire import MalformedMessageError, Message, MessageReader
from lakemetastore.log.stores.opening import open_store
from tests.lakemetastore.hive.clients import client, raw
from tests.lakemetastore.hive.hive_server import HiveServer
from tests.lakemetastore.hive.samples import partition, table


def request(name: str, *arguments: object) -> bytes:
    buffer = TMemoryBuffer()
    getattr(ThriftHiveMetastore.Client(TBinaryProtocol(buffer)), f"send_{name}")(*arguments)
    sent: bytes = buffer.getvalue()
    return sent


SAMPLES = (
    request("create_table", table()),
    request("add_partitions", [partition("d", "1"), partition("d", "2", parameters={"p": "1"})]),
    request("get_partitions_by_filter", "sales", "orders", "dt = 'd'", -1),
    request("get_table_meta", "*", "*", ["VIRTUAL_VIEW"]),
    request("get_all_databases"),
)
LIMITS = Limits(message=1 << 20, string=1 << 16, container=1000)
STORE = open_store("memory://hive/malformed")
CALLS = HiveCalls(Services(Catalog(STORE), Locks(STORE), Functions(STORE)))


def read(data: bytes, piece: int) -> list[Message]:
    pieces = iter([data[i : i + piece] for i in range(0, len(data), piece)])
    reader = MessageReader(lambda begins: next(pieces, b""), LIMITS)
    messages = []
    try:
        while message := reader.read():
            messages.append(message)
    except MalformedMessageError:
        pass
    return messages


@given(st.lists(st.sampled_from(SAMPLES), max_size=4), st.integers(1, 300))
def test_messages_are_the_same_however_they_are_cut(sent: list[bytes], piece: int) -> None:
    assert [message.raw for message in read(b"".join(sent), piece)] == sent


@given(st.sampled_from(SAMPLES), st.data())
def test_broken_messages_are_refused_or_answered(sample: bytes, data: st.DataObject) -> None:
    broken = bytearray(sample)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(broken) - 1))
        broken[at] = data.draw(st.integers(0, 255))
    cut = broken[: data.draw(st.integers(0, len(broken)))] if data.draw(st.booleans()) else broken
    for message in read(bytes(cut), data.draw(st.integers(1, 200))):
        answered = CALLS(Session("here"), message)
        assert answered is None or isinstance(answered, bytes)


@given(st.binary(max_size=200), st.integers(1, 50))
def test_noise_is_refused(noise: bytes, piece: int) -> None:
    for message in read(noise, piece):
        CALLS(Session("here"), message)


def test_an_announced_length_takes_no_memory(server: HiveServer) -> None:
    head = b"\x80\x01\x00\x01\x00\x00\x00\x09get_table\x00\x00\x00\x01"
    lengths = [2**31 - 1, 60 << 20]
    tracemalloc.start()
    sockets = []
    try:
        for length in lengths * 10:
            sock = socket.create_connection(server.address)
            sockets.append(sock)
            sock.sendall(head + b"\x0b\x00\x01" + struct.pack("!i", length) + b"x" * 1000)
        with client(server.address) as c:
            assert c.get_all_databases() == ["default"]
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
        for sock in sockets:
            sock.close()


def test_a_client_that_takes_no_answers_holds_up_nobody(server: HiveServer) -> None:
    with raw(server.address) as greedy, client(server.address) as c:
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greedy.setblocking(False)
        try:
            while True:
                greedy.send(SAMPLES[-1] * 100)
        except BlockingIOError:
            pass
        assert c.get_all_databases() == ["default"]
