"""The same job on a Spark standalone cluster gives the same table; executors have the package from the wheel alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from bench.events import events
from bench.kafka_load import create_topic, produce
from binlake.stream.spark.jars import pyspark_jars
from binlake.stream.spark.java import find_java
from embedded.jars import spark_packages
from tests.paths import ROOT
from tests.selection import first
from tests.services.kafka import Broker
from tests.whole.cluster.standalone import standalone_cluster
from tests.whole.cluster.workload import COUNT, SHUFFLED_EVENTS, configure, expected, rows_of


def executor_python(place: Path) -> Path:
    """A Python with the dependencies but not the project: a checkout on its path would hide a lacking wheel."""
    script = place / "executor-python"
    site = sysconfig.get_paths()["purelib"]
    script.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{site}" exec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    for package in ("hudilake", "lakemetastore", "binlake"):
        command = [str(script), "-c", f"import {package}"]
        probe = subprocess.run(command, capture_output=True, text=True, cwd=place, timeout=60)
        assert f"No module named '{package}'" in probe.stderr
    return script


def submit(master: str, wheel: Path, config: Path, place: Path) -> list[int]:
    """``spark-submit`` as the README says it; returns how many events each batch had."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(pyspark_jars().parent),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": str(executor_python(place)),
    }
    command = [str(pyspark_jars().parent / "bin" / "spark-submit"), "--master", master, "--py-files", str(wheel)]
    command += ["--jars", ",".join(map(str, spark_packages())), "--driver-memory", "600m", "--executor-memory", "600m"]
    command += ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"]
    command += ["--conf", "spark.driver.bindAddress=127.0.0.1"]
    command += [str(ROOT / "jobs" / "ingest.py"), str(config), "--once"]
    log = place / "submit.log"
    with log.open("w") as out:
        done = subprocess.run(command, env=environment, cwd=place, stdout=out, stderr=out, timeout=600)
    told = log.read_text()
    assert done.returncode == 0, "\n".join(line for line in told.splitlines() if "INFO" not in line)[-6000:]
    return [int(size.replace(",", "")) for size in re.findall(r"^batch \d+: ([\d,]+) events", told, re.MULTILINE)]


@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("workers", first(1, [1, 2]))
def test_the_same_table_from_a_cluster(tmp_path: Path, kafka_broker: Broker, wheel: Path, workers: int) -> None:
    topic = f"cluster{workers}.bench.orders"
    create_topic(kafka_broker.bootstrap_servers, topic, 4)
    produce(kafka_broker.bootstrap_servers, topic, events(COUNT))
    config = configure(tmp_path / "stream.yaml", str(tmp_path / "lake"), kafka_broker, topic)
    with standalone_cluster(tmp_path, workers) as cluster:
        sizes = submit(cluster.master, wheel, config, tmp_path)
        assert {size > SHUFFLED_EVENTS for size in sizes} == {True, False}, "batches of both kinds"
        assert rows_of(tmp_path / "lake") == expected(COUNT)
