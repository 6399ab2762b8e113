"""A private MySQL server as a child process: row-based binlog, its own directory and port, on loopback."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from embedded.database import EmbeddedDatabase
from embedded.mysql_programs import mysql_home, program
from embedded.process import HOST, free_ports

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


class EmbeddedMySQL(EmbeddedDatabase):
    """A server that runs for the duration of the ``with`` block; its data stays in ``data_dir`` for the next start.

    Arguments as ``EmbeddedDatabase``.
    """

    NAME = "MySQL"
    STATUS = "SHOW BINARY LOG STATUS"
    CONNECTOR: ClassVar[Mapping[str, str]] = {
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "database.ssl.mode": "preferred",
    }

    def start(self) -> None:
        """Create the system tables in a new directory, start the server and wait until it answers.

        Raises:
            TransientError: the server could not be fetched, ended or did not answer in time; the message has the end of
                its log.
            UnsupportedError: the server cannot be had on this machine.
        """
        self._dir.mkdir(parents=True, exist_ok=True)
        if not (self._dir / "data" / "mysql").is_dir():
            self._prepare(self.NAME, [*self._server(), "--initialize-insecure"])
        [self.port] = free_ports(1)
        place = [f"--port={self.port}", f"--bind-address={HOST}", f"--socket={self.socket}"]
        command = [*self._server(), *place, f"--pid-file={self._dir / 'pid'}"]
        self._serve_sql(command)

    def client_command(self, *options: str) -> list[str]:
        """The command of ``mysql`` as root, which reads statements from its standard input."""
        command = [*program(self._home, "usr/bin/mysql"), "--no-defaults", f"--socket={self.socket}", "--user=root"]
        return [*command, "--batch", "--skip-column-names", "--default-character-set=utf8mb4", *options]

    @functools.cached_property
    def _home(self) -> Path:
        return mysql_home()

    def _server(self) -> list[str]:
        share = self._home / "usr/share/mysql"
        own = {
            "datadir": str(self._dir / "data"),
            # The server looks for both at the paths of an installed package.
            "lc_messages_dir": str(share),
            "character_sets_dir": str(share / "charsets"),
        }
        options = [f"--{name}={value}" for name, value in {**_SETTINGS, **own}.items()]
        command = [*program(self._home, "usr/sbin/mysqld"), "--no-defaults", *options]
        # The server refuses to run as root without this option.
        return command + (["--user=root"] if os.geteuid() == 0 else [])
