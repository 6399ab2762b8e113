"""YARN on one machine, from Hadoop's jars: a ResourceManager and a NodeManager as child processes, with small heaps."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from binlake.stream.spark.jars import resolve
from binlake.stream.spark.java import find_java, java_environment
from embedded.hadoop_configuration import write_configuration
from embedded.jars import YARN
from embedded.process import HOST, EmbeddedService, free_ports

_SERVER = "org.apache.hadoop.yarn.server"
#: Guice of Hadoop 3.3 defines classes by a method that Java 17 keeps closed.
_OPENED = "--add-opens=java.base/java.lang=ALL-UNNAMED"
_JVM = ("-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", _OPENED)
_SCHEDULER = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    # By default a tenth of the memory, which on one machine is no driver.
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}


@dataclass(frozen=True)
class Yarn:
    """A running YARN.

    Args:
        configuration: the directory for HADOOP_CONF_DIR.
        logs: of containers: ``application_.../container_.../stdout`` and ``stderr``.
    """

    configuration: Path
    logs: Path


class YarnDaemon(EmbeddedService):
    """One of the two daemons.

    Args:
        data_dir: has the directory ``conf``; its log is written here.
        name: ``resourcemanager.ResourceManager`` or ``nodemanager.NodeManager``.
        web: of the ResourceManager, which tells whether the daemon serves.
    """

    def __init__(self, data_dir: Path, name: str, web: str) -> None:
        super().__init__(data_dir, f"{name.partition('.')[0]}.log")
        self._name, self._web = name, web

    def start(self) -> None:
        """Start the daemon and wait until it serves. Raises TransientError with the end of its log, ConfigError
        without a Java."""
        classes = ":".join([str(self._dir / "conf"), *map(str, resolve(YARN, "yarn"))])
        command = [str(find_java().command), *_JVM, "-cp", classes, f"{_SERVER}.{self._name}"]
        # Containers inherit JAVA_HOME of the NodeManager.
        environment = {k: v for k, v in java_environment().items() if not k.startswith(("HADOOP_", "YARN_", "SPARK_"))}
        self._spawn(command, directory=self._dir, environment=environment)
        self._await(self._name, self._serves)

    def _serves(self) -> bool:
        try:
            address = f"{self._web}/ws/v1/cluster/metrics"
            with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310 - of loopback
                # With these jars it has no outer object ``clusterMetrics``.
                nodes = json.load(answer).get("activeNodes")
        except OSError:
            return False
        return nodes == 1 or (nodes is not None and self._name.startswith("resource"))


@contextlib.contextmanager
def start_yarn(data_dir: Path, file_system: str, memory_mb: int = 8192) -> Iterator[Yarn]:
    """Run YARN for the length of the block. Processes of containers that are left at its end are killed by YARN.

    Args:
        data_dir: for configuration, logs and the files of containers; created if missing.
        file_system: ``hdfs://host:port``, the file system of applications.
        memory_mb: that the node gives to containers; it is counted and not enforced.

    Raises as ``YarnDaemon.start``.
    """
    place = Path(data_dir).absolute()
    configuration = place / "conf"
    configuration.mkdir(parents=True, exist_ok=True)
    *ports, web_port, localizer = free_ports(6)
    web = f"http://{HOST}:{web_port}"
    names = ("address", "scheduler.address", "resource-tracker.address", "admin.address")
    addresses = {f"yarn.resourcemanager.{name}": f"{HOST}:{port}" for name, port in zip(names, ports, strict=True)}
    core = {"fs.defaultFS": file_system, "hadoop.tmp.dir": str(place / "data")}
    addresses |= {
        "yarn.resourcemanager.hostname": HOST,
        "yarn.resourcemanager.webapp.address": f"{HOST}:{web_port}",
        "yarn.nodemanager.localizer.address": f"{HOST}:{localizer}",
    }
    write_configuration(configuration / "core-site.xml", core)
    write_configuration(configuration / "capacity-scheduler.xml", _SCHEDULER)
    write_configuration(configuration / "yarn-site.xml", addresses | _of_node(place, memory_mb))
    with (
        YarnDaemon(place, "resourcemanager.ResourceManager", web),
        YarnDaemon(place, "nodemanager.NodeManager", web),
    ):
        yield Yarn(configuration, place / "containers")


def _of_node(place: Path, memory_mb: int) -> dict[str, str]:
    return {
        "yarn.nodemanager.hostname": HOST,
        "yarn.nodemanager.address": f"{HOST}:0",
        "yarn.nodemanager.webapp.address": f"{HOST}:0",
        "yarn.nodemanager.resource.memory-mb": str(memory_mb),
        "yarn.nodemanager.resource.cpu-vcores": "16",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.local-dirs": str(place / "local"),
        "yarn.nodemanager.log-dirs": str(place / "containers"),
        # A disk of 90 percent is no broken one.
        "yarn.nodemanager.disk-health-checker.enable": "false",
    }
