"""Every kind of store, empty, for tests of stores and of logs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pipeline.metastore.stores.base import LogStore
from pipeline.metastore.stores.opening import open_store
from tests.conftest import BUCKET
from tests.services.databases import PASSWORD, SqlServer
from tests.services.hdfs import HdfsCluster
from tests.services.s3 import S3Server

_numbers = itertools.count()

KINDS = [
    "local",
    "memory",
    "s3",
    "sqlite",
    "lmdb",
    pytest.param("mariadb", marks=pytest.mark.database),
    pytest.param("postgresql", marks=pytest.mark.postgresql),
    pytest.param("hdfs", marks=pytest.mark.hdfs),
]


@dataclass(frozen=True)
class Place:
    """An empty store that several processes may open.

    Args:
        kind: of the store.
        uri, options: for ``open_store``.
    """

    kind: str
    uri: str
    options: dict[str, str] = field(default_factory=dict)

    def open(self) -> LogStore:
        """The store."""
        return open_store(self.uri, self.options)

    def empty(self) -> None:
        """Delete all logs."""
        store = self.open()
        for log in list(store.logs()):
            store.delete(log)
        store.close()


def place_of(kind: str, service: Callable[[str], object], directory: Path) -> Place:
    """An empty place.

    Args:
        kind: of the store.
        service: gives the session's fixture of a name.
        directory: for the files of stores on this machine.
    """
    name = f"store{next(_numbers)}"
    match kind:
        case "memory":
            return Place(kind, f"memory://tests/{name}")
        case "sqlite":
            return Place(kind, f"sqlite:///{directory / name}.db")
        case "lmdb":
            return Place(kind, f"lmdb:{directory / name}")
        case "s3":
            server = service("s3_server")
            assert isinstance(server, S3Server)
            return Place(kind, f"s3://{BUCKET}/{name}", server.options())
        case "mariadb" | "postgresql":
            database = service(f"log_{kind}")
            assert isinstance(database, SqlServer)
            place = Place(kind, database.shared_database, {"password": PASSWORD})
            place.empty()
            return place
        case "hdfs":
            cluster = service("hdfs_cluster")
            assert isinstance(cluster, HdfsCluster)
            return Place(kind, f"{cluster.uri}/{name}")
    return Place(kind, str(directory / name))
