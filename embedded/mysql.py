"""A private MySQL server as a child process: row-based binlog, its own directory and port, on loopback."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

from embedded.mysql_programs import mysql_home, program
from embedded.process import HOST, EmbeddedService, free_ports
from hudilake.errors import TransientError

#: Settings that change data capture requires, and settings that keep the server small.
_SETTINGS = {
    "server_id": "4712",
    "log_bin": "mysql-bin",
    "binlog_row_metadata": "FULL",
    "gtid_mode": "ON",
    "enforce_gtid_consistency": "ON",
    "default_time_zone": "+00:00",
    "innodb_flush_log_at_trx_commit": "0",
    "sync_binlog": "0",
    "innodb_buffer_pool_size": "32M",
    "innodb_redo_log_capacity": "8M",
    "mysqlx": "OFF",
    "secure_file_priv": "",
}


class EmbeddedMySQL(EmbeddedService):
    """A server that runs for the duration of the ``with`` block; its data stays in ``data_dir`` for the next start.

    Its ``root`` has no password and is accessible only through the socket in ``data_dir``.

    Args:
        data_dir: directory for data, binlog, socket and ``mysql.log``; created if missing. Its path must be short,
            because a socket's path is limited.
        settings: of the server besides those of this module, by name.
        start_timeout_s: the most time a start may take, in seconds.
    """

    def __init__(self, data_dir: Path, settings: dict[str, str] | None = None, *, start_timeout_s: float = 120) -> None:
        super().__init__(data_dir, "mysql.log", start_timeout_s)
        self.host, self.port = HOST, 0
        self._more = settings or {}

    def start(self) -> None:
        """Create the system tables in a new directory, start the server and wait until it answers.

        Raises:
            TransientError: the server could not be fetched, ended or did not answer in time; the message has the end of
                its log.
            UnsupportedError: the server cannot be had on this machine.
        """
        self._dir.mkdir(parents=True, exist_ok=True)
        if not (self._dir / "data" / "mysql").is_dir():
            self._prepare("MySQL", [*self._server(), "--initialize-insecure"])
        [self.port] = free_ports(1)
        place = [f"--port={self.port}", f"--bind-address={HOST}", f"--socket={self.socket}"]
        command = [*self._server(), *place, f"--pid-file={self._dir / 'pid'}"]
        self._serve("MySQL", command, lambda: self._run("SELECT 1").returncode == 0)

    def execute(self, sql: str) -> list[str]:
        """Run statements as root; returns the raw lines of their answers. Raises TransientError with the error text."""
        done = self._run(sql)
        if done.returncode:
            raise TransientError(f"MySQL refused: {done.stderr.strip()}", do_next="correct the statement")
        return done.stdout.splitlines()

    def binlog_place(self) -> str:
        """Where the binlog ends: file and position. Raises as ``execute``."""
        return ":".join(self.execute("SHOW BINARY LOG STATUS")[0].split("\t")[:2])

    def client_command(self, *options: str) -> list[str]:
        """The command of the server's own client as root, which reads statements from its standard input.

        Args:
            options: further options of ``mysql``.
        """
        command = [*program(self._home, "usr/bin/mysql"), "--no-defaults", f"--socket={self.socket}", "--user=root"]
        return [*command, "--batch", "--skip-column-names", "--default-character-set=utf8mb4", *options]

    @property
    def socket(self) -> Path:
        """By which ``root`` reaches the server."""
        return self._dir / "sock"

    @functools.cached_property
    def _home(self) -> Path:
        return mysql_home()

    def _run(self, sql: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.client_command("--raw"), input=sql, capture_output=True, text=True, check=False)

    def _server(self) -> list[str]:
        share = self._home / "usr/share/mysql"
        own = {
            "datadir": str(self._dir / "data"),
            # The server looks for both at the paths of an installed package.
            "lc_messages_dir": str(share),
            "character_sets_dir": str(share / "charsets"),
        }
        options = [f"--{name}={value}" for name, value in {**_SETTINGS, **own, **self._more}.items()]
        command = [*program(self._home, "usr/sbin/mysqld"), "--no-defaults", *options]
        # The server refuses to run as root without this option.
        return command + (["--user=root"] if os.geteuid() == 0 else [])
