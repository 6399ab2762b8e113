"""A connection to the source's database: small questions as text, large results as raw row packets.

PyMySQL makes a Python object of every cell, which costs 6 s for a million rows of ten columns; its packets alone cost
1.4 s however many columns they have (measured). So rows are cut from what PyMySQL's socket has read, many at once. The
socket is not part of its documented interface: the dependency is bounded, and tests read a real server.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pymysql
from pymysql.converters import encoders
from pymysql.cursors import SSCursor

from binlake.settings import DatabaseSettings
from hudilake.errors import ConfigError, LakeError, TransientError

if TYPE_CHECKING:
    from binlake.source.database.row_packets import PacketReader, RowBlock

#: Error numbers of MySQL that another attempt does not change: access denied, unknown database, table or column,
#: syntax, missing privilege.
_LASTING = frozenset({1044, 1045, 1049, 1054, 1064, 1142, 1143, 1146, 1227})
_SESSION = (
    "SET SESSION time_zone = '+00:00', sql_mode = '', net_write_timeout = 3600, wait_timeout = 86400, "
    "lock_wait_timeout = 3, TRANSACTION_ISOLATION = 'REPEATABLE-READ'"
)
_OLD_SESSION = _SESSION.replace("TRANSACTION_ISOLATION", "TX_ISOLATION")
#: A server's limits for everybody, of MariaDB and of MySQL: they would end a long read, or a session that rests while
#: others read.
_NO_LIMITS = (
    "SET SESSION max_statement_time = 0, idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0",
    "SET SESSION max_execution_time = 0",
)
_UNKNOWN_VARIABLE = 1193
#: Errors of the server itself have smaller numbers.
_OF_CLIENT = 2000
#: What to do where no server of this kind answers.
_LOOK = "see that a server listens there, or correct the host and the port; then try again"
_COM_BINLOG_DUMP = 0x12
#: No less than the buffer of PyMySQL's socket.
_BUFFERED = 1 << 17
#: A packet that ends a result begins with this byte and is shorter than this.
_END, _SHORT = 0xFE, 9

#: A row of a small result, as text.
TextRow = Sequence[str | None]


class SourceConnection:
    """One session at the server, in UTC, that reads."""

    def __init__(self, settings: DatabaseSettings, host: str, port: int) -> None:
        self.place = f"{host}:{port}"
        try:
            self._connection = pymysql.connect(
                host=host,
                port=port,
                user=settings.user,
                password=settings.password.get_secret_value().encode() if settings.password else b"",
                charset="utf8mb4",
                conv=encoders,
                connect_timeout=max(1, int(settings.timeout_seconds)),
                read_timeout=settings.timeout_seconds,
                write_timeout=settings.timeout_seconds,
                ssl=_tls(settings),
                autocommit=True,
            )
        except (pymysql.err.Error, OSError) as error:
            raise _failure(error, "the source's database cannot be reached", self.place, _LOOK) from None
        self._begin_session()

    def _begin_session(self) -> None:
        if not self._set(_SESSION):
            self.rows(_OLD_SESSION)  # MariaDB before 11.1 has the older name only
        for statement in _NO_LIMITS:
            self._set(statement)

    def _set(self, statement: str) -> bool:
        """Set variables of the session; false if the server does not know one."""
        try:
            self.rows(statement)
        except LakeError as error:
            if error.where.get("error") != _UNKNOWN_VARIABLE:
                raise
            return False
        return True

    @property
    def is_open(self) -> bool:
        """Whether the session lives, as far as it is known."""
        return bool(self._connection.open)

    def revive(self) -> None:
        """Begin a new session if the connection was lost. Raises TransientError."""
        if not self._connection.open:
            with self._errors():
                self._connection.connect()
            self._begin_session()

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[TextRow]:
        """All rows of a small result. Raises ConfigError (rights, names), TransientError."""
        with self._errors(), self._connection.cursor() as cursor:
            cursor.execute(sql, tuple(values) or None)
            return list(cursor.fetchall())

    def definition(self, sql_name: str) -> str:
        """The text of SHOW CREATE TABLE; what is no UTF-8 in it (a default of bytes) is U+FFFD. Errors as ``rows``."""
        self._connection.use_unicode = False
        try:
            [row] = self.rows(f"SHOW CREATE TABLE {sql_name}")
        finally:
            self._connection.use_unicode = True
        text: Any = row[1]
        return bytes(text).decode("utf-8", "replace")

    def named(self, sql: str) -> dict[str, str | None]:
        """The first row of a small result by column name, in lower case; empty if there is none."""
        with self._errors(), self._connection.cursor() as cursor:
            cursor.execute(sql)
            row = cursor.fetchone()
            names = [str(column[0]).lower() for column in cursor.description or ()]
            return dict(zip(names, row, strict=True)) if row is not None else {}

    def blocks(self, sql: str, most: int, most_bytes: int) -> Generator[RowBlock]:
        """The rows of a result, in blocks of at most ``most`` rows or about ``most_bytes`` bytes.

        The server sends while the caller reads; nothing else may be asked before the end. Who stops before closes the
        generator, and with it the session. Errors as ``rows``.
        """
        with self._errors(), self._connection.cursor(_PacketCursor) as cursor:
            cursor.execute(sql)
            while (block := cursor.block(most, most_bytes)) is not None:
                yield block

    def begin_dump(self, request: bytes) -> None:
        """Ask for the binlog as a replica does (COM_BINLOG_DUMP); nothing else may be asked afterwards."""
        with self._errors():
            self._connection._execute_command(_COM_BINLOG_DUMP, request)

    def dump_packets(self) -> Iterator[bytes]:
        """The events that the server sends, with their headers, until it says that there are no more. Errors as
        ``rows``."""
        with self._errors():
            while True:
                data = self._connection._read_packet().get_all_data()
                if data[0] == _END and len(data) < _SHORT:
                    return
                yield data[1:]

    def literal(self, text: str) -> str:
        """A text as a quoted literal of the session's character set."""
        return str(self._connection.escape(text))

    def close(self) -> None:
        """End the session."""
        if self._connection.open:
            with contextlib.suppress(pymysql.err.Error, OSError):
                self._connection.close()

    def __enter__(self) -> SourceConnection:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (pymysql.err.Error, OSError) as error:
            raise _failure(error, "the source's database refused or broke off", self.place) from None


