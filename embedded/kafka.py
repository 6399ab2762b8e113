"""A real Kafka broker as a child process: one KRaft node from Maven jars, on loopback, with a small heap."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from binlake.stream.spark.jars import resolve
from binlake.stream.spark.java import find_java
from embedded.jars import KAFKA_BROKER
from embedded.process import HOST, EmbeddedService, free_ports, is_free, last_words
from hudilake.errors import ConfigError, TransientError

# Base64 of the sixteen bytes `binlake-embedded`, because Kafka expects a UUID in this form.
_CLUSTER_ID = "YmlubGFrZS1lbWJlZGRlZA"
_STARTED = "Kafka Server started"
_PORT_TAKEN = ("Address already in use", "BindException")
_PORT_ATTEMPTS = 3

_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "num.partitions": "1",
    "auto.create.topics.enable": "true",
    # One partition: the default of fifty costs seconds when the first consumer group joins.
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # Recorded events are older than any retention.
    "log.retention.hours": "-1",
    # Small heap: the default buffer alone is 128 MB.
    "log.cleaner.dedupe.buffer.size": "2097152",
    "num.network.threads": "1",
    "num.io.threads": "2",
    "background.threads": "1",
}


class EmbeddedKafka(EmbeddedService):
    """A broker that runs for the duration of the ``with`` block; its data stays in ``data_dir`` for the next start.

    A restart on the same directory keeps the topics, the offsets and, if they are still free, the ports, so that
    clients find the broker again.

    Args:
        data_dir: directory for the log segments, ``server.properties`` and ``kafka.log``; created if missing.
        heap_mb: the JVM's heap, in MB.
        properties: broker settings to add or replace.
        start_timeout_s: the most time a start may take, in seconds.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        heap_mb: int = 256,
        properties: Mapping[str, str] | None = None,
        start_timeout_s: float = 120,
    ) -> None:
        super().__init__(data_dir, "kafka.log", start_timeout_s)
        self._heap_mb = heap_mb
        self._extra = dict(properties or {})
        self._ports: tuple[int, int] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` for clients. Raises ConfigError before the first start."""
        if self._ports is None:
            raise ConfigError("the broker was not started", do_next="call start()", path=str(self._dir))
        return f"{HOST}:{self._ports[0]}"

    def start(self) -> None:
        """Format a new directory, start the broker and wait until it serves. No effect if it runs.

        Raises:
            TransientError: the broker ended or did not serve in time (the message has the end of its log), or its
                libraries could not be fetched.
            ConfigError: no Java.
        """
        if self.pid is not None:
            return
        self._dir.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self._ports = self._choose_ports()
            self._write_properties(*self._ports)
            self._format()
            problem = self._launch()
            if problem is None:
                return
            if attempt == _PORT_ATTEMPTS or not any(word in problem for word in _PORT_TAKEN):
                raise TransientError(
                    f"the Kafka broker did not start: {problem}", do_next="read its log", log=str(self.log_file)
                )

    def _choose_ports(self) -> tuple[int, int]:
        """The ports of the last start on this directory if both are free, else two free ports."""
        with contextlib.suppress(FileNotFoundError):
            kept = re.findall(rf"{re.escape(HOST)}:(\d+)", _listeners(self._config))
            if len(kept) == 2 and all(is_free(int(port)) for port in kept):
                return int(kept[0]), int(kept[1])
        port, controller_port = free_ports(2)
        return port, controller_port

    @property
    def _config(self) -> Path:
        return self._dir / "server.properties"

    def _write_properties(self, port: int, controller_port: int) -> None:
        settings = _PROPERTIES | {
            "controller.quorum.voters": f"1@{HOST}:{controller_port}",
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "log.dirs": str(self._dir / "data"),
        }
        lines = [f"{key}={value}\n" for key, value in (settings | self._extra).items()]
        self._config.write_text("".join(lines))

    def _java(self, *arguments: str) -> list[str]:
        log = "-Dorg.slf4j.simpleLogger"
        classes = f"{resolve(KAFKA_BROKER, 'kafka-broker')[0].parent}/*"
        # The info line of this one class reports that the broker serves.
        levels = [f"{log}.defaultLogLevel=warn", f"{log}.log.kafka.server.KafkaRaftServer=info"]
        heap = ["-Xms64m", f"-Xmx{self._heap_mb}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return [str(find_java().command), *heap, *levels, "-cp", classes, *arguments]

    def _format(self) -> None:
        if (self._dir / "data" / "meta.properties").exists():
            return
        command = self._java("kafka.tools.StorageTool", "format", "--ignore-formatted")
        command += ["-t", _CLUSTER_ID, "-c", str(self._config)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise TransientError(
                f"Kafka could not format its directory: {last_words(done.stdout)}",
                do_next="use an empty directory",
                path=str(self._dir),
            )

    def _launch(self) -> str | None:
        """Start the process and wait; None when it serves, else the error text after the process has ended."""
        self._spawn(self._java("kafka.Kafka", str(self._config)))
        return self._wait_until(lambda: _STARTED in self._printed(), pause_s=0.05)


def _listeners(config: Path) -> str:
    found = re.search(r"^listeners=(.*)$", config.read_text(), re.MULTILINE)
    return found[1] if found else ""
