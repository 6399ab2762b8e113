"""A compaction on each kind of store: base files go there without being read into memory first."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.metadata.config import MetadataConfig
from hudilake.read.slice import read_table
from hudilake.services.compaction import CompactionConfig, run
from hudilake.services.fsck import fsck
from hudilake.storage import open_storage
from hudilake.storage.base import Storage
from hudilake.table.table import HudiTable
from tests.conftest import BUCKET
from tests.hudilake.lake import SCHEMA, Model, config, deletes, sorted_rows, upserts
from tests.hudilake.services.compaction.steps import add, serially
from tests.services.hdfs import HdfsCluster
from tests.services.s3 import S3Server

CONFIG = CompactionConfig(after_commits=1, tombstone_retention_hours=1)


@pytest.fixture(params=["memory", "s3", pytest.param("hdfs", marks=[pytest.mark.hdfs, pytest.mark.full])])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """An empty root in each kind of store."""
    name = f"compaction/{tmp_path.name}"
    if request.param == "memory":
        return open_storage(f"memory://{name}")
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        return open_storage(f"s3://{BUCKET}/{name}", server.options())
    cluster: HdfsCluster = request.getfixturevalue("hdfs_cluster")
    return open_storage(f"{cluster.uri}/{name}")


@pytest.mark.first(1)
def test_two_compactions(storage: Storage) -> None:
    table, model = HudiTable.create(storage, config(), SCHEMA, MetadataConfig()), Model()
    for turn in range(2):
        add(table, model, upserts(range(2000), 100 + turn) + upserts([1], 5, day="d2"))
        add(table, model, deletes([3], 200))
        assert len(run(table, CONFIG, serially)) == 1
    add(table, model, upserts([3], 150, "late"))
    rows = sorted_rows(r for part in read_table(storage, SCHEMA.names) for r in part.to_pylist())
    assert rows == model.rows()
    assert fsck(storage).findings == ()
