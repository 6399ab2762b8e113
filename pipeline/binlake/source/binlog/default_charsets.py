"""The character set of text columns that a statement defines and that name none: the default of their table.

The server's answer for the present holds behind a statement unless a later one gives the table another default or ends
it. Else the statements before decide: they give the table a default, or it has that of its database by then. If they do
not say it either, it is not determined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import DEFAULT_CHARSET, EVERY_TABLE, Action, TableEffect
from binlake.decode.ddl.default_charsets import DatabaseDefault, table_default
from binlake.decode.types.mysql_types import UNDETERMINED_CHARSET
from binlake.source.binlog.statement_log import PlacedStatement, StatementLogs
from binlake.source.binlog.statements import LoggedStatement
from binlake.source.binlog.tables_then import TRIES, is_about

if TYPE_CHECKING:
    from binlake.source.database.connection import SourceConnection

_OF_TABLE = "SELECT table_collation FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
_OF_DATABASE = "SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = %s"
_UNLESS_THERE = re.compile(r"\bIF\s+NOT\s+EXISTS\b", re.IGNORECASE)


class DefaultCharsets:
    """Answers about one server; any thread may ask.

    Args:
        connect: begins a session at the server.
        logs: of its statements.
    """

    def __init__(self, connect: Callable[[], AbstractContextManager[SourceConnection]], logs: StatementLogs) -> None:
        self._connect, self._logs = connect, logs

    def after(self, source: SourceTable, statement: LoggedStatement, offset: int) -> str:
        """The default of a table behind the statement at an offset, which names it so; ``UNDETERMINED_CHARSET`` if it
        is not determined.

        Raises BadInputError (the server no longer has the place), ConfigError, TransientError.
        """
        this = PlacedStatement.of(offset, statement)
        with self._logs.lock:
            self._read_ahead(offset)
            by_now = self._by_now(this, source)
            if by_now is not None:
                return by_now
            with self._connect() as connection:
                before = self._logs.read_before(connection, offset)
            known = [*before, *self._logs.ahead.between(offset, self._logs.ahead.end)]
            defaults = _Defaults(lambda database: self._database(database, known))
            for one in (*before, this):
                defaults.take(one)
            return defaults.of(_called(source, this))

    def _read_ahead(self, offset: int) -> None:
        with self._connect() as connection:
            self._logs.read_ahead(connection, offset)

    def _by_now(self, this: PlacedStatement, source: SourceTable) -> str | None:
        """What the answer of the server for the present says of the place; None if nothing."""
        first, start = _called(source, this), this.offset + 1
        for _ in range(TRIES):
            until = self._logs.ahead.end
            named = _name_after(first, self._logs.ahead.between(start, until))
            if named is None:
                return None
            charset = self._ask(_OF_TABLE, named.database, named.table)
            self._read_ahead(this.offset)
            if not self._logs.ahead.between(until, self._logs.ahead.end):
                return charset
        return None

    def _database(self, database: str, statements: Iterable[PlacedStatement]) -> str | None:
        """The default that a database has now and always had, as far as statements go; None if one changed it."""
        said = [one.of_database for one in statements if one.of_database is not None]
        if any(one.database == database and _changes(one) for one in said):
            return None
        return self._ask(_OF_DATABASE, database)

    def _ask(self, question: str, *names: str) -> str | None:
        """The character set of a collation that the server tells; None if there is none of these names."""
        with self._connect() as connection:
            rows = connection.rows(question, names)
        return str(rows[0][0]).split("_")[0] if rows and rows[0][0] is not None else None


def _called(source: SourceTable, statement: PlacedStatement) -> SourceTable:
    """The name that a table has behind a statement."""
    names = [one.to for one in statement.effects if one.action is Action.RENAME and one.source == source]
    return names[-1] or source if names else source


def _changes(said: DatabaseDefault) -> bool:
    return said.action is not Action.ALTER or said.charset is not None


def _name_after(first: SourceTable, statements: Iterable[PlacedStatement]) -> SourceTable | None:
    """The name of a table after statements; None if it may have another default then, or is not there."""
    source: SourceTable | None = first
    for statement in statements:
        for effect in statement.effects:
            if source is None or not is_about(effect, source):
                continue
            if effect.action is Action.RENAME:
                source = effect.to
            elif effect.action in (Action.DROP, Action.CREATE) or table_default(statement.text) is not None:
                return None
    return source


@dataclass
class _Defaults:
    """Defaults as statements declare them; None where a table is known not to be there."""

    of_database: Callable[[str], str | None]
    tables: dict[SourceTable, str | None] = field(default_factory=dict)
    databases: dict[str, str] = field(default_factory=dict)

    def take(self, statement: PlacedStatement) -> None:
        """Carry a statement out."""
        said = statement.of_database
        if said is not None and said.action is Action.DROP:
            self.databases.pop(said.database, None)
        elif said is not None and (said.charset or said.action is Action.CREATE):
            named = said.charset if said.charset != DEFAULT_CHARSET else None
            self.databases[said.database] = named or statement.statement.server_charset or UNDETERMINED_CHARSET
        for number, effect in enumerate(statement.effects):
            self._take(effect, statement.text, alters=not number)

    def _take(self, effect: TableEffect, text: str, *, alters: bool) -> None:
        """``alters``: an ALTER TABLE names the table of its first effect before all others."""
        source = effect.source
        if effect.action is Action.DROP:
            whole = source.table == EVERY_TABLE
            gone = [one for one in self.tables if one.database == source.database] if whole else [source]
            self.tables.update(dict.fromkeys(gone))
        elif effect.action is Action.RENAME and effect.to is not None:
            self.tables[effect.to] = self.of(source)
            self.tables[source] = None
        elif effect.action is Action.CREATE:
            is_absent = source in self.tables and self.tables[source] is None
            if is_absent or _UNLESS_THERE.search(text) is None:
                self.tables[source] = self._made(effect, text)
            else:
                self.tables.setdefault(source, UNDETERMINED_CHARSET)
        elif effect.action is Action.ALTER and alters and (named := table_default(text)) is not None:
            self.tables[source] = named if named != DEFAULT_CHARSET else self._database(source.database)

    def _made(self, effect: TableEffect, text: str) -> str:
        if effect.like is not None:
            return self.of(effect.like)
        named = table_default(text)
        return self._database(effect.source.database) if named in (None, DEFAULT_CHARSET) else named

    def of(self, source: SourceTable) -> str:
        """The default of a table; ``UNDETERMINED_CHARSET`` if they do not say it."""
        return self.tables.get(source) or UNDETERMINED_CHARSET

    def _database(self, database: str) -> str:
        return self.databases.get(database) or self.of_database(database) or UNDETERMINED_CHARSET
