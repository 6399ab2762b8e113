"""A MariaDB server of one's own as a child process: binlog in rows, a directory and a port of its own, on loopback."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

from embedded.mariadb_programs import mariadb_home
from embedded.process import HOST, EmbeddedService, free_ports, last_words
from pipeline.errors import TransientError

#: What change data capture needs of the server, and what keeps it small.
SETTINGS = {
    "server_id": "4711",
    "gtid_domain_id": "3",
    "log_bin": "mariadb-bin",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "character_set_server": "utf8mb4",
    "default_time_zone": "+00:00",
    # With it each start makes a key and a certificate of its own: 17 s instead of 1 s (measured).
    "ssl": "OFF",
    "innodb_flush_log_at_trx_commit": "0",
    "innodb_buffer_pool_size": "32M",
    "innodb_log_file_size": "16M",
    "performance_schema": "OFF",
}


class EmbeddedMariaDB(EmbeddedService):
    """A server that lives as long as the ``with`` block; its data stays in ``data_dir`` and serves the next start.

    Its ``root`` has no password and is reached through the socket in ``data_dir`` alone.

    Args:
        data_dir: directory for data, binlog, socket and ``mariadb.log``; made if missing. Sockets want a short path.
        start_timeout_s: how long a start may take, in seconds.
    """

    def __init__(self, data_dir: Path, *, start_timeout_s: float = 120) -> None:
        super().__init__(data_dir, "mariadb.log", start_timeout_s)
        self.host, self.port = HOST, 0

    def start(self) -> None:
        """Make the system tables if the directory is new, start the server and wait until it answers.

        Raises:
            TransientError: the server could not be fetched, ended or did not answer in time; its last words are in
                the message.
            UnsupportedError: there is no build of the server for this machine.
        """
        self._dir.mkdir(parents=True, exist_ok=True)
        if not (self._dir / "data" / "mysql").is_dir():
            self._install()
        [self.port] = free_ports(1)
        place = [f"--port={self.port}", f"--bind-address={HOST}"]
        self._spawn([*self._command("bin/mariadbd"), *place, *self._settings()])
        problem = self._wait_until(lambda: self._run("SELECT 1").returncode == 0)
        if problem:
            raise TransientError(f"MariaDB did not start: {problem}", do_next="read its log", log=str(self.log_file))

    def execute(self, sql: str) -> list[str]:
        """Run statements as root; the lines of their answers, raw. Raises TransientError with the server's words."""
        done = self._run(sql)
        if done.returncode:
            raise TransientError(f"MariaDB refused: {done.stderr.strip()}", do_next="correct the statement")
        return done.stdout.splitlines()

    @functools.cached_property
    def _home(self) -> Path:
        return mariadb_home()

    def _run(self, sql: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._home / "bin/mariadb"), "--no-defaults", f"--socket={self._socket}", "--user=root"]
        command += ["--batch", "--raw", "--skip-column-names", "--skip-ssl", "--default-character-set=utf8mb4"]
        return subprocess.run(command, input=sql, capture_output=True, text=True, check=False)

    @property
    def _socket(self) -> Path:
        return self._dir / "sock"

    def _command(self, program: str) -> list[str]:
        command = [str(self._home / program), "--no-defaults", f"--basedir={self._home}"]
        command += [f"--datadir={self._dir / 'data'}"]
        # The server refuses to be root unless it is told to.
        return command + (["--user=root"] if os.geteuid() == 0 else [])

    def _settings(self) -> list[str]:
        own = {
            "socket": str(self._socket),
            "pid_file": str(self._dir / "pid"),
            # The server looks for both where a package would have put them.
            "lc_messages_dir": str(self._home / "share"),
            "character_sets_dir": str(self._home / "share" / "charsets"),
        }
        return [f"--{name}={value}" for name, value in {**SETTINGS, **own}.items()]

    def _install(self) -> None:
        # Host names are left out: not every machine can look up its own.
        command = [*self._command("scripts/mariadb-install-db"), "--skip-test-db", "--skip-name-resolve"]
        command += ["--auth-root-authentication-method=normal"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise TransientError(
                f"MariaDB could not make its tables: {last_words(done.stdout)}",
                do_next="use an empty directory",
                path=str(self._dir),
            )
