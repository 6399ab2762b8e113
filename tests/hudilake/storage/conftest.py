"""The stores that the storage tests run over."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from hudilake.storage import Storage, open_storage
from tests.conftest import BUCKET
from tests.services.hdfs import HdfsCluster
from tests.services.s3 import S3Server

_roots = itertools.count()


@pytest.fixture(params=["local", "memory", "s3", pytest.param("hdfs", marks=pytest.mark.hdfs)])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """An empty root that does not exist yet, in each kind of store."""
    name = f"root{next(_roots)}/lake"
    match request.param:
        case "local":
            return open_storage(str(tmp_path / name))
        case "memory":
            return open_storage(f"memory://tests/{name}")
        case "s3":
            server: S3Server = request.getfixturevalue("s3_server")
            return open_storage(f"s3://{BUCKET}/{name}", server.options())
    cluster: HdfsCluster = request.getfixturevalue("hdfs_cluster")
    return open_storage(f"{cluster.uri}/{name}")
