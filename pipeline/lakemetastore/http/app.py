"""The HTTP API of the metastore as one application."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from hudilake.storage.base import Storage
from lakemetastore.api import paths
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.http import catalog_routes, change_routes, hudi_view, lake_routes
from lakemetastore.http.asked import Application
from lakemetastore.http.changes import ChangeWatch
from lakemetastore.http.failures import handle_errors
from lakemetastore.http.metrics import BoundedBodies, HttpMetrics, MeasuredApp
from lakemetastore.http.open_tables import OpenTables
from lakemetastore.http.options import ServeOptions
from lakemetastore.http.registrations import Registrations
from lakemetastore.http.state_index import index_by


def create_app(catalog: Catalog | None, lakes: Sequence[Storage], options: ServeOptions | None = None) -> FastAPI:
    """The application.

    Args:
        catalog: None to serve lake tables by their location alone.
        lakes: roots of lakes; tables below them are served, no others.
        options: limits; None for the defaults.
    """
    options = options or ServeOptions()
    tables, watch = OpenTables(lakes, index_by(options.states)), ChangeWatch(options.watch_ms, options.waiters)
    registry = options.registry or CollectorRegistry()
    metrics = HttpMetrics(registry, lambda: len(tables), lambda: tables.checks, lambda: watch.waiters)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = options.threads
        yield
        watch.close()

    app = FastAPI(title="binlake metastore", version="1", lifespan=lifespan, redoc_url=None, docs_url=None)
    app.state.drain = watch.close
    app.add_middleware(BoundedBodies, limit=options.body_bytes)
    app.add_middleware(MeasuredApp, metrics=metrics)
    handle_errors(app)
    registrations = Registrations(options.register, metrics.failed)
    app.state.application = Application(tables, catalog, watch, registrations, options)
    for routes in (lake_routes, change_routes, catalog_routes, hudi_view):
        app.include_router(routes.router)

    _add_own_routes(app, catalog, registry)
    return app


def _add_own_routes(app: FastAPI, catalog: Catalog | None, registry: CollectorRegistry) -> None:
    @app.get(paths.HEALTH, tags=["service"])
    def health() -> dict[str, str]:
        """Whether the service answers. With a catalog, its store must answer too."""
        if catalog is not None:
            catalog.databases.names()
        return {"status": "ok"}

    @app.get(paths.METRICS, tags=["service"], response_class=PlainTextResponse)
    def measured() -> Response:
        """The metrics for Prometheus."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)
