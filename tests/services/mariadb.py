"""The database that the live test captures: MariaDB of this machine, or its public image where Docker answers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from embedded.mariadb import PACKAGES, SETTINGS, EmbeddedMariaDB
from pipeline import clock
from tests.services.kafka_container import daemon_problem

IMAGE = "mariadb:10.11"
# Said again at the end of the test run, so that nobody takes one for the other.
choices: list[str] = []


class Database(Protocol):
    """A running server, where it answers, and statements as its root."""

    host: str
    port: int

    def execute(self, sql: str) -> list[str]:
        """The lines of the statements' answers."""
        ...


@contextlib.contextmanager
def start_mariadb(data_dir: Path) -> Iterator[Database]:
    """Run a server for the length of the block. Raises RuntimeError where neither way is open: nothing is skipped."""
    missing = EmbeddedMariaDB.missing()
    if not missing:
        choices.append("MariaDB ran from this machine's packages")
        with EmbeddedMariaDB(data_dir) as server:
            yield server
        return
    problem = daemon_problem()
    if problem is not None:
        raise RuntimeError(
            f"the live test needs MariaDB ({', '.join(missing)} not found): install it, on Debian with "
            f"`apt-get install {PACKAGES}`; or start Docker, which would run {IMAGE} ({problem})"
        )
    choices.append(f"MariaDB ran as the container {IMAGE}")
    with _container() as server:
        yield server


@contextlib.contextmanager
def _container() -> Iterator[Database]:
    from testcontainers.core.container import DockerContainer

    container = DockerContainer(IMAGE).with_env("MARIADB_ALLOW_EMPTY_ROOT_PASSWORD", "1").with_exposed_ports(3306)
    container = container.with_command([f"--{name}={value}" for name, value in SETTINGS.items()])
    with container:
        yield _Contained(container)


class _Contained:
    """A server in a container; its own client runs the statements."""

    def __init__(self, container: object, timeout_s: float = 120) -> None:
        self._container = container.get_wrapped_container()  # type: ignore[attr-defined]
        self.host = str(container.get_container_host_ip())  # type: ignore[attr-defined]
        self.port = int(container.get_exposed_port(3306))  # type: ignore[attr-defined]
        deadline = clock.monotonic_s() + timeout_s
        # The image starts a first server without a network to set itself up: only the last one answers over TCP.
        while self._run("SELECT 1")[0]:
            if clock.monotonic_s() > deadline:
                raise RuntimeError(f"MariaDB did not start: {self._container.logs()[-2000:]!r}")
            time.sleep(0.2)

    def execute(self, sql: str) -> list[str]:
        code, said = self._run(sql)
        if code:
            raise RuntimeError(f"MariaDB refused: {said}")
        return said.splitlines()

    def _run(self, sql: str) -> tuple[int, str]:
        command = ["mariadb", "--host=127.0.0.1", "--user=root", "--batch", "--raw", "--skip-column-names"]
        done = self._container.exec_run([*command, "--default-character-set=utf8mb4", "--execute", sql])
        return int(done.exit_code), done.output.decode()
