"""A private PostgreSQL server as a child process: its own directory and port, on loopback."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

import psycopg

from embedded.postgresql_programs import postgresql_home
from embedded.process import HOST, EmbeddedService, free_ports
from hudilake.errors import TransientError

#: Settings that keep the server small. Commits are not synced to the disk: a test's machine is not cut off.
SETTINGS: Final = {
    "fsync": "off",
    "shared_buffers": "16MB",
    "max_connections": "100",
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
}
USER: Final = "binlake"
#: The server refuses to run as root. In a user namespace root's files and processes belong to this user.
_AS_USER: Final = ("unshare", "--user", "--map-user=1000")


class EmbeddedPostgreSQL(EmbeddedService):
    """A server that runs for the duration of the ``with`` block; its data stays in ``data_dir`` for the next start.

    Its superuser ``binlake`` needs no password; only this machine can reach it.

    Args:
        data_dir: directory for data and ``postgresql.log``; created if missing.
        settings: further settings of the server.
        start_timeout_s: the most time a start may take, in seconds.
    """

    def __init__(self, data_dir: Path, *, settings: dict[str, str] | None = None, start_timeout_s: float = 60) -> None:
        super().__init__(data_dir, "postgresql.log", start_timeout_s)
        self._settings = {**SETTINGS, **(settings or {})}
        self.host, self.port = HOST, 0

    def start(self) -> None:
        """Make the files of a new server, start it and wait until it answers.

        Raises TransientError as ``EmbeddedMariaDB.start``, and UnsupportedError where there is no build."""
        self._dir.mkdir(parents=True, exist_ok=True)
        if not (self._dir / "data" / "PG_VERSION").is_file():
            self._install()
        [self.port] = free_ports(1)
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        self._serve("PostgreSQL", [*self._command("postgres"), "-p", str(self.port), *settings], self._answers)

    def stop(self, timeout_s: float = 20) -> None:
        """Stop the service; sessions that are still open are ended."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
        super().stop(timeout_s)

    def execute(self, sql: str) -> list[tuple[object, ...]]:
        """Run a statement as the superuser; returns its rows. Raises TransientError with the error text."""
        try:
            with psycopg.connect(self._address, autocommit=True) as connection:
                cursor = connection.execute(sql.encode())
                return list(cursor) if cursor.description else []
        except psycopg.Error as error:
            raise TransientError(f"PostgreSQL refused: {error}", do_next="correct the statement") from error

    @property
    def _address(self) -> str:
        return f"host={self.host} port={self.port} user={USER} dbname=postgres connect_timeout=5"

    def _answers(self) -> bool:
        try:
            psycopg.connect(self._address).close()
        except psycopg.Error:
            return False
        return True

    def _command(self, program: str) -> list[str]:
        as_user = _AS_USER if os.geteuid() == 0 else ()
        return [*as_user, str(postgresql_home() / "bin" / program), "-D", str(self._dir / "data")]

    def _install(self) -> None:
        command = [*self._command("initdb"), f"--username={USER}", "--auth=trust", "--encoding=UTF8"]
        self._prepare("PostgreSQL", [*command, "--locale=C", "--no-sync"])
