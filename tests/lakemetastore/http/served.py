"""The HTTP API on a real port, served by a thread of the test."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Sequence

import uvicorn

from hudilake.storage import Storage
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.http.app import create_app
from lakemetastore.http.options import ServeOptions
from tests.services.certificates import Identity


@contextlib.contextmanager
def serving(
    lakes: Sequence[Storage],
    options: ServeOptions | None = None,
    catalog: Catalog | None = None,
    port: int = 0,
    identity: Identity | None = None,
) -> Iterator[str]:
    """The address of the API over those lakes. ``port``: 0 for any. ``identity``: to serve with TLS."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        app = create_app(catalog, lakes, options)
        key, certificate = (None, None) if identity is None else (identity.key, identity.certificate)
        config = uvicorn.Config(app, log_level="error", lifespan="on", ssl_keyfile=key, ssl_certfile=certificate)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"{'http' if identity is None else 'https'}://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            app.state.drain()
            server.should_exit = True
            thread.join(10)
