"""Serves ``/metrics`` and ``/health`` over HTTP from a thread of a stream or a service."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol, TypeAlias

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from hudilake.errors import ConfigError

_CLIENT_TIMEOUT_S = 10.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Health:
    """The health of a stream or a service: the reasons why it is not healthy, if there are any."""

    reasons: tuple[str, ...] = ()

    @property
    def well(self) -> bool:
        """Whether it is healthy: there are no reasons."""
        return not self.reasons


class MetricsSource(Protocol):
    """What can be served: a stream's monitor, or a metastore's processes."""

    def render(self) -> str:
        """The metrics in Prometheus' text format, version 0.0.4."""

    def health(self) -> Health:
        """Whether all is well."""


#: Address -> gives a document of JSON.
Documents: TypeAlias = Mapping[str, Callable[[], object]]


class _Handler(BaseHTTPRequestHandler):
    timeout = _CLIENT_TIMEOUT_S
    server_version = "binlake"

    def __init__(self, monitor: MetricsSource, documents: Documents, *arguments: object) -> None:
        self._monitor, self._documents = monitor, documents
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Answer a GET request."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._send(200, CONTENT_TYPE_PLAIN_0_0_4, self._monitor.render())
        elif path == "/health":
            health = self._monitor.health()
            said = {"status": "ok" if health.well else "failing", "reasons": health.reasons}
            self._send(200 if health.well else 503, "application/json", json.dumps(said) + "\n")
        elif path in self._documents:
            self._send(200, "application/json", json.dumps(self._documents[path]()) + "\n")
        else:
            there = ", ".join(("/metrics", "/health", *self._documents))
            self._send(404, "text/plain", f"there are {there}\n")

    def _send(self, code: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log a request; the standard library would print it."""
        _log.debug(format, *arguments, extra={"event": "http_request", "client": self.address_string()})


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Log an error that ended a request, such as a closed connection; the standard library would print it."""
        error = sys.exception()
        _log.warning("a request failed: %r", error, extra={"event": "http_failed", "client": str(client_address)})


class MonitoringServer:
    """Serves a monitor, and further ``documents``, until closed. Raises ConfigError if it cannot listen on the port."""

    def __init__(self, monitor: MetricsSource, host: str, port: int, documents: Documents | None = None) -> None:
        try:
            self._server = _Server((host, port), partial(_Handler, monitor, documents or {}))
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"cannot serve metrics: {error}", do_next="correct monitoring.host and port", host=host, port=port
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="binlake-monitoring", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port on which it listens; useful if port 0 was requested."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
