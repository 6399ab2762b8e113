"""The HTTP side of a process: uvicorn in a thread, on a socket that listens already."""

from __future__ import annotations

import socket
import ssl
import threading

import uvicorn
from starlette.applications import Starlette

from hudilake.clock import monotonic_s
from hudilake.errors import TransientError
from lakemetastore.settings.service import TlsSettings

_START_S = 30.0


class HttpServer:
    """Serves an application from ``start`` to ``stop``.

    Args:
        app: what answers.
        listener: a socket that listens; the server closes it.
        tls: the certificate, if clients speak TLS.
        drain_seconds: how long requests in hand may take after ``stop``; a long poll is cut after it.
    """

    def __init__(self, app: Starlette, listener: socket.socket, tls: TlsSettings | None, drain_seconds: float) -> None:
        self._listener = listener
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="on",
                timeout_graceful_shutdown=max(1, round(drain_seconds)),
                ssl_certfile=tls.certificate_file if tls else None,
                ssl_keyfile=tls.key_file if tls else None,
                ssl_ca_certs=tls.client_ca_file if tls else None,
                ssl_cert_reqs=ssl.CERT_REQUIRED if tls and tls.client_ca_file else ssl.CERT_NONE,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, name="http", daemon=True
        )

    def start(self) -> None:
        """Begin to answer. Raises TransientError if the application does not begin."""
        self._thread.start()
        until = monotonic_s() + _START_S
        while not self._server.started:
            self._thread.join(0.01)
            if not self._thread.is_alive() or monotonic_s() > until:
                raise TransientError("the HTTP server did not begin", do_next="read the log above, then start again")

    def stop(self) -> None:
        """Accept no more requests, let those in hand end, then stop."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self._listener.close()
