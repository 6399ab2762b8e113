"""A real HBase as a child process, from Maven jars: ZooKeeper, a master and two region servers on loopback."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from binlake.stream.spark.java import find_java
from embedded.hadoop_configuration import write_configuration
from embedded.hbase_programs import class_path
from embedded.process import HOST, EmbeddedService, free_ports, is_free
from hudilake.errors import ConfigError

_SERVES: Final = "HBase serves"
_OPENED: Final = ("java.nio", "java.lang", "sun.nio.ch")
_ANSWER_S: Final = 30.0
_LOG4J: Final = """log4j.rootLogger=WARN,err
log4j.appender.err=org.apache.log4j.ConsoleAppender
log4j.appender.err.layout=org.apache.log4j.PatternLayout
log4j.appender.err.layout.ConversionPattern=%d{HH:mm:ss} %p %c{1}: %m%n
log4j.appender.err.target=System.err
"""
_SETTINGS: Final = {
    # Written bytes are with the operating system when a put returns: they outlive the process.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "hbase.unsafe.stream.capability.enforce": "false",
    "hbase.wal.provider": "filesystem",
    "hbase.cluster.distributed": "false",
    "hbase.zookeeper.quorum": HOST,
    "hbase.master.ipc.address": HOST,
    "hbase.regionserver.ipc.address": HOST,
    "hbase.master.hostname": "localhost",
    "hbase.unsafe.regionserver.hostname": "localhost",
    "hbase.master.port": "0",
    "hbase.regionserver.port": "0",
    "hbase.master.info.port": "-1",
    "hbase.regionserver.info.port": "-1",
    "hbase.regionserver.handler.count": "6",
    "hbase.master.procedure.threads": "2",
    # Both region servers are there soon, and no other one comes: the master need not look whether one does.
    "hbase.master.wait.on.regionservers.mintostart": "2",
    "hbase.master.wait.on.regionservers.maxtostart": "2",
    "hbase.regionserver.msginterval": "300",
    # In milliseconds; the default of 30 s is short for a busy machine. A start has a limit of its own.
    "hbase.master.start.timeout.localHBaseCluster": "600000",
    # Regions move and compact when a test says so.
    "hbase.balancer.period": "3600000",
    "hbase.hregion.majorcompaction": "0",
    "hbase.hstore.compaction.min": "1000",
    "zookeeper.session.timeout": "10000",
    "replication.source.nb.capacity": "25",
    "replication.source.sleepforretries": "100",
    "replication.source.maxretriesmultiplier": "5",
    "replication.sleep.before.failover": "1500",
    # A client waits while HBase is started again.
    "hbase.client.retries.number": "60",
    "hbase.client.pause": "200",
    "hbase.client.operation.timeout": "120000",
}


class EmbeddedHBase(EmbeddedService):
    """HBase 2.5 that runs for the duration of the ``with`` block; its data stays in ``data_dir``.

    It may be killed and started again, by default at the same ports, so that clients find it. ``stop`` does not wait
    for its replication.

    Args:
        data_dir: for its data, its configuration and ``hbase.log``; created if missing.
        heap_mb: the JVM's heap, in MB.
        settings: of ``hbase-site.xml``, to add or to replace.
        start_timeout_s: the most time a start may take, in seconds; 8-15 s on 2 cores.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        heap_mb: int = 600,
        settings: Mapping[str, str] | None = None,
        start_timeout_s: float = 180,
    ) -> None:
        super().__init__(data_dir, "hbase.log", start_timeout_s)
        self._heap_mb = heap_mb
        self._settings = dict(settings or {})
        self._ports: tuple[int, int] | None = None

    @property
    def configuration(self) -> Path:
        """The directory of ``hbase-site.xml``, for clients."""
        return self._dir / "conf"

    def start(self) -> None:
        """Start HBase and wait until its master serves. No effect if it runs.

        Raises:
            TransientError: it ended or did not serve in time (the message has the end of its log), or its libraries
                could not be fetched.
            ConfigError: no Java.
        """
        if self.pid is not None:
            return
        if self._ports is None or not all(is_free(port) for port in self._ports):
            zookeeper, orders = free_ports(2)
            self._ports = zookeeper, orders
        self._configure(self._ports[0])
        heap = ["-Xms64m", f"-Xmx{self._heap_mb}m"]
        command = [*java(self.configuration, *heap), "binlake.hbase.Server", str(self._dir / "zookeeper")]
        self._serve("HBase", [*command, str(self._ports[1])], lambda: _SERVES in self._printed())

    def abort_region_server(self, port: int) -> None:
        """End a region server as its own failure would; another one starts, and takes over its regions and queues.

        Args:
            port: of the region server, as ``HBaseSource.region_servers`` says.

        Raises ConfigError if there is no such region server.
        """
        self._order(f"abort {port}")

    def slow_replication(self, pause_ms: int, port: int = 0) -> None:
        """Pause before each batch that the endpoint gets, in milliseconds; 0 ends it.

        Args:
            pause_ms: the pause.
            port: of a region server; 0 for all.
        """
        self._order(f"slow {port} {pause_ms}")

    def _order(self, order: str) -> None:
        if self._ports is None or self.pid is None:
            raise ConfigError("HBase does not run", do_next="call start()", path=str(self._dir))
        with socket.create_connection((HOST, self._ports[1]), timeout=_ANSWER_S) as connection:
            connection.sendall(f"{order}\n".encode())
            answer = connection.makefile().readline().strip()
        if answer != "done":
            raise ConfigError(f"HBase did not obey: {answer}", do_next="read its log", log=str(self.log_file))

    def _configure(self, zookeeper_port: int) -> None:
        self.configuration.mkdir(parents=True, exist_ok=True)
        data = self._dir / "data"
        places = {
            "hbase.rootdir": (data / "root").as_uri(),
            "hbase.wal.dir": (data / "wal").as_uri(),
            "hbase.tmp.dir": str(data / "tmp"),
            "hbase.zookeeper.property.clientPort": str(zookeeper_port),
        }
        write_configuration(self.configuration / "hbase-site.xml", _SETTINGS | places | self._settings)
        (self.configuration / "log4j.properties").write_text(_LOG4J)


def java(configuration: Path, *options: str) -> list[str]:
    """The beginning of a command that runs a class of HBase or of ``embedded/java``.

    Args:
        configuration: directory of ``hbase-site.xml``.
        options: of the JVM.
    """
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
    small = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [str(find_java().command), *options, *small, *opened, "-cp", f"{configuration}:{class_path()}"]
