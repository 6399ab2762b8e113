"""Ways to a real store that misbehave on demand: a lost answer, a refusal, a header that gets dropped."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import urlsplit


@dataclass
class Fault:
    """What to do with the next requests that match.

    Attributes:
        method: the HTTP method it waits for; empty for every one.
        answer: the status to give instead of the store's own, or ``lost``: the connection ends without an answer.
        reaches_store: whether the store gets to see the request all the same.
        times: how many requests.
        body: of the answer.
    """

    method: str
    answer: int | Literal["lost"]
    reaches_store: bool = False
    times: int = 1
    body: bytes = b""


@dataclass
class HttpProxy:
    """A proxy before an HTTP server; set ``faults`` and ``dropped_headers`` while it runs.

    Attributes:
        requests: method and target of every request that came.
        dropped_headers: lower-case beginnings of headers that the store does not get.
    """

    endpoint: str
    faults: list[Fault] = field(default_factory=list)
    dropped_headers: tuple[str, ...] = ()
    requests: list[tuple[str, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take_fault(self, method: str, target: str) -> Fault | None:
        """Note a request; the fault it meets."""
        with self._lock:
            self.requests.append((method, target))
            for fault in self.faults:
                if fault.times and fault.method in ("", method):
                    fault.times -= 1
                    return fault
            return None


@contextlib.contextmanager
def http_proxy(target: str) -> Iterator[HttpProxy]:
    """Run a proxy before ``http://host:port`` for the length of the block."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fault = proxy.take_fault(self.command, self.path)
            reply = None if fault and not fault.reaches_store else self.forward(body)
            if fault:
                reply = None if fault.answer == "lost" else (fault.answer, {}, fault.body)
            if reply is None:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            status, headers, content = reply
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "content-length" not in {name.lower() for name in headers}:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            connection = http.client.HTTPConnection(urlsplit(target).netloc, timeout=30)
            kept = {k: v for k, v in self.headers.items() if not k.lower().startswith(proxy.dropped_headers or ("\0",))}
            try:
                connection.request(self.command, self.path, body, {**kept, "Connection": "close"})
                answer = connection.getresponse()
                headers = {k: v for k, v in answer.getheaders() if k.lower() not in ("connection", "transfer-encoding")}
                return answer.status, headers, answer.read()
            finally:
                connection.close()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        proxy = HttpProxy(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()


class AnswerCutter:
    """A TCP relay that, once armed, lets a matching message through and cuts the connection before the answer.

    Args:
        target: ``host:port`` behind it.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.partition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pattern, self._times = b"", 0
        self._open: list[socket.socket] = [self._listener]
        self.cuts = 0

    @property
    def authority(self) -> str:
        """``host:port`` for clients."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def arm(self, pattern: bytes, times: int = 1) -> None:
        """Cut off the answers to the next ``times`` messages that hold ``pattern``."""
        self._pattern, self._times = pattern, times

    def __enter__(self) -> AnswerCutter:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for opened in self._open:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                self._open += [client, server]
                cut = threading.Event()
                for source, sink, watched in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._relay, args=(source, sink, cut, watched), daemon=True).start()

    def _relay(self, source: socket.socket, sink: socket.socket, cut: threading.Event, watched: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if watched and self._times and self._pattern in data:
                    self._times -= 1
                    cut.set()
                elif not watched and cut.is_set():
                    self.cuts += 1
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
