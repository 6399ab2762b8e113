"""A proxy before an S3 server that adds a delay to each request and keeps a log of them.

Two requests are in series if one began after the other had ended. The length of the longest such chain does not depend
on how fast the machine is, as long as a request takes longer than the work between those that are made at once: hence
the delay.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from embedded.process import HOST


@dataclass(frozen=True, order=True)
class Request:
    """One request. ``began``, ``ended``: its place among all begins and ends of the log."""

    began: int
    ended: int
    kind: str
    path: str


@dataclass
class RequestLog:
    """The requests since the last ``take``."""

    requests: list[Request] = field(default_factory=list)
    events: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> int:
        """The number of the next begin or end."""
        with self.lock:
            self.events += 1
            return self.events

    def add(self, request: Request) -> None:
        """Enter a request that has ended."""
        with self.lock:
            self.requests.append(request)

    def take(self) -> list[Request]:
        """The requests so far, by their begin; the log is empty afterwards."""
        with self.lock:
            taken, self.requests = sorted(self.requests), []
        return taken


def depths(requests: Iterable[Request]) -> list[int]:
    """The length of the longest chain that ends with each request; they come by their begin."""
    ends: list[tuple[int, int]] = []
    for one in requests:
        ends.append((one.ended, 1 + max((depth for ended, depth in ends if ended < one.began), default=0)))
    return [depth for _, depth in ends]


def kinds(requests: Iterable[Request]) -> dict[str, int]:
    """How many requests there are of each kind, by name."""
    return dict(sorted(Counter(one.kind for one in requests).items()))


def kind_of(method: str, target: str, headers: Iterable[str]) -> str:
    """What an S3 request is: ``get``, ``head``, ``list``, ``put``, ``create`` (a put that must not replace), ``copy``,
    ``delete``, ``upload`` (a step of an upload in parts)."""
    query = parse_qs(urlsplit(target).query, keep_blank_values=True)
    names = {name.lower() for name in headers}
    if "uploads" in query or "uploadId" in query:
        return "upload"
    if method == "GET" and ({"list-type", "prefix", "delimiter"} & query.keys()):
        return "list"
    if method == "PUT" and "x-amz-copy-source" in names:
        return "copy"
    if method == "PUT" and "if-none-match" in names:
        return "create"
    return "delete" if "delete" in query else method.lower()


@contextmanager
def proxy(port: int, delay_s: float) -> Iterator[tuple[int, RequestLog]]:
    """A proxy before the server at a port of this machine; gives its own port, and the log.

    ``delay_s``: added to each request, in seconds.
    """
    log = RequestLog()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            began = log.now()
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            time.sleep(delay_s)
            upstream = HTTPConnection(HOST, port, timeout=60)
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("expect", "connection"):
                    upstream.putheader(name, value)
            upstream.endheaders(body)
            answer = upstream.getresponse()
            content = answer.read()
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
            # The end comes before the answer: whoever waits for it begins afterwards.
            log.add(Request(began, log.now(), kind_of(self.command, self.path, self.headers), self.path))
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            if answer.status != 204:
                self.send_header("Content-Length", length or "0")
            self.end_headers()
            self.wfile.write(content)
            upstream.close()

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_one

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1], log
        finally:
            server.shutdown()
            thread.join()
