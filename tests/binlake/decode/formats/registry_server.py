"""A small schema registry: the paths of Confluent's REST interface that a reader uses, over real sockets."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_numbers = itertools.count(1)


@dataclass
class Registry:
    """What the server answers, and what it was asked.

    Args:
        schemas: id -> text.
        failures: codes to answer the next requests with.
        authorization: the header that must come; None: anybody may ask.
        answer: a body in place of a schema's.
    """

    schemas: dict[int, str] = field(default_factory=dict)
    failures: list[int] = field(default_factory=list)
    authorization: str | None = None
    answer: bytes | None = None
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def register(self, ids: Mapping[str, int]) -> None:
        self.schemas |= {number: text for text, number in ids.items()}

    def reply(self, path: str, authorization: str | None) -> tuple[int, bytes]:
        self.asked.append(path)
        if self.failures:
            return self.failures.pop(0), b"{}"
        if self.authorization is not None and authorization != self.authorization:
            return 401, b'{"error_code":401,"message":"Unauthorized"}'
        if self.answer is not None:
            return 200, self.answer
        head, _, number = path.rpartition("/")
        if head != "/schemas/ids" or not number.isdigit():
            return 404, b"<html>no such page</html>"
        text = self.schemas.get(int(number))
        if text is None:
            return 404, b'{"error_code":40403,"message":"Schema not found"}'
        return 200, json.dumps({"schema": text}).encode()


@contextmanager
def serving(registry: Registry) -> Iterator[Registry]:
    """The registry at a port of its own."""

    base = f"/r{next(_numbers)}"  # readers remember what a registry said: no two may be alike

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, body = registry.reply(self.path.removeprefix(base), self.headers.get("Authorization"))
            self.send_response(code)
            if 300 <= code < 400:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401 - as inherited
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    registry.url = f"http://127.0.0.1:{server.server_port}{base}"
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
