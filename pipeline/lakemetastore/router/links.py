"""Connections of one client to backends. A link sends whole requests and gives replies in pieces, undecoded."""

from __future__ import annotations

import logging
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from hudilake.clock import monotonic_s
from lakemetastore.hive.session import Session
from lakemetastore.hive.wire import CALL, ThriftMessage
from lakemetastore.router.errors import BackendDownError, OutcomeUnknownError
from lakemetastore.router.walker import MalformedAnswerError, Walk
from lakemetastore.settings.router import BackendSettings

log = logging.getLogger(__name__)

InProcess = Callable[[Session, ThriftMessage], "bytes | Iterable[bytes] | None"]
"""Answers a request without a connection, as `lakemetastore.hive.connection.Answer`."""

#: Bytes that are read at once: small answers fit into the first piece, large ones take few calls.
_FIRST_PIECE: Final = 16 << 10
_PIECE: Final = 256 << 10
_INT = struct.Struct("!i")
_HEAD = struct.Struct("!ii")
_VERSION: Final = 0x8001


class Link(Protocol):
    """One client's way to one backend."""

    def call(self, request: ThriftMessage, *, repeatable: bool) -> Iterator[bytes]:
        """The reply, piece by piece; no piece if the request wants none. ``repeatable``: the call may be sent twice.

        Raises:
            BackendDownError: before the first piece; the call may have been carried out only if it is repeatable.
            OutcomeUnknownError: before the first piece; the call may have been carried out.
            OSError, MalformedAnswerError: after the first piece.
        """
        ...

    def close(self) -> None:
        """Let the connection go."""
        ...


class Backend:
    """A Hive Metastore at a list of addresses, for all clients: which address answers, and since when none does."""

    def __init__(self, name: str, settings: BackendSettings) -> None:
        self.name = name
        self.settings = settings
        self._lock = threading.Lock()
        self._good = 0
        self._down_until = 0.0
        self._reason = ""
        self.lacks: set[str] = set()
        """Methods that it said it does not have; asked anew after it was down."""

    def connect(self) -> socket.socket:
        """A new connection to the first address that takes one, beginning with the last good one.

        Raises:
            BackendDownError: none takes one, or none did a moment ago.
        """
        with self._lock:
            if monotonic_s() < self._down_until:
                raise self.down(self._reason)
            good = self._good
        addresses = self.settings.addresses
        reasons = []
        for i in range(len(addresses)):
            index = (good + i) % len(addresses)
            try:
                sock = socket.create_connection(addresses[index], timeout=self.settings.connect_seconds)
            except OSError as error:
                reasons.append(f"{addresses[index][0]}:{addresses[index][1]}: {error}")
                continue
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.settimeout(self.settings.answer_seconds)
            with self._lock:
                self._good = index
            return sock
        with self._lock:
            self._reason = "; ".join(reasons)
            self.lacks.clear()
            self._down_until = monotonic_s() + self.settings.retry_seconds
        log.warning("The metastore %s is down: %s", self.name, self._reason)
        raise self.down(self._reason)

    def down(self, reason: str) -> BackendDownError:
        """The error that says so."""
        return BackendDownError(
            f"The metastore {self.name} does not answer ({reason})",
            do_next="try again; it is asked again by itself once it is back",
        )


class _UnansweredError(ConnectionError):
    """The request was sent, and nothing of the reply came."""


