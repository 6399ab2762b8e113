"""A private MariaDB server as a child process: row-based binlog, its own directory and port, on loopback."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

from embedded.mariadb_programs import mariadb_home
from embedded.process import HOST, EmbeddedService, free_ports
from hudilake.errors import TransientError

#: Settings that change data capture requires, and settings that keep the server small.
SETTINGS = {
    "server_id": "4711",
    "gtid_domain_id": "3",
    "log_bin": "mariadb-bin",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "character_set_server": "utf8mb4",
    "default_time_zone": "+00:00",
    # With ssl each start generates a key and a certificate: 17 s instead of 1 s (measured).
    "ssl": "OFF",
    "innodb_flush_log_at_trx_commit": "0",
    "innodb_buffer_pool_size": "32M",
    "innodb_log_file_size": "16M",
    "performance_schema": "OFF",
}


class EmbeddedMariaDB(EmbeddedService):
    """A server that runs for the duration of the ``with`` block; its data stays in ``data_dir`` for the next start.

    Its ``root`` has no password and is accessible only through the socket in ``data_dir``.

    Args:
        data_dir: directory for data, binlog, socket and ``mariadb.log``; created if missing. Its path must be short,
            because a socket's path is limited.
        start_timeout_s: the most time a start may take, in seconds.
    """

    def __init__(self, data_dir: Path, *, start_timeout_s: float = 120) -> None:
        super().__init__(data_dir, "mariadb.log", start_timeout_s)
        self.host, self.port = HOST, 0

    def start(self) -> None:
        """Create the system tables in a new directory, start the server and wait until it answers.

        Raises:
            TransientError: the server could not be fetched, ended or did not answer in time; the message has the end of
                its log.
            UnsupportedError: there is no build of the server for this machine.
        """
        self._dir.mkdir(parents=True, exist_ok=True)
        if not (self._dir / "data" / "mysql").is_dir():
            self._install()
        [self.port] = free_ports(1)
        place = [f"--port={self.port}", f"--bind-address={HOST}"]
        command = [*self._command("bin/mariadbd"), *place, *self._settings()]
        self._serve("MariaDB", command, lambda: self._run("SELECT 1").returncode == 0)

    def execute(self, sql: str) -> list[str]:
        """Run statements as root; returns the raw lines of their answers. Raises TransientError with the error text."""
        done = self._run(sql)
        if done.returncode:
            raise TransientError(f"MariaDB refused: {done.stderr.strip()}", do_next="correct the statement")
        return done.stdout.splitlines()

    @functools.cached_property
    def _home(self) -> Path:
        return mariadb_home()

    def binlog_place(self) -> str:
        """Where the binlog ends: file and position. Raises as ``execute``."""
        return ":".join(self.execute("SHOW MASTER STATUS")[0].split("\t")[:2])

    def client_command(self, *options: str) -> list[str]:
        """The command of the server's own client as root, which reads statements from its standard input.

        Args:
            options: further options of ``mariadb``.
        """
        command = [str(self._home / "bin/mariadb"), "--no-defaults", f"--socket={self.socket}", "--user=root"]
        command += ["--batch", "--skip-column-names", "--skip-ssl", "--default-character-set=utf8mb4"]
        return [*command, *options]

    def _run(self, sql: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.client_command("--raw"), input=sql, capture_output=True, text=True, check=False)

    @property
    def socket(self) -> Path:
        """By which ``root`` reaches the server."""
        return self._dir / "sock"

    def _command(self, program: str) -> list[str]:
        command = [str(self._home / program), "--no-defaults", f"--basedir={self._home}"]
        command += [f"--datadir={self._dir / 'data'}"]
        # The server refuses to run as root without this option.
        return command + (["--user=root"] if os.geteuid() == 0 else [])

    def _settings(self) -> list[str]:
        own = {
            "socket": str(self.socket),
            "pid_file": str(self._dir / "pid"),
            # The server looks for both at the paths of an installed package.
            "lc_messages_dir": str(self._home / "share"),
            "character_sets_dir": str(self._home / "share" / "charsets"),
        }
        return [f"--{name}={value}" for name, value in {**SETTINGS, **own}.items()]

    def _install(self) -> None:
        # Host names are disabled: not every machine can resolve its own.
        command = [*self._command("scripts/mariadb-install-db"), "--skip-test-db", "--skip-name-resolve"]
        command += ["--auth-root-authentication-method=normal"]
        self._prepare("MariaDB", command)
