"""A Thrift server: a thread for each connection, from a socket that listens already.

The process that starts it makes the socket, so several processes can have one port (SO_REUSEPORT).
"""

from __future__ import annotations

import logging
import selectors
import socket
import ssl
import threading
from collections.abc import Callable

from hudilake.clock import monotonic_s
from lakemetastore.hive.connection import Answer, Connection
from lakemetastore.hive.limits import Limits

log = logging.getLogger(__name__)

OnCall = Callable[[str, float, str], None]
"""Told of each call: method, seconds, outcome (``ok``, ``refused``, ``unsupported``, ``failed``, ``malformed``)."""


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A listening socket; port 0 is any free one. ``shared``: other processes may listen on the port, too."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=512, reuse_port=shared)


class ThriftServer:
    """Serves the binary protocol without frames, as the Hive Metastore does.

    Args:
        answer: gives the reply to a request; called from the threads of all connections.
        listener: a socket that listens. The server closes it.
        tls: certificates, if the clients speak TLS.
        on_call: is passed messages that are none, with the method ``-``. The rest is up to ``answer``.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        listener: socket.socket,
        tls: ssl.SSLContext | None = None,
        limits: Limits | None = None,
        on_call: OnCall | None = None,
    ) -> None:
        self._answer = answer
        self._listener = listener
        self._tls = tls
        self._limits = limits or Limits()
        self._on_call = on_call or _nobody
        self._connections: set[Connection] = set()
        self._lock = threading.Lock()
        self._wake, self._waker = socket.socketpair()
        self._thread = threading.Thread(target=self._accept_all, name="thrift-accept", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that the server listens on."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    @property
    def connections(self) -> int:
        """How many clients there are now."""
        return len(self._connections)

    def start(self) -> None:
        """Begin to accept clients, in a thread."""
        self._listener.setblocking(False)
        self._thread.start()

    def stop(self, drain_seconds: float = 10.0) -> None:
        """Accept no more clients, let running calls end for so long, then cut what is left."""
        if self._thread.ident is None:  # it never started
            self._listener.close()
            return
        self._waker.send(b"x")
        self._thread.join()
        self._each(Connection.finish)
        until = monotonic_s() + drain_seconds
        pause = threading.Event()
        while self._connections and monotonic_s() < until:
            pause.wait(0.01)
        self._each(Connection.abort)

    def _each(self, end: Callable[[Connection], None]) -> None:
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            end(connection)

    def _accept_all(self) -> None:
        with selectors.DefaultSelector() as selector, self._listener, self._wake, self._waker:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._wake, selectors.EVENT_READ)
            while all(key.fileobj is not self._wake for key, _ in selector.select()):
                self._accept()

    def _accept(self) -> None:
        try:
            sock, peer = self._listener.accept()
        except BlockingIOError:  # another process that listens on the port took the client
            return
        except OSError as error:
            log.warning("A client could not be accepted: %s", error)
            threading.Event().wait(0.05)  # too few file descriptors, perhaps: do not ask again at once
            return
        address = f"{peer[0]}:{peer[1]}"
        connection = Connection(sock, address, self._answer, self._limits, self._malformed)
        if not self._take(connection):
            log.warning("The client %s is sent away: there are %d connections", address, self._limits.connections)
            sock.close()
            return
        try:
            threading.Thread(target=self._serve, args=(connection,), name=f"thrift-{address}", daemon=True).start()
        except RuntimeError as error:
            log.warning("The client %s is sent away: %s", address, error)
            with self._lock:
                self._connections.discard(connection)
            sock.close()

    def _take(self, connection: Connection) -> bool:
        """Make room for a client, at the cost of the one that has been idle for the longest time. False if all are
        busy."""
        with self._lock:
            longest = None
            if len(self._connections) >= self._limits.connections:
                idle = [(since, one) for one in self._connections if (since := one.idle_since) is not None]
                if not idle:
                    return False
                _, longest = min(idle, key=lambda found: found[0])
                self._connections.discard(longest)
            self._connections.add(connection)
        if longest is not None:
            log.warning("The client %s is sent away for another: it was idle for the longest time", longest.address)
            longest.finish()
        return True

    def _serve(self, connection: Connection) -> None:
        try:
            connection.serve(self._tls)
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _malformed(self) -> None:
        self._on_call("-", 0.0, "malformed")


def _nobody(method: str, seconds: float, outcome: str) -> None:
    """Nobody listens."""
