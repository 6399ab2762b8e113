"""A Spark standalone cluster on loopback: a master and workers, each a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from binlake.stream.spark.jars import pyspark_jars
from binlake.stream.spark.java import find_java
from embedded.process import free_ports

_WAIT_S = 240.0


@dataclass(frozen=True)
class Cluster:
    """Where the master takes applications, and how many workers registered with it."""

    master: str
    workers: int


def _start(name: str, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [str(find_java().command), "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{pyspark_jars()}/*"]
    command += [f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *arguments]
    # what spark-class would set: a worker started without it looks for a source tree
    home = {"SPARK_HOME": str(pyspark_jars().parent), "SPARK_SCALA_VERSION": "2.12", "SPARK_LOCAL_IP": "127.0.0.1"}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | home
    with log.open("wb") as out:
        return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=log.parent, env=environment)


def _wait_for(log: Path, text: str, times: int) -> None:
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        if log.exists() and log.read_text(errors="replace").count(text) >= times:
            return
        time.sleep(0.2)
    raise RuntimeError(f"{text!r} did not appear in {log}: {log.read_text(errors='replace')[-2000:]}")


@contextlib.contextmanager
def standalone_cluster(place: Path, workers: int) -> Iterator[Cluster]:
    """Run the cluster for the length of the block."""
    port, web = free_ports(2)
    processes = []
    try:
        master_log = place / "master.log"
        processes.append(_start("master.Master", master_log, "--port", str(port), "--webui-port", str(web)))
        _wait_for(master_log, "I have been elected leader", 1)
        for n in range(workers):
            directory = place / f"worker-{n}"
            directory.mkdir()
            sizes = [
                "--cores",
                "1",
                "--memory",
                "1g",
                "--webui-port",
                str(free_ports(1)[0]),
                "--work-dir",
                str(directory),
            ]
            log = place / f"worker-{n}.log"
            processes.append(_start("worker.Worker", log, *sizes, f"spark://127.0.0.1:{port}"))
        _wait_for(master_log, "Registering worker", workers)
        yield Cluster(f"spark://127.0.0.1:{port}", workers)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(timeout=30)
