"""Services that many tests share, each started at most once a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import hypothesis_profile  # noqa: F401 - loads the profile
from tests.services import kafka
from tests.services.hdfs import HdfsCluster, start_hdfs
from tests.services.kafka import Broker, start_broker
from tests.services.s3 import S3Server, start_s3
from tests.spark_session import hudi_spark, spark  # noqa: F401 - fixtures

BUCKET = "lake"


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for the whole run; tests keep apart by their topic names."""
    with start_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with start_s3() as server:
        server.create_bucket(BUCKET)
        yield server


@pytest.fixture(scope="session")
def hdfs_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    with start_hdfs(tmp_path_factory.mktemp("hdfs") / "cluster") as cluster:
        yield cluster


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the broker ran in: a fallback must be seen."""
    for choice in dict.fromkeys(kafka.choices):
        terminalreporter.write_line(f"binlake: {choice}")
