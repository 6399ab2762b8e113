"""A private MariaDB server as a child process: row-based binlog, its own directory and port, on loopback."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from embedded.database import EmbeddedDatabase
from embedded.mariadb_programs import mariadb_home
from embedded.process import HOST, free_ports

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


class EmbeddedMariaDB(EmbeddedDatabase):
    """A server that runs for the duration of the ``with`` block; its data stays in ``data_dir`` for the next start.

    Arguments as ``EmbeddedDatabase``.
    """

    NAME = "MariaDB"
    STATUS = "SHOW MASTER STATUS"
    CONNECTOR: ClassVar[Mapping[str, str]] = {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.ssl.mode": "disable",
    }

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
        self._serve_sql(command)

    @functools.cached_property
    def _home(self) -> Path:
        return mariadb_home()

    def client_command(self, *options: str) -> list[str]:
        """The command of ``mariadb`` as root, which reads statements from its standard input."""
        command = [str(self._home / "bin/mariadb"), "--no-defaults", f"--socket={self.socket}", "--user=root"]
        command += ["--batch", "--skip-column-names", "--skip-ssl", "--default-character-set=utf8mb4"]
        return [*command, *options]

    def _command(self, program: str) -> list[str]:
        command = [str(self._home / program), "--no-defaults", f"--basedir={self._home}"]
        # A server that starts deletes the temporary tables in its directory, those of another server too.
        command += [f"--datadir={self._dir / 'data'}", f"--tmpdir={self._dir}"]
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
        self._prepare(self.NAME, command)
