"""Kafka Connect with Debezium's MariaDB connector as a child process: one standalone worker from Maven jars."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from binlake.stream.spark.jars import resolve
from binlake.stream.spark.java import find_java
from embedded.database import EmbeddedDatabase
from embedded.jars import DEBEZIUM
from embedded.process import HOST, EmbeddedService, free_ports, last_words
from hudilake.errors import TransientError

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


def database_connector(
    database: EmbeddedDatabase, user: str, password: str, *, prefix: str, server_id: int, include: str, partitions: int
) -> dict[str, str]:
    """The properties of a Debezium connector that follows an embedded server; its history of schemas is not among
    them (``history_in_kafka``). That of a MySQL needs a worker with ``jars=DEBEZIUM_MYSQL``.

    Args:
        database: that is followed.
        user, password: an account with Debezium's rights.
        prefix: of the topics; the topic with statements has this name.
        server_id: of the connector as a replica; each connector of a server has its own.
        include: the databases, with commas between them.
        partitions: of each topic that the connector makes.
    """
    return {
        **database.CONNECTOR,
        "tasks.max": "1",
        "topic.prefix": prefix,
        "database.hostname": database.host,
        "database.port": str(database.port),
        "database.user": user,
        "database.password": password,
        "database.server.id": str(server_id),
        "database.include.list": include,
        "skipped.operations": "none",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": str(partitions),
    }


def history_in_kafka(prefix: str, bootstrap_servers: str) -> dict[str, str]:
    """The properties by which a connector keeps its history of schemas in a topic."""
    return {
        "schema.history.internal.kafka.topic": f"{prefix}_history",
        "schema.history.internal.kafka.bootstrap.servers": bootstrap_servers,
    }


class EmbeddedConnect(EmbeddedService):
    """A worker that runs for the duration of the ``with`` block; its offsets stay in ``data_dir`` for the next start.

    Args:
        data_dir: directory for offsets, configuration and ``connect.log``; created if missing.
        bootstrap_servers: the broker that receives the events.
        connectors: name -> properties, without ``name``.
        properties: of the worker, to add or replace.
        jars: coordinates of the worker and its connectors.
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
        properties: Mapping[str, str] | None = None,
        jars: Sequence[str] = DEBEZIUM,
        flush_ms: int = 1_000,
        heap_mb: int = 256,
        start_timeout_s: float = 120,
    ) -> None:
        super().__init__(data_dir, "connect.log", start_timeout_s)
        self._servers = bootstrap_servers
        self._connectors = dict(connectors)
        self._properties = dict(properties or {})
        self._jars = jars
        self._flush_ms = flush_ms
        self._heap_mb = heap_mb
        self._port = 0

    @property
    def port(self) -> int:
        """Of the worker's REST interface, once it has started."""
        return self._port

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
        files = [self._write("worker", {**_WORKER, **self._worker_properties(), **self._properties})]
        files += [self._write(name, {"name": name, **settings}) for name, settings in self._connectors.items()]
        self._spawn(self._java("org.apache.kafka.connect.cli.ConnectStandalone", *map(str, files)))
        self._wait_for_connectors("Kafka Connect did not start")

    def add(self, name: str, settings: Mapping[str, str]) -> None:
        """Start one more connector and wait until it and its task run.

        Args:
            name: of the connector.
            settings: its properties, without ``name``.

        Raises:
            TransientError: the worker refused it, or it failed.
        """
        self._connectors[name] = settings
        try:
            self._send("POST", "connectors", {"name": name, "config": {"name": name, **settings}})
            self._wait_for_connectors(f"the connector {name} did not start")
        except TransientError:
            self.remove(name)
            raise

    def remove(self, name: str) -> None:
        """Stop a connector. The worker no longer knows it then; its topics and its offsets stay."""
        del self._connectors[name]
        self._send("DELETE", f"connectors/{name}")

    def _wait_for_connectors(self, failed: str) -> None:
        problem = self._wait_until(self._serves, pause_s=0.2)
        if problem:
            raise TransientError(f"{failed}: {problem}", do_next="read its log", log=str(self.log_file))

    def _serves(self) -> bool:
        if not self._connectors:
            return bool(self._ask(""))
        return all(self._runs(name) for name in self._connectors)

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
        # Debezium reads the text of DDL statements in the charset of its process: "?" for "é" under LC_ALL=C.
        heap.append("-Dfile.encoding=UTF-8")
        classes = f"{resolve(self._jars, 'debezium')[0].parent}/*"
        return [str(find_java().command), *heap, *levels, "-cp", classes, *arguments]

    def _runs(self, connector: str) -> bool:
        """Whether a connector and its one task run. Raises TransientError if the task failed."""
        status = self._ask(f"connectors/{connector}/status")
        states = [status.get("connector", {}).get("state"), *(t["state"] for t in status.get("tasks", ()))]
        if "FAILED" in states:
            traces = [line for t in status["tasks"] for line in t.get("trace", "").splitlines()]
            causes = " ".join(line for line in traces if not line.startswith("\tat "))
            raise self._broken(f"the connector {connector} failed: {causes[:2000]}")
        return len(states) > 1 and set(states) == {"RUNNING"}

    def _ask(self, path: str) -> dict[str, Any]:
        """An answer of the worker's REST interface; empty while it does not answer, or if the path is unknown."""
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            with urllib.request.urlopen(f"http://{HOST}:{self._port}/{path}", timeout=_ANSWER_S) as answer:
                found = json.load(answer)
            return found if isinstance(found, dict) else {}
        return {}

    def _send(self, method: str, path: str, body: Mapping[str, object] | None = None) -> None:
        """A request that changes something. Raises TransientError with the worker's answer."""
        request = urllib.request.Request(
            f"http://{HOST}:{self._port}/{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=60):  # noqa: S310
                pass
        except urllib.error.HTTPError as error:
            raise self._broken(f"{method} {path} was refused: {error.read().decode(errors='replace')[:1000]}") from None
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            raise self._broken(f"{method} {path} failed: {error}") from error

    def _broken(self, what: str) -> TransientError:
        words = last_words(self._printed())
        return TransientError(f"{what}; {words}", do_next="read its log", log=str(self.log_file))
