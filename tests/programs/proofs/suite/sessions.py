"""The connections of a test file, and one of our own, over the server's socket or port."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass

import pymysql

from embedded.database import EmbeddedDatabase

#: Cells as text; bytes that are no UTF-8 survive.
Rows = tuple[tuple[str | None, ...], ...]
_PATIENCE_S = 8
#: Errors of a connection that is of no use any more.
_GONE = frozenset({0, 2006, 2013, 2014, 2055})


@dataclass(frozen=True)
class Answer:
    """``columns``: their names; ``number``: of the error, 0 without one; ``error``: its text."""

    columns: tuple[str, ...] = ()
    rows: Rows = ()
    number: int = 0
    error: str | None = None


class ServerGoneError(Exception):
    """The server does not answer any more."""


class Session:
    """One connection. Statements go to the server as the bytes of the file.

    Args:
        database: the server.
        charset: of the connection, for the server.
        schema: that is used at first.
        patience_s: the most time an answer may take, in seconds; then the connection is closed.
    """

    def __init__(
        self,
        database: EmbeddedDatabase,
        charset: str,
        schema: str | None,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        try:
            self._connection = pymysql.connect(
                host=database.host,
                port=database.port,
                unix_socket=str(database.socket),
                user="root",
                autocommit=None,
                conv={},
                use_unicode=False,
                read_timeout=patience_s,
                ssl_disabled=True,
                client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS,
            )
        except pymysql.MySQLError as error:
            raise ServerGoneError(str(error)) from error
        self._sent: threading.Thread | None = None
        self.dead = False
        self.run(f"SET NAMES {charset}")
        if schema is not None:
            self.run(f"USE {schema}")

    def run(self, sql: str) -> Answer:
        """Run a statement. A refused one is an answer."""
        self.reap()
        if self.dead:
            return Answer(number=2006, error="the connection is closed")
        return self._run(sql)

    def query(self, sql: str) -> Rows:
        """The rows of a statement that must succeed. Raises ServerGoneError."""
        answer = self.run(sql)
        if self.dead:
            raise ServerGoneError(answer.error)
        assert answer.error is None, f"{sql}: {answer.error}"
        return answer.rows

    def send(self, sql: str) -> None:
        """Run a statement while others run elsewhere."""
        self.reap()
        self._sent = threading.Thread(target=self._run, args=(sql,), daemon=True)
        self._sent.start()

    def reap(self) -> None:
        """Wait for what was sent."""
        sent, self._sent = self._sent, None
        if sent is not None:
            sent.join(_PATIENCE_S)
            self.dead |= sent.is_alive()

    def close(self) -> None:
        """Close it; an open transaction is undone."""
        with contextlib.suppress(pymysql.MySQLError, OSError):
            self._connection.close() if self._connection.open and not self.dead else self._connection._force_close()

    def _run(self, sql: str) -> Answer:
        cursor = self._connection.cursor()
        try:
            cursor.execute(sql.encode("utf-8", "surrogateescape"))
            columns = tuple(_text(name[0]) or "" for name in cursor.description or ())
            rows = tuple(tuple(map(_text, row)) for row in cursor.fetchall())
            while cursor.nextset():
                cursor.fetchall()
        except pymysql.MySQLError as error:
            number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
            self.dead |= number in _GONE
            return Answer(number=number, error=f"{number}: {error.args[-1] if error.args else error}")
        except (OSError, ValueError, IndexError, AttributeError, AssertionError) as error:
            self.dead = True
            return Answer(number=2013, error=f"{type(error).__name__}: {error}")
        return Answer(columns, rows)


def _text(cell: bytes | str | None) -> str | None:
    return cell.decode("utf-8", "surrogateescape") if isinstance(cell, bytes) else cell