class ThriftLink:
    """A connection to a Hive Metastore. ``greetings``: requests that each new connection begins with."""

    def __init__(self, backend: Backend, greetings: dict[str, ThriftMessage]) -> None:
        self._backend = backend
        self._greetings = greetings
        self._sock: socket.socket | None = None
        self._poll = select.poll()

    def call(self, request: ThriftMessage, *, repeatable: bool) -> Iterator[bytes]:
        """Sends the request and gives the reply in pieces; opens a dead connection anew. Errors as ``Link.call``."""
        used = self._alive()
        try:
            first = self._first_piece(request)
        except OSError as error:
            self.close()
            if isinstance(error, _UnansweredError) and not repeatable:
                raise outcome_unknown(self._backend.name, request, error) from error
            if not used or isinstance(error, TimeoutError):
                raise self._backend.down(str(error)) from error
            first = self._first_piece_again(request)
        if first:
            yield from self._pieces(request, first)

    def close(self) -> None:
        """Let the connection go; the next call makes another one."""
        if self._sock is not None:
            self._poll.unregister(self._sock)
            self._sock.close()
            self._sock = None

    def _alive(self) -> bool:
        """Whether a connection from before is there; one that the backend closed or that has unread bytes is not."""
        if self._sock is not None and self._poll.poll(0):
            self.close()
        return self._sock is not None

    def _first_piece(self, request: ThriftMessage) -> bytes:
        """Send the request; the first bytes of the reply, none for a request without one."""
        sock = self._sock or self._connected()
        sock.sendall(request.raw)
        if request.kind != CALL:
            return b""
        try:
            first = sock.recv(_FIRST_PIECE)
        except OSError as error:
            raise _UnansweredError(str(error)) from error
        if not first:
            raise _UnansweredError("the connection was closed before the answer")
        return first

    def _first_piece_again(self, request: ThriftMessage) -> bytes:
        try:
            return self._first_piece(request)
        except OSError as error:
            self.close()
            raise self._backend.down(str(error)) from error

    def _connected(self) -> socket.socket:
        sock = self._sock = self._backend.connect()
        self._poll.register(sock, select.POLLIN)
        for greeting in list(self._greetings.values()):
            sock.sendall(greeting.raw)
            for _ in self._pieces(greeting, self._more()):
                log.debug("The metastore %s was told %s", self._backend.name, greeting.name)
        return sock

    def _pieces(self, request: ThriftMessage, piece: bytes) -> Iterator[bytes]:
        """The reply that begins with a piece. The connection is let go if the reply is not read to its end."""
        complete = False
        try:
            while (start := _body_at(piece, request)) is None:
                piece += self._more()
            walk = Walk()
            taken = start + walk.take(memoryview(piece)[start:])
            while not walk.done:
                yield piece
                piece = self._more()
                taken = walk.take(piece)
            complete = taken == len(piece)
            yield piece[:taken]
        finally:
            if not complete:
                self.close()

    def _more(self) -> bytes:
        assert self._sock is not None
        piece = self._sock.recv(_PIECE)
        if not piece:
            raise ConnectionResetError(f"the metastore {self._backend.name} was lost in the middle of an answer")
        return piece


class InProcessLink:
    """The service's own metastore."""

    def __init__(self, answer: InProcess, session: Session) -> None:
        self._answer = answer
        self._session = session

    def call(self, request: ThriftMessage, *, repeatable: bool) -> Iterator[bytes]:
        """Gives the reply of the service's own metastore in pieces; none if the request wants none."""
        answered = self._answer(self._session, request)
        if isinstance(answered, bytes):
            yield answered
        elif answered is not None:
            yield from answered

    def close(self) -> None:
        """Nothing is kept."""


def outcome_unknown(backend: str, request: ThriftMessage, error: OSError) -> OutcomeUnknownError:
    """The error that says that a change may have been made."""
    return OutcomeUnknownError(
        f"The metastore {backend} was lost before it answered {request.name} ({error})",
        do_next="look whether the change was made before you repeat it",
    )


def _body_at(piece: bytes, request: ThriftMessage) -> int | None:
    """Where the struct of a reply begins; None if the head is not complete yet.

    Raises:
        MalformedAnswerError: it is no reply to this request.
    """
    if len(piece) < 8:
        return None
    version, length = _HEAD.unpack_from(piece)
    if version >> 16 & 0xFFFF != _VERSION or not 0 <= length <= 256:
        raise _no_reply("no head of Thrift's binary protocol")
    if len(piece) < 12 + length:
        return None
    if _INT.unpack_from(piece, 8 + length) != (request.sequence,):
        raise _no_reply("another sequence number than the request's")
    body: int = 12 + length
    return body


def _no_reply(reason: str) -> MalformedAnswerError:
    return MalformedAnswerError(
        f"What a metastore sent is no reply: {reason}", do_next="look at what answers at the backend's address"
    )
