"""The HTTP API of the metastore as one application."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Sequence

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from pipeline.errors import BinlakeError
from pipeline.hudi.read.index import TableIndex, table_index
from pipeline.hudi.table.table import HudiTable
from pipeline.metastore.api import paths
from pipeline.metastore.catalog.catalog import Catalog
from pipeline.metastore.http.catalog_routes import catalog_routes
from pipeline.metastore.http.changes import ChangeWatch
from pipeline.metastore.http.failures import handle_errors
from pipeline.metastore.http.hudi_view.routes import hudi_view_routes
from pipeline.metastore.http.lake_routes import lake_routes
from pipeline.metastore.http.metrics import BoundedBodies, HttpMetrics, MeasuredApp
from pipeline.metastore.http.open_tables import IndexOf, OpenTables
from pipeline.metastore.http.options import ServeOptions
from pipeline.metastore.http.registrations import Registrations
from pipeline.metastore.http.state_index import state_index
from pipeline.metastore.lake.lake_tables import LakeTables
from pipeline.storage.base import Storage

_log = logging.getLogger(__name__)


def _index_of(states: LakeTables | None) -> IndexOf:
    """By the metastore's state while it is that of the timeline, else by the table's own metadata table."""
    if states is None:
        return table_index
    known = states

    def index_of(table: HudiTable) -> TableIndex | None:
        try:
            return state_index(table, known) or table_index(table)
        except BinlakeError as error:
            _log.warning("the state of a table is not read: %s", error, extra={"event": "state_failed"})
            return table_index(table)

    return index_of


def create_app(catalog: Catalog | None, lakes: Sequence[Storage], options: ServeOptions | None = None) -> FastAPI:
    """The application.

    Args:
        catalog: None to serve lake tables by their location alone.
        lakes: roots of lakes; tables below them are served, no others.
        options: limits; None for the defaults.
    """
    options = options or ServeOptions()
    tables, watch = OpenTables(lakes, _index_of(options.states)), ChangeWatch(options.watch_ms, options.waiters)
    registry = options.registry or CollectorRegistry()
    metrics = HttpMetrics(registry, lambda: len(tables), lambda: tables.checks, lambda: watch.waiters)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        watch.close()

    app = FastAPI(title="binlake metastore", version="1", lifespan=lifespan, redoc_url=None, docs_url=None)
    app.state.drain = watch.close
    app.add_middleware(BoundedBodies, limit=options.body_bytes)
    app.add_middleware(MeasuredApp, metrics=metrics)
    handle_errors(app)
    register = Registrations(options.register, metrics.failed)
    app.include_router(lake_routes(tables, catalog, watch, register, options))
    app.include_router(hudi_view_routes(tables))
    if catalog is not None:
        app.include_router(catalog_routes(catalog, options))

    @app.get(paths.HEALTH, tags=["service"])
    def health() -> dict[str, str]:
        """Whether the service answers. With a catalog, its store must answer too."""
        if catalog is not None:
            catalog.databases()
        return {"status": "ok"}

    @app.get(paths.METRICS, tags=["service"], response_class=PlainTextResponse)
    def measured() -> Response:
        """The metrics for Prometheus."""
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return app
