"""Logs in a SQL database: SQLite, MySQL and MariaDB, PostgreSQL.

The row with a log's last version decides: an append moves it from the version before, in one statement, and writes the
entry in the same transaction. So nothing that was forgotten can be written again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError

from lakemetastore.log.stores.base import Entry, check_name, trimmed
from lakemetastore.log.stores.sql_connections import Connections
from lakemetastore.log.stores.sql_tables import ENTRIES, HEADS, SNAPSHOTS, entries_of, rows_of

_SNAPSHOTS: Final = 2


class SqlStore:
    """Logs in a database (see ``base.LogStore``). Its tables are made when it is first used.

    Args:
        url: of the database, with user and password.
    """

    def __init__(self, url: URL) -> None:
        self._connections = Connections(url)

    @property
    def uri(self) -> str:
        """Returns the database's address, without a password."""
        return self._connections.uri

    def append(self, log: str, version: int, data: bytes) -> bool:
        """Writes the entry in one transaction; returns False if the log's last version is not the one before."""
        check_name(log)
        try:
            with self._connections.writing() as connection:
                if not _move_head(connection, log, version):
                    return False
                connection.execute(insert(ENTRIES), rows_of(log, version, data))
        except _LostError:
            return False
        return True

    def read(self, log: str, after: int, limit: int | None = None) -> list[Entry]:
        """Reads the entries after a version, ascending, at most ``limit``. Errors as ``LogStore.read``."""
        with self._connections.reading() as connection:
            last = _last(connection, check_name(log))
            if last == after or limit == 0:
                return []
            rows_after = select(ENTRIES.c.version, ENTRIES.c.data).where(
                ENTRIES.c.log == log, ENTRIES.c.version > after
            )
            if limit is not None:
                rows_after = rows_after.where(ENTRIES.c.version <= after + limit)
            rows = connection.execute(rows_after.order_by(ENTRIES.c.version, ENTRIES.c.piece))
            entries = list(entries_of((version, piece) for version, piece in rows))
        versions = [entry.version for entry in entries]
        if last < after or not entries or versions != list(range(after + 1, after + 1 + len(entries))):
            raise trimmed(log, after)
        return entries

    def last(self, log: str) -> int:
        """Returns the version of the newest entry; 0 for an unknown log."""
        with self._connections.reading() as connection:
            return _last(connection, check_name(log))

    def write_snapshot(self, log: str, version: int, data: bytes) -> None:
        """Writes the snapshot of a version and deletes old ones; does nothing to a log that was deleted."""
        with self._connections.writing() as connection:
            # The head stays locked: a snapshot that outlived the log's deletion would stand for a log without entries.
            head = select(HEADS.c.last).where(HEADS.c.log == log).with_for_update(read=True)
            if (connection.execute(head).scalar() or 0) < version:
                return
            this = SNAPSHOTS.c.log == check_name(log), SNAPSHOTS.c.version == version
            connection.execute(delete(SNAPSHOTS).where(*this))
            connection.execute(insert(SNAPSHOTS), rows_of(log, version, data))
            kept = _snapshot_versions(connection, log)[:_SNAPSHOTS]
            connection.execute(delete(SNAPSHOTS).where(SNAPSHOTS.c.log == log, SNAPSHOTS.c.version < kept[-1]))

    def snapshot(self, log: str, before: int | None = None) -> Entry | None:
        """Returns the newest snapshot, of a version less than ``before``; None if there is none."""
        newest = select(func.max(SNAPSHOTS.c.version)).where(SNAPSHOTS.c.log == check_name(log))
        if before is not None:
            newest = newest.where(SNAPSHOTS.c.version < before)
        rows = select(SNAPSHOTS.c.version, SNAPSHOTS.c.data).order_by(SNAPSHOTS.c.piece)
        rows = rows.where(SNAPSHOTS.c.log == log, SNAPSHOTS.c.version == newest.scalar_subquery())
        with self._connections.reading() as connection:
            return next(entries_of((version, piece) for version, piece in connection.execute(rows)), None)

    def trim(self, log: str, version: int) -> None:
        """Deletes all entries up to a version if a snapshot covers it."""
        with self._connections.writing() as connection:
            if version <= max(_snapshot_versions(connection, check_name(log)), default=0):
                connection.execute(delete(ENTRIES).where(ENTRIES.c.log == log, ENTRIES.c.version <= version))

    def logs(self, prefix: str = "") -> Iterator[str]:
        """Gives the names of all logs that begin with ``prefix``, sorted."""
        with self._connections.reading() as connection:
            named = select(HEADS.c.log).where(HEADS.c.log.startswith(prefix, autoescape=True))
            log_names = list(connection.execute(named).scalars())
        yield from sorted(log_names)

    def delete(self, log: str) -> None:
        """Deletes a log and its snapshots in one transaction; nothing if there is none."""
        with self._connections.writing() as connection:
            for table in (HEADS, ENTRIES, SNAPSHOTS):
                connection.execute(delete(table).where(table.c.log == check_name(log)))

    def turn(self, log: str, timeout_s: float) -> AbstractContextManager[bool]:
        """Waits for the turn in the database's queue, beside SQLite's file; gives False after ``timeout_s``."""
        return self._connections.turn(check_name(log), timeout_s)

    def close(self) -> None:
        """Closes the connections to the database."""
        self._connections.close()


class _LostError(Exception):
    """Another writer has made the log."""


def _move_head(connection: Connection, log: str, version: int) -> bool:
    """Take the version; the row stays locked until the transaction ends."""
    if version > 1:
        this = HEADS.c.log == log, HEADS.c.last == version - 1
        return connection.execute(update(HEADS).where(*this).values(last=version)).rowcount == 1
    try:
        connection.execute(insert(HEADS), {"log": log, "last": version})
    except IntegrityError:
        raise _LostError from None
    return True


def _last(connection: Connection, log: str) -> int:
    return connection.execute(select(HEADS.c.last).where(HEADS.c.log == log)).scalar() or 0


def _snapshot_versions(connection: Connection, log: str) -> list[int]:
    """Newest first."""
    versions = connection.execute(select(SNAPSHOTS.c.version).where(SNAPSHOTS.c.log == log).distinct()).scalars()
    return sorted(versions, reverse=True)
