"""Requests as bytes and the time to the last byte of their answers: what a client does with an answer is not counted.

The protocol has no frames. The end of an answer is found once, by asking something short after it on the same
connection; later answers to the same request have the same length.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hive_metastore import ThriftHiveMetastore as Hive
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from hudilake.clock import monotonic_s

_RECEIVE = 1 << 20
_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Question:
    """A request as bytes, and how many bytes answer it."""

    request: bytes
    answer: int


def request(method: str, *arguments: object) -> bytes:
    """The bytes of a call."""
    names = [spec[2] for spec in getattr(Hive, f"{method}_args").thrift_spec if spec]
    return _message(method, getattr(Hive, f"{method}_args")(**dict(zip(names, arguments, strict=True))))


def _message(method: str, arguments: object) -> bytes:
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocol(buffer)
    protocol.writeMessageBegin(method, TMessageType.CALL, 0)
    arguments.write(protocol)  # type: ignore[attr-defined]
    protocol.writeMessageEnd()
    return bytes(buffer.getvalue())


def connected(host: str, port: int) -> socket.socket:
    """A connection without delays."""
    connection = socket.create_connection((host, port), timeout=_TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def question(host: str, port: int, sent: bytes) -> Question:
    """Ask once, to learn how long the answer is."""
    after = _message("get_all_databases", Hive.get_all_databases_args())
    with connected(host, port) as connection:
        connection.sendall(after)
        tail = connection.recv(_RECEIVE)
        connection.sendall(sent + after)
        size, end = 0, b""
        while not end.endswith(tail) or size <= len(tail):
            got = _received(connection)
            size, end = size + len(got), (end + got)[-len(tail) :]
    return Question(sent, size - len(tail))


def seconds(connection: socket.socket, asked: Question) -> float:
    """The time from the request to the last byte of its answer."""
    begin = monotonic_s()
    connection.sendall(asked.request)
    left = asked.answer
    while left > 0:
        left -= len(_received(connection))
    return monotonic_s() - begin


def _received(connection: socket.socket) -> bytes:
    got = connection.recv(_RECEIVE)
    if not got:
        raise ConnectionError("the metastore closed the connection within an answer")
    return got


@dataclass
class _Asking:
    """A connection of many: what it waits for."""

    connection: socket.socket
    turn: int
    begin: float = 0.0
    left: int = 0
    due: float = 0.0
    times: list[float] = field(default_factory=list)


def latencies(
    host: str, port: int, asked: Sequence[Question], connections: int, calls: int, pause_s: float
) -> list[float]:
    """Seconds of each call of many connections that ask at the same time.

    Args:
        host, port: of the metastore.
        asked: what each connection asks in turns, beginning at different places.
        connections: how many.
        calls: of each connection.
        pause_s: the time from one request of a connection to its next, if the answer has come; 0: at once.
    """
    with selectors.DefaultSelector() as selector:
        every = [_Asking(connected(host, port), number) for number in range(connections)]
        begin = monotonic_s()
        for number, one in enumerate(every):
            one.due = begin + pause_s * number / connections
            selector.register(one.connection, selectors.EVENT_READ, one)
        idle = list(every)
        while any(len(one.times) < calls for one in every):
            idle = _sent(idle, asked, calls, pause_s)
            wait = max(0.0, min((one.due for one in idle), default=monotonic_s() + 1) - monotonic_s())
            idle += _read([key.data for key, _ in selector.select(wait)])
        for one in every:
            one.connection.close()
    return [took for one in every for took in one.times]


def _sent(idle: list[_Asking], asked: Sequence[Question], calls: int, pause_s: float) -> list[_Asking]:
    """Send what is due; returns the connections that still wait for their time."""
    waiting = []
    for one in idle:
        if len(one.times) >= calls:
            continue
        if one.due > monotonic_s():
            waiting.append(one)
            continue
        chosen = asked[one.turn % len(asked)]
        one.turn, one.begin, one.left = one.turn + 1, monotonic_s(), chosen.answer
        one.due = max(one.due + pause_s, one.begin)
        one.connection.sendall(chosen.request)
    return waiting


def _read(ready: Iterable[_Asking]) -> list[_Asking]:
    """Read what has come; returns the connections whose answer is complete."""
    done = []
    for one in ready:
        one.left -= len(_received(one.connection))
        if one.left <= 0:
            one.times.append(monotonic_s() - one.begin)
            done.append(one)
    return done
