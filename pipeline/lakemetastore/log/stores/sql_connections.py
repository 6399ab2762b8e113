"""Connections to a SQL database: SQLite, MySQL and MariaDB, PostgreSQL.

SQLite writes with a write-ahead log, synced at each commit, and waits for other writers.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import xxhash
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from hudilake.errors import ConfigError
from hudilake.storage import OutcomeUnknownError, StorageError
from lakemetastore.log.stores.sql_tables import make_tables
from lakemetastore.log.stores.turns import file_turn

_BUSY_MS: Final = 30_000
_CONNECT_TIMEOUT_S: Final = 10
_POOL: Final = 8
_OVERFLOW: Final = 56
_RECYCLE_S: Final = 600
_ATTEMPTS: Final = 5
_PAUSE_S: Final = 0.05
#: An option of a connection on SQLite: its transaction writes.
_WRITES: Final = "binlake_writes"


class Connections:
    """The connections of this process to a database. They are opened when they are first used, and after a fork.

    Args:
        url: of the database.
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        self.uri = url.render_as_string(hide_password=True)
        self._guard = threading.Lock()
        self._engines: tuple[int, Engine, Engine] | None = None

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for statements that each see what is committed."""
        with self._translated("read"), self._engine().connect() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that ends with the block: committed and durable, or without effect if the block raises.

        Raises OutcomeUnknownError if the commit had no answer."""
        with self._translated("write"), self._engine().connect() as connection:
            transaction = connection.execution_options(**{_WRITES: True}).begin()
            try:
                yield connection
            except BaseException:
                with contextlib.suppress(SQLAlchemyError):
                    transaction.rollback()
                raise
            try:
                transaction.commit()
            except SQLAlchemyError as error:
                raise OutcomeUnknownError(
                    f"the database did not answer a commit: {_first_line(error)}",
                    do_next="read back what was written",
                    store=self.uri,
                ) from error

    @contextlib.contextmanager
    def turn(self, name: str, timeout_s: float) -> Iterator[bool]:
        """A turn in a queue that the database keeps, or a queue of files beside SQLite's (see ``LogStore.turn``)."""
        key = xxhash.xxh64_intdigest(f"{self.url.database} {name}".encode()) >> 1
        with contextlib.ExitStack() as held:
            if self._is_sqlite:
                file = os.path.abspath(self.url.database or "")  # noqa: PTH100 - resolve() would follow links
                yield held.enter_context(file_turn(Path(f"{file}.turns") / f"{key:016x}", timeout_s))
            else:
                yield self._server_turn(key, timeout_s, held)

    def close(self) -> None:
        """Close all connections."""
        with self._guard:
            engines, self._engines = self._engines, None
        if engines is not None and engines[0] == os.getpid():
            engines[1].dispose()
            engines[2].dispose()

    @property
    def _is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    def _server_turn(self, key: int, timeout_s: float, held: contextlib.ExitStack) -> bool:
        """Both servers give their named locks in the order of asking, and take them back when a connection ends."""
        try:
            self._engine()
            assert self._engines is not None
            connection = held.enter_context(self._engines[2].connect())
            if self.url.get_backend_name() == "postgresql":
                held.callback(_quietly, connection.rollback)
                connection.execute(text(f"SET LOCAL lock_timeout = {max(1, int(timeout_s * 1000))}"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
                return True
            asked = {"key": f"binlake-{key:016x}", "timeout": timeout_s}
            came = bool(connection.execute(text("SELECT GET_LOCK(:key, :timeout)"), asked).scalar())
            if came:
                held.callback(_quietly, lambda: connection.execute(text("SELECT RELEASE_LOCK(:key)"), asked))
        except SQLAlchemyError:
            return False
        return came

    def _engine(self) -> Engine:
        with self._guard:
            if self._engines is None or self._engines[0] != os.getpid():
                engine = self._make_engine()
                self._make_tables(engine)
                self._engines = os.getpid(), engine, engine if self._is_sqlite else self._make_engine()
            return self._engines[1]

    def _make_engine(self) -> Engine:
        settings: dict[str, Any] = {"pool_size": _POOL, "max_overflow": _OVERFLOW, "pool_recycle": _RECYCLE_S}
        try:
            if self._is_sqlite:
                engine = create_engine(self.url, connect_args={"timeout": _BUSY_MS / 1000}, **settings)
                event.listen(engine, "connect", _prepare_sqlite)
                event.listen(engine, "begin", _begin_sqlite)
                return engine
            connect = {"connect_timeout": _CONNECT_TIMEOUT_S}
            return create_engine(self.url, isolation_level="READ COMMITTED", connect_args=connect, **settings)
        except (ImportError, ArgumentError) as error:
            raise ConfigError(
                f"no driver serves this database: {error}",
                do_next="write sqlite:, mysql+pymysql: or postgresql+psycopg:, "
                "and pip install 'lakemetastore[mysql,postgresql]'",
                store=self.uri,
            ) from error

    def _make_tables(self, engine: Engine) -> None:
        """Several processes may make the tables at once; all but one are refused and look again."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                make_tables(engine)
                return
            except SQLAlchemyError as error:
                if attempt == _ATTEMPTS:
                    raise self._failed("make its tables in", error) from error
                time.sleep(_PAUSE_S * attempt)

    @contextlib.contextmanager
    def _translated(self, operation: str) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise self._failed(operation, error) from error

    def _failed(self, operation: str, error: SQLAlchemyError) -> StorageError:
        return StorageError(
            f"cannot {operation} the database: {_first_line(error)}",
            do_next="check that the server runs, the database exists, and user and password are right",
            store=self.uri,
        )


def _quietly(action: Callable[[], object]) -> None:
    """Do what a broken connection has done already."""
    with contextlib.suppress(SQLAlchemyError):
        action()


def _first_line(error: SQLAlchemyError) -> str:
    """What the driver says. SQLAlchemy's own text has the statement and its values."""
    said = str(error.orig) if isinstance(error, DBAPIError) and error.orig is not None else str(error)
    return next(iter(said.splitlines()), type(error).__name__)


def _prepare_sqlite(connection: sqlite3.Connection, _: object) -> None:
    # Without this the driver begins transactions by itself, without the lock to write.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _begin_sqlite(connection: Connection) -> None:
    if connection.get_execution_options().get(_WRITES):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