class _PacketCursor(SSCursor):  # type: ignore[misc] # PyMySQL has no types
    """A cursor without buffer that gives the row packets of a result."""

    _reader: PacketReader | None = None

    def block(self, most: int, most_bytes: int) -> RowBlock | None:
        """The next rows; None at the end of the result."""
        from binlake.source.database.row_packets import PacketReader  # needs compiled loops, seconds to import

        result: Any = self._result
        if not result.unbuffered_active:
            return None
        if self._reader is None:
            # What is buffered must be taken first, and by itself: readinto1 would ask the socket for more besides.
            file = result.connection._rfile
            self._reader = PacketReader(file.raw.readinto, file.read1(_BUFFERED))
        block = self._reader.block(most, most_bytes)
        if self._reader.ended:
            result.unbuffered_active, result.connection = False, None
        return block

    def close(self) -> None:
        """End the result; one that is not read to its end costs the connection, instead of the time to read it."""
        result: Any = self._result
        if result is not None and result.unbuffered_active:
            result.unbuffered_active, result.connection = False, None
            self.connection.close()
        super().close()


def connect(settings: DatabaseSettings) -> SourceConnection:
    """A session at the replica if one is named, else at the database. Raises ConfigError, TransientError."""
    place = settings.replica or settings
    if place.host is None or settings.user is None:
        raise ConfigError(
            "the settings do not name the source's database",
            do_next="give source.database.host, user and password",
        )
    return SourceConnection(settings, place.host, place.port)


def _tls(settings: DatabaseSettings) -> ssl.SSLContext | None:
    """None lets PyMySQL encrypt where the server offers it, without a check of the server's name."""
    if not (settings.tls or settings.ca_file):
        return None
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except OSError as error:
        raise ConfigError(
            f"the certificates cannot be read: {error}", do_next="correct source.database.ca_file"
        ) from error


def _failure(error: Exception, what: str, place: str, otherwise: str = "try again") -> LakeError:
    """``otherwise``: what to do next where neither the server nor the settings say it."""
    number = error.args[0] if error.args and isinstance(error.args[0], int) else None
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    kind = ConfigError if number in _LASTING else TransientError
    do_next = "correct source.database, or the user's rights" if kind is ConfigError else otherwise
    if number is not None and number < _OF_CLIENT and kind is TransientError:
        do_next = "try again"
    return kind(f"{what}: {text}", do_next=do_next, server=place, error=number)
