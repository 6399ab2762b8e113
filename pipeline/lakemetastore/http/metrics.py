"""The metrics of the HTTP API for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hudilake.clock import monotonic_s

_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)


class HttpMetrics:
    """Requests by route and status, their seconds, and what the process holds."""

    def __init__(
        self,
        registry: CollectorRegistry,
        open_tables: Callable[[], int],
        checks: Callable[[], int],
        waiters: Callable[[], int],
    ) -> None:
        self.registry = r = registry
        labels = ["method", "route", "status"]
        self.requests = Counter("binlake_metastore_http_requests", "Requests answered.", labels, registry=r)
        text = "Time to the answer. Waiting for changes counts."
        self.seconds = Histogram("binlake_metastore_http_seconds", text, ["route"], buckets=_SECONDS, registry=r)
        text = "Registrations that the metastore did not take in; its reconciler does later."
        self.failed = Counter("binlake_metastore_http_registrations_failed", text, registry=r)
        Gauge("binlake_metastore_open_tables", "Lake tables held open.", registry=r).set_function(open_tables)
        text = "Comparisons of open tables with storage since the start."
        Gauge("binlake_metastore_table_checks", text, registry=r).set_function(checks)
        text = "Clients that wait for changes."
        Gauge("binlake_metastore_waiting_clients", text, registry=r).set_function(waiters)


class MeasuredApp:
    """An ASGI application whose requests are counted."""

    def __init__(self, app: ASGIApp, metrics: HttpMetrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = monotonic_s(), "500"

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.requests.labels(scope["method"], route, status).inc()
            self._metrics.seconds.labels(route).observe(monotonic_s() - began)


class BoundedBodies:
    """An ASGI application that gets no body longer than a limit: longer ones are refused with 413."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app, self._limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, then pass the request on."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        chunks, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > self._limit:
                await _refuse(send, self._limit)
                return
            chunks.append(chunk)
            more = message.get("more_body", False)
        body = iter([{"type": "http.request", "body": b"".join(chunks), "more_body": False}])

        async def given() -> Message:
            return next(body, None) or await receive()

        await self._app(scope, given, send)


async def _refuse(send: Send, limit: int) -> None:
    text = b'{"error":"InvalidRequest","what":"the body is longer than %d bytes","where":{},"do_next":""}' % limit
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": text})
