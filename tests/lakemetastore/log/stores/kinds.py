"""Every kind of store, empty, for tests of stores and of logs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.metastore.log_stores import Place, place_here
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


def name_of(kind: object) -> str:
    """The name of one of KINDS."""
    return kind if isinstance(kind, str) else str(kind.values[0])  # type: ignore[attr-defined]


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
    (directory / name).mkdir()
    return place_here(kind, directory / name)
