"""The statements of a server's binlog that change tables or databases, read for themselves before and ahead of the
stream, and what they say of tables."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import EVERY_TABLE, Action, TableEffect
from binlake.decode.ddl.default_charsets import DatabaseDefault, database_default
from binlake.decode.ddl.statements import parse_ddl
from binlake.source.binlog.charsets import Charset
from binlake.source.binlog.dump import EventType, binlog_events
from binlake.source.binlog.places import BinlogServer, offset_of, place_of
from binlake.source.binlog.statements import LoggedStatement, statement_in

if TYPE_CHECKING:
    from binlake.source.database.connection import SourceConnection

_Said = TypeVar("_Said")
_UNLESS_THERE = re.compile(r"\bIF\s+NOT\s+EXISTS\b", re.IGNORECASE)
_QUERIES = (EventType.QUERY, EventType.QUERY_COMPRESSED)


@dataclass(frozen=True, slots=True)
class PlacedStatement:
    """A statement that changes tables or a database.

    Args:
        offset: of its event.
        statement: as logged.
        effects: on tables.
        of_database: what it says of a database.
    """

    offset: int
    statement: LoggedStatement
    effects: Sequence[TableEffect]
    of_database: DatabaseDefault | None

    @property
    def text(self) -> str:
        """The words of the statement."""
        return self.statement.text

    @staticmethod
    def of(offset: int, statement: LoggedStatement) -> PlacedStatement:
        """A statement, read."""
        effects = parse_ddl(statement.text, statement.database)
        return PlacedStatement(offset, statement, effects, database_default(statement.text, statement.database))


@dataclass
class StatementLog:
    """The statements of a part of the binlog, from ``start`` to ``end``."""

    charsets: Mapping[int, Charset] = field(repr=False)
    start: int = 0
    end: int = 0
    _statements: list[PlacedStatement] = field(default_factory=list)

    def read_on(self, connection: SourceConnection, server: BinlogServer, start: int, end: int) -> None:
        """Make it the part from ``start``, or from before it, to ``end`` or further. Raises as ``binlog_events``."""
        if not self.start <= start <= self.end:
            self.start = self.end = start
            self._statements.clear()
        if self.end >= end:
            return
        place = place_of(self.end)
        for event in binlog_events(connection, server.file_of(place), place.position, server_id=0, ends=True):
            if event is None or not event.end:
                continue
            offset = offset_of(event.file, event.start)
            if event.type in _QUERIES:
                placed = PlacedStatement.of(offset, statement_in(event, self.charsets))
                self._statements += [placed] if placed.effects or placed.of_database else []
            self.end = offset_of(event.file, event.end)
            if self.end >= end:
                return
        self.end = max(self.end, end)

    def between(self, start: int, end: int) -> list[PlacedStatement]:
        """Those from ``start`` on, and before ``end``."""
        return [one for one in self._statements if start <= one.offset < end]


class StatementLogs:
    """The statements of one server before and after the places that are asked about. ``lock``: held while they are
    read."""

    def __init__(self, charsets: Mapping[int, Charset]) -> None:
        self.ahead, self._before = StatementLog(charsets), StatementLog(charsets)
        self.lock = threading.Lock()

    def read_ahead(self, connection: SourceConnection, offset: int) -> None:
        """Read ``ahead`` from an offset to the end of the binlog."""
        server = BinlogServer.ask(connection)
        self.ahead.read_on(connection, server, offset, server.end)

    def read_before(self, connection: SourceConnection, offset: int) -> list[PlacedStatement]:
        """The statements before an offset that the binlog still has."""
        server = BinlogServer.ask(connection)
        self._before.read_on(connection, server, server.start, offset)
        return self._before.between(0, offset)


@dataclass
class DeclaredTables(Generic[_Said]):
    """What statements say of tables, carried out one after the other. What is said is never changed, so that a table
    and one that is made LIKE it may share it.

    Args:
        unknown: of a table of which nothing is known.
        created: what CREATE TABLE says of its table; the second argument is the statement.
        altered: what ALTER TABLE leaves of what was said.
    """

    unknown: _Said
    created: Callable[[TableEffect, str], _Said]
    altered: Callable[[_Said, TableEffect, str], _Said]
    _tables: dict[SourceTable, _Said | None] = field(default_factory=dict)  # None: it is not there, for certain

    def of(self, source: SourceTable) -> _Said:
        """What is said of a table."""
        said = self._tables.get(source)
        return self.unknown if said is None else said

    def take(self, effect: TableEffect, text: str) -> None:
        """Carry out an effect of a statement."""
        source, tables = effect.source, self._tables
        if effect.action is Action.DROP:
            whole = source.table == EVERY_TABLE
            gone = [one for one in tables if one.database == source.database] if whole else [source]
            tables.update(dict.fromkeys(gone))
        elif effect.action is Action.RENAME and effect.to is not None:
            tables[effect.to] = self.of(source)
            tables[source] = None
        elif effect.action is Action.CREATE:
            is_absent = source in tables and tables[source] is None
            if is_absent or _UNLESS_THERE.search(text) is None:
                tables[source] = self.of(effect.like) if effect.like is not None else self.created(effect, text)
            else:
                tables.setdefault(source, self.unknown)
        elif effect.action is Action.ALTER:
            tables[source] = self.altered(self.of(source), effect, text)
