"""A replica of a MariaDB server that goes from one transaction to the next: what the source was right behind it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pymysql

from bench.planted import PASSWORD, USER
from embedded.mariadb import EmbeddedMariaDB

DATABASE = "shop"
_WAIT_S = 60.0
#: What a snapshot says of a table that a statement has changed since.
_ALTERED_SINCE = 1412


class ReplicaServer(EmbeddedMariaDB):
    """A server with a number of its own, which writes no binlog of what it replicates."""

    def _settings(self) -> list[str]:
        return [*super()._settings(), "--server_id=4712", "--log_slave_updates=OFF", "--slave_parallel_threads=0"]


class SourceReplica:
    """Follows a source from the beginning of its binlog.

    Args:
        server: the replica, empty.
        source: a server with the streams' user.
    """

    def __init__(self, server: EmbeddedMariaDB, source: EmbeddedMariaDB) -> None:
        self._connection = connect(server)
        self._run(
            f"CHANGE MASTER TO MASTER_HOST = '{source.host}', MASTER_PORT = {source.port}, MASTER_USER = '{USER}', "
            f"MASTER_PASSWORD = '{PASSWORD}', MASTER_USE_GTID = slave_pos, MASTER_SSL = 0"
        )

    def close(self) -> None:
        """End its session."""
        self._connection.close()

    def go_to(self, transaction: str) -> None:
        """Apply everything up to a transaction, which must lie behind the one before."""
        self._run(f"START SLAVE UNTIL master_gtid_pos = '{transaction}'")
        until = time.monotonic() + _WAIT_S
        while (status := self._status())["Slave_SQL_Running"] != "No":
            assert time.monotonic() < until, status
            time.sleep(0.01)
        assert not status["Last_SQL_Error"], status
        assert self._rows("SELECT @@gtid_slave_pos") == [(transaction,)], status
        self._run("STOP SLAVE")

    def tables(self) -> dict[str, Rows]:
        """Each table, as it is now."""
        return tables(self._connection)

    def _status(self) -> Mapping[str, Any]:
        with self._connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute("SHOW SLAVE STATUS")
            return dict(cursor.fetchone())

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def _run(self, sql: str) -> None:
        self._rows(sql)


@dataclass(frozen=True)
class Rows:
    """A table: the names of its columns, and its rows."""

    columns: list[str]
    rows: list[tuple[Any, ...]]


@dataclass(frozen=True)
class SourceSnapshot:
    """What one snapshot of a server shows: the place of its binlog, the transaction before it, and tables."""

    place: str
    transaction: str
    tables: Mapping[str, Rows]


def snapshot(connection: pymysql.Connection[Any]) -> SourceSnapshot:
    """All tables that no statement changes meanwhile, in one snapshot."""
    with connection.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
        status = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
        file, position = status["binlog_snapshot_file"], status["binlog_snapshot_position"]
        shown = tables(connection)
        cursor.execute("COMMIT")
        cursor.execute(f"SELECT BINLOG_GTID_POS('{file}', {position})")
        [(transaction,)] = cursor.fetchall()
    return SourceSnapshot(f"{file}:{position}", str(transaction), shown)


def tables(connection: pymysql.Connection[Any]) -> dict[str, Rows]:
    """Each table of the database that the session can read."""
    found = {}
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW TABLES IN {DATABASE}")
        for (name,) in cursor.fetchall():
            try:
                cursor.execute(f"SELECT * FROM {DATABASE}.{name}")
            except pymysql.err.MySQLError as error:
                if error.args[0] != _ALTERED_SINCE:
                    raise
                continue
            found[str(name)] = Rows([column[0] for column in cursor.description], list(cursor.fetchall()))
    return found


def connect(server: EmbeddedMariaDB) -> pymysql.Connection[Any]:
    """A session as root that commits each statement."""
    return pymysql.connect(unix_socket=str(server.socket), user="root", autocommit=True, charset="utf8mb4")
