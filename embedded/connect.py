"""Kafka Connect with Debezium's MariaDB connector as a child process: one standalone worker from Maven jars."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embedded.jars import DEBEZIUM
from embedded.process import HOST, EmbeddedService, free_ports, last_words
from pipeline.errors import TransientError
from pipeline.spark.jars import resolve
from pipeline.spark.java import find_java

_ANSWER_S = 5.0

_WORKER = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
    # Its default turns an explicit NULL into the column's default.
    "value.converter.replace.null.with.default": "false",
    "topic.creation.enable": "true",
    "producer.linger.ms": "5",
}


class EmbeddedConnect(EmbeddedService):
    """A worker that runs for the duration of the ``with`` block; its offsets stay in ``data_dir`` for the next start.

    Args:
        data_dir: directory for offsets, configuration and ``connect.log``; created if missing.
        bootstrap_servers: the broker that receives the events.
        connectors: name -> properties, without ``name``.
        flush_ms: interval of saving the connectors' offsets, in ms; events since then come again after a kill.
        heap_mb: the JVM's heap, in MB.
        start_timeout_s: the most time a start may take, in seconds.
    """

    def __init__(
        self,
        data_dir: Path,
        bootstrap_servers: str,
        connectors: Mapping[str, Mapping[str, str]],
        *,
        flush_ms: int = 1_000,
        heap_mb: int = 256,
        start_timeout_s: float = 120,
    ) -> None:
        super().__init__(data_dir, "connect.log", start_timeout_s)
        self._servers = bootstrap_servers
        self._connectors = connectors
        self._flush_ms = flush_ms
        self._heap_mb = heap_mb
        self._port = 0

    @property
    def offsets_file(self) -> Path:
        """The file that keeps the connectors' offsets."""
        return self._dir / "offsets.dat"

    def start(self) -> None:
        """Start the worker and wait until every connector and its task run.

        Raises:
            TransientError: the worker ended, a connector failed, or it took too long (with the end of the log).
            ConfigError: no Java.
        """
        self._dir.mkdir(parents=True, exist_ok=True)
        [self._port] = free_ports(1)
        files = [self._write("worker", {**_WORKER, **self._worker_properties()})]
        files += [self._write(name, {"name": name, **settings}) for name, settings in self._connectors.items()]
        self._spawn(self._java("org.apache.kafka.connect.cli.ConnectStandalone", *map(str, files)))
        problem = self._wait_until(lambda: all(self._runs(name) for name in self._connectors), pause_s=0.2)
        if problem:
            raise TransientError(
                f"Kafka Connect did not start: {problem}", do_next="read its log", log=str(self.log_file)
            )

    def check(self) -> None:
        """Raise TransientError if a connector no longer runs: the worker itself continues without it."""
        for name in self._connectors:
            if not self._runs(name):
                raise self._broken(f"the connector {name} does not run")

    def _worker_properties(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self._servers,
            "offset.storage.file.filename": str(self.offsets_file),
            "offset.flush.interval.ms": str(self._flush_ms),
            "listeners": f"http://{HOST}:{self._port}",
        }

    def _write(self, name: str, properties: Mapping[str, str]) -> Path:
        """A properties file that only its owner can read: a connector's file contains the database's password."""
        path = self._dir / f"{name}.properties"
        path.touch(mode=0o600)
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return path

    def _java(self, *arguments: str) -> list[str]:
        log = "-Dorg.slf4j.simpleLogger"
        levels = [f"{log}.showDateTime=true", f"{log}.defaultLogLevel=warn", f"{log}.log.io.debezium=info"]
        heap = ["-Xms64m", f"-Xmx{self._heap_mb}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        classes = f"{resolve(DEBEZIUM, 'debezium')[0].parent}/*"
        return [str(find_java().command), *heap, *levels, "-cp", classes, *arguments]

    def _runs(self, connector: str) -> bool:
        """Whether a connector and its one task run. Raises TransientError if the task failed."""
        status = self._ask(f"connectors/{connector}/status")
        states = [status.get("connector", {}).get("state"), *(t["state"] for t in status.get("tasks", ()))]
        if "FAILED" in states:
            traces = [t.get("trace", "") for t in status["tasks"]]
            raise self._broken(f"the connector {connector} failed: {' '.join(traces).strip()[:1000]}")
        return len(states) > 1 and set(states) == {"RUNNING"}

    def _ask(self, path: str) -> dict[str, Any]:
        """An answer of the worker's REST interface; empty while it does not answer, or if the path is unknown."""
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            with urllib.request.urlopen(f"http://{HOST}:{self._port}/{path}", timeout=_ANSWER_S) as answer:
                found = json.load(answer)
            return found if isinstance(found, dict) else {}
        return {}

    def _broken(self, what: str) -> TransientError:
        words = last_words(self._printed())
        return TransientError(f"{what}; {words}", do_next="read its log", log=str(self.log_file))
