"""Spark on YARN as docs/deployment.md says it, with HDFS as the lake: the rows are those that were produced, also after
a container was killed."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from bench.events import events
from bench.kafka_load import create_topic, produce
from binlake.stream.spark.jars import pyspark_jars
from binlake.stream.spark.java import find_java
from embedded.jars import spark_packages
from embedded.yarn import Yarn, start_yarn
from hudilake.storage import open_storage
from tests.paths import ROOT
from tests.services.hdfs import HdfsCluster
from tests.services.kafka import Broker
from tests.whole.cluster.shipped import make_environment, run
from tests.whole.cluster.workload import BATCH, configure, expected, rows_of

COUNT = 6 * BATCH
#: Containers unpack an archive of 250 MB, which took minutes where much other work ran on the machine.
_WAIT_S = 1_200
#: What the machine asks for, and not the user: little memory, loopback, and Spark's jars where they are.
_DEFAULTS = {
    "spark.driver.memory": "600m",
    "spark.executor.memory": "600m",
    "spark.executor.instances": "2",
    "spark.ui.enabled": "false",
    "spark.yarn.jars": f"local:{pyspark_jars()}/*",
    "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
    "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
}


def section(name: str) -> list[str]:
    """The commands of a section of the page, each on one line."""
    text = (ROOT / "docs" / "deployment.md").read_text()
    part = text[text.index(f"\n### {name}\n") :].split("\n##", 2)[1]
    blocks = "".join(re.findall(r"```sh\n(.*?)```", part, re.DOTALL))
    return [line.strip() for line in blocks.replace("\\\n", " ").splitlines() if line.strip()]


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory, hdfs_cluster: HdfsCluster) -> Iterator[Yarn]:
    with start_yarn(tmp_path_factory.mktemp("yarn"), hdfs_cluster.uri) as running:
        yield running


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The directory of somebody who has followed the page up to spark-submit."""
    place = tmp_path_factory.mktemp("user")
    (place / "jobs").symlink_to(ROOT / "jobs")
    made, *installs, imports, packed = section("The environment of executors")
    assert made == "python3 -m venv environment"
    assert all(line.startswith("environment/bin/python -m pip ") for line in installs)
    make_environment(place, wheel.parent)
    run(place, imports)
    run(place, packed)
    (place / "conf").mkdir()
    lines = [f"{name} {value}\n" for name, value in _DEFAULTS.items()]
    (place / "conf" / "spark-defaults.conf").write_text("".join(lines))
    return place


class Submission:
    """A running spark-submit, and what became of its application.

    Args:
        yarn: where it runs.
        user: the directory that it is started in.
        command: of the page; ``--once`` is added, and jars from the cache are given in place of ``--packages``.
    """

    def __init__(self, yarn: Yarn, user: Path, command: str) -> None:
        self._yarn = yarn
        self._before = set(yarn.logs.glob("application_*"))
        program, *words = shlex.split(command)
        assert program == "spark-submit"
        at = words.index("--packages")
        words[at : at + 2] = ["--jars", ",".join(map(str, spark_packages()))]
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK", "SPARK", "VIRTUAL"))}
        home = str(pyspark_jars().parent)
        own = {"SPARK_HOME": home, "SPARK_CONF_DIR": str(user / "conf"), "HADOOP_CONF_DIR": str(yarn.configuration)}
        own |= {"JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
        self.log = user / f"submit-{len(self._before)}.log"
        with self.log.open("w") as out:
            self.process = subprocess.Popen(
                [f"{home}/bin/{program}", *words, "--once"], cwd=user, env=kept | own, stdout=out, stderr=out
            )

    def printed(self) -> str:
        """What spark-submit and all drivers in containers have printed."""
        drivers = [log.read_text(errors="replace") for log in sorted(self._logs().glob("*/stdout"))]
        return "\n".join([self.log.read_text(errors="replace"), *drivers])

    def batches(self) -> list[int]:
        """The numbers of the events of each finished batch."""
        sizes = re.findall(r"^batch \d+: ([\d,]+) events", self.printed(), re.MULTILINE)
        return [int(size.replace(",", "")) for size in sizes]

    def await_batches(self, count: int) -> None:
        """Wait until so many batches are finished."""
        deadline = time.monotonic() + _WAIT_S
        while len(self.batches()) < count:
            assert self.process.poll() is None, self.trouble()
            assert time.monotonic() < deadline, self.trouble()
            time.sleep(0.1)

    def end(self) -> int:
        """Wait for the end; the exit code of spark-submit: binlake's in client mode, in cluster mode 0 if YARN says
        that the application has succeeded."""
        return self.process.wait(_WAIT_S)

    def kill_container(self, main_class: str) -> None:
        """Kill one process of the application with this main class, as a failing machine would."""
        victims = [
            process
            for process in psutil.process_iter(["cmdline"])
            if main_class in (line := " ".join(process.info["cmdline"] or ())) and str(self._logs()) in line
            and Path(process.info["cmdline"][0]).name == "java"
        ]  # fmt: skip
        assert victims, self.trouble()
        os.kill(victims[0].pid, signal.SIGKILL)

    def trouble(self) -> str:
        """The end of all logs."""
        logs = [self.log, *sorted(self._logs().glob("*/std*"))]
        return "\n".join(f"== {log}\n{log.read_text(errors='replace')[-3000:]}" for log in logs)

    def _logs(self) -> Path:
        new = set(self._yarn.logs.glob("application_*")) - self._before
        return next(iter(new), self._yarn.logs / "none")


def prepare(user: Path, hdfs: HdfsCluster, broker: Broker, name: str) -> str:
    """Fill a topic and write ``shop.yaml``; the URI of the lake."""
    topic = f"{name}.bench.orders"
    create_topic(broker.bootstrap_servers, topic, 4)
    produce(broker.bootstrap_servers, topic, events(COUNT))
    lake = f"{hdfs.uri}/{name}"
    configure(user / "shop.yaml", lake, broker, topic)
    return lake


def fetched(lake: str, place: Path) -> Path:
    """A copy of a lake in HDFS, for hudi-rs, which reads none."""
    storage = open_storage(lake)
    for info in storage.walk(""):
        file = place / info.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(storage.read(info.path))
    return place


@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.hdfs
@pytest.mark.full
@pytest.mark.timeout(2 * _WAIT_S + 1_200)  # the first test's has the environment and four servers in it
@pytest.mark.parametrize(
    ("mode", "main_class"),
    [
        ("client", "YarnCoarseGrainedExecutorBackend"),
        ("cluster", "YarnCoarseGrainedExecutorBackend"),
        ("cluster", "deploy.yarn.ApplicationMaster"),
    ],
    ids=["client", "cluster", "driver"],
)
def test_rows_are_equal_after_a_container_was_killed(
    yarn: Yarn, user: Path, hdfs_cluster: HdfsCluster, kafka_broker: Broker, tmp_path: Path, mode: str, main_class: str
) -> None:
    lake = prepare(user, hdfs_cluster, kafka_broker, f"yarn-{mode}-{main_class[-4:].lower()}")
    [command] = [line for line in section("YARN") if ("--deploy-mode cluster" in line) == (mode == "cluster")]
    submission = Submission(yarn, user, command)
    try:
        submission.await_batches(1)
        submission.kill_container(main_class)
        assert sum(submission.batches()) < COUNT, "killed before the end"
        assert submission.end() == 0, submission.trouble()
    finally:
        submission.process.kill()
    assert rows_of(fetched(lake, tmp_path)) == expected(COUNT)
