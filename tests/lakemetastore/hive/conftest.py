"""A Thrift server over a catalog of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakemetastore.catalog.catalog import Catalog
from lakemetastore.hive.server import listen
from lakemetastore.log.stores.base import LogStore
from lakemetastore.log.stores.opening import open_store
from tests.lakemetastore.hive.hive_server import HiveServer


class Calls:
    """The calls that a server told of."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[str, str]] = []

    def __call__(self, method: str, seconds: float, outcome: str) -> None:
        self.outcomes.append((method, outcome))


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LogStore]:
    opened = open_store(f"memory://hive{tmp_path}")
    yield opened
    opened.close()


@pytest.fixture
def server(store: LogStore, tmp_path: Path, calls: Calls) -> Iterator[HiveServer]:
    catalog = Catalog(store, warehouse=f"file:{tmp_path}/warehouse")
    server = HiveServer(catalog, store, listener=listen("127.0.0.1", 0), on_call=calls)
    server.start()
    yield server
    server.stop(drain_seconds=1.0)
