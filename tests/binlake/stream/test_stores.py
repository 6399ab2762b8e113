"""The same batches into a lake on each kind of store give the same tables."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from hudilake.read.slice import read_table
from hudilake.storage import open_storage
from tests.binlake.stream.test_exactly_once import EXPECTED, first_events, runner, second_events
from tests.binlake.stream.topic_log import LocalEngine, settings
from tests.conftest import BUCKET
from tests.hypothesis_profile import usually
from tests.services.hdfs import HdfsCluster
from tests.services.s3 import S3Server


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """A lake's URI and options, in each kind of store."""
    if request.param == "local":
        return str(tmp_path), {}
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        return f"s3://{BUCKET}/stores", server.options()
    cluster: HdfsCluster = request.getfixturevalue("hdfs_cluster")
    return f"{cluster.uri}/stores", {}


#: On HDFS a file takes half a second.
WRITERS = {"tasks": 0, "driver": 1 << 30}
ON_HDFS = [pytest.param("hdfs", writer, marks=pytest.mark.hdfs) for writer in usually(["tasks"], list(WRITERS))]
ELSEWHERE = itertools.product(["local", "s3"], WRITERS)


@pytest.mark.first(1)
@pytest.mark.parametrize(("lake", "writer"), [*ELSEWHERE, *ON_HDFS], indirect=["lake"])
def test_a_stream_into_each_store(lake: tuple[str, dict[str, str]], writer: str) -> None:
    uri, options = f"{lake[0]}/{writer}", lake[1]
    config = settings(
        uri,
        ["accounts", "orders"],
        lake={"uri": uri, "options": options},
        batch={"shuffle_above_bytes": WRITERS[writer]},
    )
    root = open_storage(uri, options)
    log = first_events()
    runner(config, root).run(0, log.end(), 0, LocalEngine(log))
    second_events(log)
    again = runner(config, root)
    again.run(1, log.end(), 0, LocalEngine(log))
    again.run(2, log.end(), 0, LocalEngine(log))
    for table, rows in EXPECTED.items():
        names = ["id", "owner", "balance", "region"]
        found = [r for part in read_table(root.sub(f"shop/{table}"), columns=names) for r in part.to_pylist()]
        assert sorted((r["id"], r["owner"], str(r["balance"]), r["region"]) for r in found) == rows
    assert again.ledger.positions == log.end()
