"""A MariaDB server of one's own as a child process: binlog in rows, a directory and a port of its own, on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from embedded.process import ServiceProcess
from pipeline import clock
from pipeline.errors import ConfigError, TransientError

HOST = "127.0.0.1"
PACKAGES = "mariadb-server-core mariadb-client-core"
_PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb")
_SERVER_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"

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
    "innodb_flush_log_at_trx_commit": "0",
    "innodb_buffer_pool_size": "32M",
    "innodb_log_file_size": "16M",
    "performance_schema": "OFF",
}


class EmbeddedMariaDB:
    """A server that lives as long as the ``with`` block; its data stays in ``data_dir`` and serves the next start.

    Its ``root`` has no password and is reached through the socket in ``data_dir`` alone.

    Args:
        data_dir: directory for data, binlog, socket and ``mariadb.log``; made if missing. Sockets want a short path.
        start_timeout_s: how long a start may take, in seconds.
    """

    def __init__(self, data_dir: Path, *, start_timeout_s: float = 120) -> None:
        self._dir = Path(data_dir).absolute()
        self._timeout_s = start_timeout_s
        self._process = ServiceProcess(self._log)
        self.host, self.port = HOST, 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @staticmethod
    def missing() -> list[str]:
        """The programs that this needs and the machine lacks."""
        return [name for name in _PROGRAMS if _program(name) is None]

    def start(self) -> None:
        """Make the system tables if the directory is new, start the server and wait until it answers.

        Raises:
            ConfigError: there is no MariaDB on this machine.
            TransientError: the server ended or did not answer in time; its last words are in the message.
        """
        if self.missing():
            raise ConfigError(
                f"no MariaDB on this machine: {', '.join(self.missing())} not found",
                do_next=f"install it, on Debian: apt-get install {PACKAGES}",
            )
        self._dir.mkdir(parents=True, exist_ok=True)
        if not (self._dir / "data" / "mysql").is_dir():
            self._install()
        with socket.create_server((HOST, 0)) as probe:
            self.port = int(probe.getsockname()[1])
        place = [f"--port={self.port}", f"--bind-address={HOST}"]
        self._process.start([*self._command("mariadbd"), *place, *self._settings()])
        deadline = clock.monotonic_s() + self._timeout_s
        while self._run("SELECT 1").returncode:
            if self._process.exit_code is not None or clock.monotonic_s() > deadline:
                self.stop(0)
                words = "; ".join(self._log.read_text(errors="replace").splitlines()[-6:])
                raise TransientError(f"MariaDB did not start: {words}", do_next="read its log", log=str(self._log))
            time.sleep(0.1)

    def stop(self, timeout_s: float = 30) -> None:
        """End the server in order, and by force after ``timeout_s`` seconds. No effect if it does not run."""
        self._process.stop(timeout_s)

    def execute(self, sql: str) -> list[str]:
        """Run statements as root; the lines of their answers, raw. Raises TransientError with the server's words."""
        done = self._run(sql)
        if done.returncode:
            raise TransientError(f"MariaDB refused: {done.stderr.strip()}", do_next="correct the statement")
        return done.stdout.splitlines()

    @property
    def _log(self) -> Path:
        return self._dir / "mariadb.log"

    def _run(self, sql: str) -> subprocess.CompletedProcess[str]:
        command = [str(_program("mariadb")), "--no-defaults", f"--socket={self._socket}", "--user=root"]
        command += ["--batch", "--raw", "--skip-column-names", "--default-character-set=utf8mb4"]
        return subprocess.run(command, input=sql, capture_output=True, text=True, check=False)

    @property
    def _socket(self) -> Path:
        return self._dir / "sock"

    def _command(self, program: str) -> list[str]:
        command = [str(_program(program)), "--no-defaults", f"--datadir={self._dir / 'data'}"]
        # The server refuses to be root unless it is told to.
        return command + (["--user=root"] if os.geteuid() == 0 else [])

    def _settings(self) -> list[str]:
        own = {"socket": str(self._socket), "pid_file": str(self._dir / "pid")}
        return [f"--{name}={value}" for name, value in {**SETTINGS, **own}.items()]

    def _install(self) -> None:
        command = [*self._command("mariadb-install-db"), "--skip-test-db", "--auth-root-authentication-method=normal"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            words = "; ".join(done.stdout.splitlines()[-6:])
            raise TransientError(
                f"MariaDB could not make its tables: {words}", do_next="use an empty directory", path=str(self._dir)
            )


def _program(name: str) -> str | None:
    """A program's path; servers lie where users' paths do not lead."""
    return shutil.which(name, path=_SERVER_PATH)
