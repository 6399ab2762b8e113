"""Each distribution does its work in an environment that has no more than it asks for, beside a user's own ``pipeline``
and ``jobs``. The stages share an environment that grows, for the libraries are large."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from distributions.build import build
from hudilake.errors import TransientError
from tests.services.kafka import Broker
from tests.whole.packages.environment import Environment
from tests.whole.packages.programs import METASTORE, READ, STRANGER, TABLE
from tests.whole.packages.streamed import check_stream

#: What a table or a metastore needs nothing of.
SPARK_AND_KAFKA = {"pyspark", "kafka", "confluent_kafka", "typer", "duckdb", "pandas"}
SERVICES = {"fastapi", "thrift", "sqlalchemy", "uvicorn", "prometheus_client", "yaml", "lakemetastore", "binlake"}


@contextmanager
def _served(environment: Environment, place: Path, settings: dict[str, object]) -> Iterator[tuple[str, str]]:
    """A metastore that serves: the port of its Hive protocol, and its HTTP address."""
    (place / "metastore.yaml").write_text(json.dumps(settings))
    process = environment.start(["python", "-m", "lakemetastore", "serve", "metastore.yaml"], place)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        addresses = re.search(r"thrift://127\.0\.0\.1:(\d+), metastore\.uri=(\S+)", line)
        assert addresses is not None, line
        yield addresses[1], addresses[2]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        process.stdout.close()


@pytest.mark.packages
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.full
@pytest.mark.timeout(1800)
def test_each_distribution_alone(kafka_broker: Broker, tmp_path: Path) -> None:
    hudilake, lakemetastore, binlake = build(tmp_path / "wheels")
    environment = Environment(tmp_path / "environment", tmp_path / "wheels")
    work = tmp_path / "work"
    for own in ("pipeline", "jobs"):
        (work / own).mkdir(parents=True)
        (work / own / "__init__.py").write_text(STRANGER)
    (work / "table.py").write_text(TABLE)
    (work / "metastore.py").write_text(METASTORE)
    (work / "read.py").write_text(READ)

    environment.install(hudilake)
    for own in ("pipeline", "jobs"):
        assert "of the user" in environment.run(["python", "-c", f"import {own}"], work, code=1)
    assert not {module for module in SPARK_AND_KAFKA | SERVICES if environment.has(module)}
    table = work / "lake" / "shop" / "people"
    sys.stdout.write(environment.run(["python", "table.py", str(table)], work))

    environment.install(lakemetastore)
    assert not {module for module in SPARK_AND_KAFKA | {"binlake"} if environment.has(module)}
    settings: dict[str, object] = {
        "store": {"uri": str(work / "store")},
        "warehouse": (work / "warehouse").as_uri(),
        "thrift": {"port": 0},
        "http": {"port": 0},
        "lakes": [{"uri": str(work / "lake")}],
    }
    with _served(environment, work, settings) as (thrift, http):
        environment.run(["python", "metastore.py", thrift, http, (work / "warehouse").as_uri()], work)
    (work / "lake" / ".binlake").mkdir()
    refused = environment.run(["python", "-m", "lakemetastore", "serve", "metastore.yaml"], work, code=2)
    assert refused.count("\n") == 1
    assert "pip install binlake" in refused

    environment.install(binlake)
    assert not {module for module in ("pytest", "docker", "testcontainers") if environment.has(module)}
    assert "run" in environment.run(["binlake", "--help"], work)
    counted = environment.run(
        ["binlake", "query", str(table), "select name from t where id = 2", "--format", "json"], work
    )
    assert "Bobby" in counted
    # With binlake the lake of a stream has its names again, by the entry point.
    environment.run(["binlake", "metastore", "check", "metastore.yaml"], work)
    environment.run(["python", "-c", "import binlake.cli.commands.stream.run, binlake.stream.run, pyspark"], work)
    stream = {
        "name": "shop",
        "lake": {"uri": str(work / "streamed")},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": ["none"]},
    }
    (work / "stream.yaml").write_text(json.dumps(stream))
    checked = environment.run(["binlake", "check", "stream.yaml"], work, code=TransientError.exit_code)
    assert "cannot reach Kafka" in checked
    assert "can be written to, and no file twice" in checked

    check_stream(environment, kafka_broker, work)
