"""Reads the binlog of a server from an offset on: for the stream without an end, and up to an end for what is read
again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from binlake.decode.changes import RawRecords, SourceTable
from binlake.settings import DatabaseSettings, Settings
from binlake.source.binlog.charsets import Charset, charsets_of
from binlake.source.binlog.default_charsets import DefaultCharsets
from binlake.source.binlog.definitions import DefinitionReader
from binlake.source.binlog.dump import BinlogEvent, binlog_events
from binlake.source.binlog.places import FIRST_POSITION, PARTITION, ROW_BITS, BinlogServer, charsets, place_of
from binlake.source.binlog.prepared import PreparedTransactions
from binlake.source.binlog.records import InsideTransactionError, RecordMaker, RecordPiece
from binlake.source.binlog.statement_log import StatementLogs
from binlake.source.binlog.tables_then import TablesThen
from binlake.source.offsets import OffsetRange
from hudilake.errors import ConfigError

if TYPE_CHECKING:
    from binlake.source.database.connection import SourceConnection


@dataclass
class BinlogSource:
    """The binlog of one server, which must answer at the beginning.

    Args:
        settings: of the server.
        server: what it said at the beginning.
        charsets: by the id of the collation.
        selects: whether a table is taken into the lake; what cannot be read of others is left out.
    """

    settings: DatabaseSettings
    server: BinlogServer
    charsets: dict[int, Charset] = field(repr=False)
    selects: Callable[[SourceTable], bool]
    _then: TablesThen = field(init=False, repr=False)
    _defaults: DefaultCharsets = field(init=False, repr=False)

    def __post_init__(self) -> None:
        logs = StatementLogs(self.charsets)
        self._then = TablesThen(lambda: _connect(self.settings), logs)
        self._defaults = DefaultCharsets(lambda: _connect(self.settings), logs)

    @staticmethod
    def open(settings: Settings) -> BinlogSource:
        """Ask the server. Raises ConfigError, TransientError."""
        database = settings.source.database
        with _connect(database) as connection:
            server, known = BinlogServer.ask(connection), charsets_of(charsets(connection))
        return BinlogSource(database, server, known, settings.selects)

    @property
    def topic(self) -> str:
        """The topic that the binlog is."""
        return self.server.topic

    def now(self) -> BinlogServer:
        """What the server says now. Raises ConfigError, TransientError."""
        with _connect(self.settings) as connection:
            return BinlogServer.ask(connection)

    def created(self, file: str) -> int:
        """When the server began a file of its binlog, in seconds since the Unix epoch. Errors as ``binlog_events``."""
        with _connect(self.settings) as connection:
            for event in binlog_events(connection, file, FIRST_POSITION, server_id=0, ends=True):
                if event is not None:
                    return event.seconds
        return 0

    def pieces(self, start: int, *, server_id: int, ends: bool) -> Iterator[RecordPiece | None]:
        """The records from an offset on; arguments and errors as ``binlog_events`` and ``RecordMaker``.

        An offset inside a transaction is found by reading its file from the beginning: the definitions of the tables
        stand before the rows.
        """
        mariadb, then, after = self.server.mariadb, self._then.at, self._defaults.after
        definitions = DefinitionReader(self.charsets, mariadb, then, after, self.selects)
        place = place_of(start)
        is_event = not start & ((1 << ROW_BITS) - 1)
        for position in (*((place.position,) if is_event else ()), FIRST_POSITION):
            with _connect(self.settings) as connection:
                file = BinlogServer.ask(connection).file_of(place)
                reader = RecordMaker(definitions, start, self._prepared())
                events = binlog_events(connection, file, position, server_id=server_id, ends=ends)
                try:
                    yield from reader.pieces(events)
                except InsideTransactionError:
                    continue
                return

    def _prepared(self) -> PreparedTransactions:
        """The XA transactions of the binlog, for one reader; each is read in a session of its own."""

        def events(file: str, position: int) -> Iterator[BinlogEvent]:
            with _connect(self.settings) as connection:
                dumped = binlog_events(connection, file, position, server_id=0, ends=True)
                yield from (event for event in dumped if event is not None and event.end)

        return PreparedTransactions(events, lambda: list(self.now().files), self.charsets)

    def read(self, wanted: OffsetRange) -> Iterator[RawRecords]:
        """The records of a range, in chunks. Errors as ``pieces``."""
        for piece in self.pieces(wanted.start, server_id=0, ends=True):
            if piece is not None and piece.offsets:
                yield records_of(self.topic, [piece], wanted)
            if piece is not None and piece.end >= wanted.end:
                return


def records_of(topic: str, pieces: list[RecordPiece], within: OffsetRange) -> RawRecords:
    """The records of pieces, as far as they are in a range."""
    offsets = np.array([offset for piece in pieces for offset in piece.offsets], dtype=np.int64)
    millis = np.array([one for piece in pieces for one in piece.millis], dtype=np.int64)
    values: list[bytes | None] = [value for piece in pieces for value in piece.values]
    first, end = np.searchsorted(offsets, [within.start, within.end]).tolist()
    return RawRecords(
        topic, PARTITION, offsets[first:end], millis[first:end], [None] * (end - first), values[first:end]
    )


@contextlib.contextmanager
def _connect(settings: DatabaseSettings) -> Iterator[SourceConnection]:
    """A session at the server itself, whatever replica commands read."""
    from binlake.source.database.connection import SourceConnection  # needs the database's driver

    if settings.host is None:
        raise ConfigError("the settings do not name the source's database", do_next="give source.database.host")
    with SourceConnection(settings, settings.host, settings.port) as connection:
        yield connection
