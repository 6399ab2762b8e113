"""One client of the server: its requests are read, answered and written in its own thread."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterable

from hudilake.clock import monotonic_s
from lakemetastore.hive.limits import Limits
from lakemetastore.hive.session import Session
from lakemetastore.hive.wire import MalformedMessageError, MessageReader, ThriftMessage

log = logging.getLogger(__name__)

Answer = Callable[[Session, ThriftMessage], "bytes | Iterable[bytes] | None"]
"""A whole request to the reply: whole, or piece by piece; None if the request wants none. An exception of the pieces
ends the connection, for a part of the reply is out already."""

_PIECE = 1 << 16


class Connection:
    """Serves a client until it leaves, says nonsense, is silent for too long, or the server stops."""

    def __init__(
        self, sock: socket.socket, address: str, answer: Answer, limits: Limits, on_malformed: Callable[[], None]
    ) -> None:
        self._sock = sock
        self._answer = answer
        self._limits = limits
        self._on_malformed = on_malformed
        self._session = Session(address)
        self._lock = threading.Lock()
        self._busy = False
        self._stopping = False
        self._deadline: float | None = None
        self._rests_since = monotonic_s()

    @property
    def idle_since(self) -> float | None:
        """When the last request was answered, by the monotonic clock; None while one is being answered."""
        with self._lock:
            return None if self._busy else self._rests_since

    @property
    def address(self) -> str:
        """Of the client."""
        return self._session.address

    def serve(self, tls: ssl.SSLContext | None) -> None:
        """Answer requests until the end. Closes the socket."""
        try:
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sock.settimeout(self._limits.message_seconds)
            if tls:
                self._sock = tls.wrap_socket(self._sock, server_side=True)
            self._serve()
        except MalformedMessageError as error:
            self._on_malformed()
            log.warning("The client %s is sent away. %s", self._session.address, error)
        except OSError as error:
            log.info("The connection of %s ends: %s", self._session.address, error)
        except Exception:
            log.exception("The connection of %s ends", self._session.address)
        finally:
            self._sock.close()
            for close in self._session.on_close:
                close()

    def finish(self) -> None:
        """Let a request that is being answered end, and take no further one."""
        with self._lock:
            self._stopping = True
            if not self._busy:
                self._shut()

    def abort(self) -> None:
        """End now."""
        with self._lock:
            self._stopping = True
            self._shut()

    def _serve(self) -> None:
        reader = MessageReader(self._receive, self._limits)
        while request := self._next(reader):
            with self._lock:
                if self._stopping:
                    return
                self._busy = True
            self._send(self._answer(self._session, request))
            if self._rests():
                return

    def _rests(self) -> bool:
        """Say that no request is being answered. True if the server stops."""
        with self._lock:
            self._busy = False
            self._rests_since = monotonic_s()
            return self._stopping

    def _next(self, reader: MessageReader) -> ThriftMessage | None:
        self._deadline = None
        return reader.read()

    def _send(self, answered: bytes | Iterable[bytes] | None) -> None:
        pieces = (answered,) if isinstance(answered, bytes) else answered or ()
        for piece in pieces:
            self._sock.settimeout(self._limits.message_seconds)
            self._sock.sendall(piece)

    def _receive(self, begins: bool) -> bytes:
        if begins:
            self._sock.settimeout(self._limits.idle_seconds)
            return self._sock.recv(_PIECE)
        now = monotonic_s()
        self._deadline = self._deadline or now + self._limits.message_seconds
        left = self._deadline - now
        if left <= 0:
            raise MalformedMessageError(
                f"A message is not complete after {self._limits.message_seconds} s",
                do_next="look at the network, or at what the client does while it sends",
            )
        self._sock.settimeout(left)
        return self._sock.recv(_PIECE)

    def _shut(self) -> None:
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            log.debug("The connection of %s was closed already", self._session.address)
