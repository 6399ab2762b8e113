"""An S3 server for the tests: moto as a process of its own on a loopback port.

``python -m tests.services.s3`` serves and prints its port. Requests are served one at a time: moto looks for the key
and puts the object in two steps, so on several threads two conditional puts could both pass, which real S3 excludes.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.paths import ROOT as _PROJECT

_REGION = "us-east-1"
_STOP_TIMEOUT_S = 10


@dataclass(frozen=True)
class S3Server:
    """A running server.

    Attributes:
        endpoint: ``http://127.0.0.1:port``.
        access_key_id, secret_access_key: any pair does; these make a leak recognisable.
        pid: the server's process id.
    """

    endpoint: str
    pid: int
    access_key_id: str = "AKIDBINLAKETEST"
    secret_access_key: str = "hush/this+is=secret"

    def options(self, **more: str) -> dict[str, str]:
        """Storage options that reach it."""
        return {
            "endpoint": self.endpoint,
            "region": _REGION,
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
            **more,
        }

    def create_bucket(self, name: str) -> None:
        """Make a bucket."""
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()


@contextlib.contextmanager
def start_s3() -> Iterator[S3Server]:
    """Run one server for the length of the block."""
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(command, cwd=_PROJECT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            if not port.isdigit():
                raise RuntimeError(f"the S3 server did not start: {port!r}")
            yield S3Server(f"http://127.0.0.1:{port}", process.pid)
        finally:
            process.terminate()
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def one_at_a_time(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """A WSGI application whose requests wait for one another."""
    lock = threading.Lock()

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        with lock:
            return list(app(environ, start_response))

    return serve


def main() -> None:
    """Serve until terminated."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: object) -> None:
            pass

    app = one_at_a_time(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
