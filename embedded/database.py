"""What the embedded servers of MySQL's kind have in common: a root without a password, and a binlog."""

from __future__ import annotations

import subprocess
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from embedded.process import HOST, EmbeddedService
from hudilake.errors import TransientError


class EmbeddedDatabase(EmbeddedService):
    """A server whose ``root`` has no password and is accessible only through the socket in ``data_dir``.

    Args:
        data_dir: directory for data, binlog, socket and log; created if missing. Its path must be short, because a
            socket's path is limited.
        start_timeout_s: the most time a start may take, in seconds.
    """

    #: For people.
    NAME: ClassVar[str]
    #: The statement that says where the binlog ends.
    STATUS: ClassVar[str]
    #: The properties of a Debezium connector that are the server's alone.
    CONNECTOR: ClassVar[Mapping[str, str]]

    def __init__(self, data_dir: Path, *, start_timeout_s: float = 120) -> None:
        super().__init__(data_dir, f"{self.NAME.lower()}.log", start_timeout_s)
        self.host, self.port = HOST, 0

    @abstractmethod
    def client_command(self, *options: str) -> list[str]:
        """The command of the server's own client as root, which reads statements from its standard input.

        Args:
            options: further options of the client.
        """

    def execute(self, sql: str) -> list[str]:
        """Run statements as root; returns the raw lines of their answers. Raises TransientError with the error text."""
        done = self._run(sql)
        if done.returncode:
            raise TransientError(f"{self.NAME} refused: {done.stderr.strip()}", do_next="correct the statement")
        return done.stdout.splitlines()

    def binlog_place(self) -> str:
        """Where the binlog ends: file and position. Raises as ``execute``."""
        return ":".join(self.execute(self.STATUS)[0].split("\t")[:2])

    @property
    def socket(self) -> Path:
        """By which ``root`` reaches the server."""
        return self._dir / "sock"

    def _run(self, sql: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.client_command("--raw"), input=sql, capture_output=True, text=True, check=False)

    def _serve_sql(self, command: list[str]) -> None:
        """Start the server and wait until it answers. Raises TransientError."""
        self._serve(self.NAME, command, lambda: self._run("SELECT 1").returncode == 0)
