"""A real HDFS for the tests: one NameNode and one DataNode from Maven jars, on loopback ports that were free."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hdfs_native import Client, WriteOptions

from binlake.stream.spark.jars import resolve
from binlake.stream.spark.java import find_java
from embedded.hadoop_configuration import write_configuration
from embedded.jars import HDFS
from embedded.process import EmbeddedService, free_ports
from hudilake import clock

_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_JVM = ("-Xms32m", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_START_TIMEOUT_S = 120


@dataclass(frozen=True)
class HdfsCluster:
    """A running HDFS. ``uri``: ``hdfs://127.0.0.1:port``, without a path."""

    uri: str


class _Node(EmbeddedService):
    """One Java process of the cluster; that it serves is seen from outside."""

    def __init__(self, data_dir: Path, name: str, command: Sequence[str]) -> None:
        super().__init__(data_dir, f"{name}.log")
        self._command = command

    def start(self) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HADOOP_")}
        self._spawn(self._command, directory=self._dir, environment=environment)


@contextlib.contextmanager
def start_hdfs(data_dir: Path) -> Iterator[HdfsCluster]:
    """Run an empty HDFS for the length of the block.

    Args:
        data_dir: for its data, its configuration and the logs ``namenode.log`` and ``datanode.log``.

    Raises:
        RuntimeError: it did not serve in time; the logs' last lines are in the message.
    """
    uri = f"hdfs://127.0.0.1:{free_ports(1)[0]}"
    _configure(data_dir, uri)
    command = [str(find_java().command), *_JVM, "-cp", ":".join(["conf", *map(str, resolve(HDFS, "hdfs"))])]
    with (data_dir / "format.log").open("wb") as log:
        subprocess.run([*command, _NAME_NODE, "-format", "-force"], cwd=data_dir, stdout=log, stderr=log, check=True)
    with (
        _Node(data_dir, "namenode", [*command, _NAME_NODE]) as name_node,
        _Node(data_dir, "datanode", [*command, _DATA_NODE]) as data_node,
    ):
        _await_writable(uri, (name_node, data_node))
        yield HdfsCluster(uri)


def _configure(data_dir: Path, uri: str) -> None:
    if data_dir.exists():
        shutil.rmtree(data_dir)
    conf = data_dir / "conf"
    conf.mkdir(parents=True)
    write_configuration(conf / "core-site.xml", {"fs.defaultFS": uri, "hadoop.tmp.dir": str(data_dir / "data")})
    loopback = "127.0.0.1:0"
    write_configuration(
        conf / "hdfs-site.xml",
        {
            "dfs.replication": "1",
            "dfs.permissions.enabled": "false",
            "dfs.namenode.http-address": loopback,
            "dfs.datanode.address": loopback,
            "dfs.datanode.ipc.address": loopback,
            "dfs.datanode.http.address": loopback,
            "dfs.namenode.safemode.extension": "0",
        },
    )


def _await_writable(uri: str, nodes: tuple[_Node, ...]) -> None:
    """Wait until the NameNode is out of safe mode and a DataNode takes data."""
    problem = _write_problem(uri)
    deadline = clock.monotonic_s() + _START_TIMEOUT_S
    while problem:
        if any(node.pid is None for node in nodes) or clock.monotonic_s() > deadline:
            logs = "\n".join(_tail(node.log_file) for node in nodes)
            raise RuntimeError(f"HDFS did not start: {problem}\n{logs}")
        time.sleep(0.25)
        problem = _write_problem(uri)


def _write_problem(uri: str) -> str:
    host, _, port = uri.rpartition("/")[2].partition(":")
    try:
        # The client tries a refused connection for minutes; a bare one tells at once.
        socket.create_connection((host, int(port)), timeout=5).close()
        client = Client(uri, {})
        with client.create("/.ready", WriteOptions(overwrite=True)) as file:
            file.write(b"1")
        client.delete("/.ready")
    except (OSError, RuntimeError) as error:
        return str(error)
    return ""


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])
