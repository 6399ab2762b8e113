"""A private Trino as a child process: one node, catalogs by their properties, on loopback. Needs 1.5 GB of memory."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embedded.process import HOST, EmbeddedService, free_ports
from embedded.trino_programs import java_home, trino_home
from hudilake import clock
from hudilake.errors import TransientError, UnsupportedError

_HEAP_MB = 1024
_QUERY_S = 180.0
_PAUSE_S = 0.05


class EmbeddedTrino(EmbeddedService):
    """A node that runs for the duration of the ``with`` block.

    Args:
        data_dir: directory for its configuration, data and ``trino.log``; created if missing.
        catalogs: properties of each catalog by its name.
        start_timeout_s: the most time a start may take, in seconds; 20-40 s on 2 cores.
    """

    def __init__(
        self, data_dir: Path, catalogs: Mapping[str, Mapping[str, str]], *, start_timeout_s: float = 240
    ) -> None:
        super().__init__(data_dir, "trino.log", start_timeout_s)
        self._catalogs = catalogs
        self.port = 0

    def start(self) -> None:
        """Start the node and wait until it answers a query.

        Raises:
            TransientError: it could not be fetched, ended, or did not answer in time.
        """
        home, java = trino_home(), java_home() / "bin" / "java"
        [self.port] = free_ports(1)
        self._configure()
        command = [str(java), *self._java_options(), "-cp", "lib/*", "io.trino.server.TrinoServer"]
        self._spawn(command, directory=home)
        problem = self._wait_until(self._answers, pause_s=0.5)
        if problem:
            raise TransientError(f"Trino did not start: {problem}", do_next="read its log", log=str(self.log_file))

    def query(self, sql: str) -> list[list[Any]]:
        """The rows of a statement. Raises UnsupportedError with Trino's words, TransientError if it does not end."""
        until = clock.monotonic_s() + _QUERY_S
        answer = self._ask(f"http://{HOST}:{self.port}/v1/statement", sql.encode())
        rows = list(answer.get("data", []))
        while "nextUri" in answer:
            if clock.monotonic_s() > until:
                raise TransientError("Trino does not finish a query", do_next="read its log", log=str(self.log_file))
            time.sleep(_PAUSE_S)
            answer = self._ask(answer["nextUri"])
            rows += answer.get("data", [])
        if "error" in answer:
            raise UnsupportedError(f"Trino refuses: {answer['error']['message']}", do_next="correct the statement")
        return rows

    def _ask(self, address: str, body: bytes | None = None) -> dict[str, Any]:
        request = urllib.request.Request(address, data=body, headers={"X-Trino-User": "binlake"})  # noqa: S310 - ours
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - ours
            found: dict[str, Any] = json.load(answer)
        return found

    def _answers(self) -> bool:
        try:
            return self.query("SELECT 1") == [[1]]
        except (urllib.error.URLError, OSError, UnsupportedError, json.JSONDecodeError):
            return False

    def _configure(self) -> None:
        etc = self._dir / "etc"
        (etc / "catalog").mkdir(parents=True, exist_ok=True)
        address = f"http://{HOST}:{self.port}"
        server = {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": str(self.port),
            "discovery.uri": address,
            "query.max-memory": "300MB",
            "query.max-memory-per-node": "300MB",
            "memory.heap-headroom-per-node": "200MB",
            "catalog.config-dir": str(etc / "catalog"),
        }
        _write(etc / "config.properties", server)
        _write(etc / "log.properties", {"io.trino": "WARN"})
        for name, properties in self._catalogs.items():
            _write(etc / "catalog" / f"{name}.properties", properties)

    def _java_options(self) -> list[str]:
        etc = self._dir / "etc"
        return [
            f"-Xmx{_HEAP_MB}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:+ExitOnOutOfMemoryError",
            "-Djdk.attach.allowAttachSelf=true",
            "--sun-misc-unsafe-memory-access=allow",
            "--enable-native-access=ALL-UNNAMED",
            "-Duser.timezone=UTC",
            "-Dnode.environment=tests",
            "-Dnode.id=one",
            f"-Dnode.data-dir={self._dir / 'data'}",
            f"-Dlog.levels-file={etc / 'log.properties'}",
            f"-Dconfig={etc / 'config.properties'}",
        ]


def _write(file: Path, properties: Mapping[str, str]) -> None:
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
