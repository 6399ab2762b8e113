"""The character set of text columns that a statement defines and that name none: the default of their table.

The server's answer for the present holds behind a statement unless a later one gives the table another default or ends
it. Else the statements before decide: they give the table a default, or it has that of its database by then. If they do
not say it either, it is not determined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import DEFAULT_CHARSET, Action, TableEffect
from binlake.decode.ddl.default_charsets import DatabaseDefault, table_default
from binlake.decode.types.mysql_types import UNDETERMINED_CHARSET
from binlake.source.binlog.statement_log import DeclaredTables, PlacedStatement, StatementLogs
from binlake.source.binlog.statements import LoggedStatement
from binlake.source.binlog.tables_then import TRIES, is_about

if TYPE_CHECKING:
    from binlake.source.database.connection import SourceConnection

_OF_TABLE = "SELECT table_collation FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
_OF_DATABASE = "SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = %s"


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

    def _by_now(self, this: PlacedStatement, source: SourceTable) -> str | None:
        """What the answer of the server for the present says of the place; None if nothing."""
        first, start = _called(source, this), this.offset + 1
        with self._connect() as connection:
            self._logs.read_ahead(connection, this.offset)
        for _ in range(TRIES):
            until = self._logs.ahead.end
            named = _name_after(first, self._logs.ahead.between(start, until))
            if named is None:
                return None
            with self._connect() as connection:
                charset = _ask(connection, _OF_TABLE, named.database, named.table)
                self._logs.read_ahead(connection, this.offset)  # which takes the session for itself
            if not self._logs.ahead.between(until, self._logs.ahead.end):
                return charset
        return None

    def _database(self, database: str, statements: Iterable[PlacedStatement]) -> str | None:
        """The default that a database has now and always had, as far as statements go; None if one changed it."""
        said = [one.of_database for one in statements if one.of_database is not None]
        if any(one.database == database and _changes(one) for one in said):
            return None
        with self._connect() as connection:
            return _ask(connection, _OF_DATABASE, database)


def _ask(connection: SourceConnection, question: str, *names: str) -> str | None:
    """The character set of a collation that the server tells; None if there is none of these names."""
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


class _Defaults:
    """Defaults as statements declare them; ``UNDETERMINED_CHARSET`` where they do not say it. ``of_database``: that of
    a database which no statement made or altered, None if it is not known."""

    def __init__(self, of_database: Callable[[str], str | None]) -> None:
        self._of_database = of_database
        self._databases: dict[str, str] = {}
        self._tables = DeclaredTables(UNDETERMINED_CHARSET, self._created, self._altered)
        self.of = self._tables.of

    def take(self, statement: PlacedStatement) -> None:
        """Carry a statement out."""
        said = statement.of_database
        if said is not None and said.action is Action.DROP:
            self._databases.pop(said.database, None)
        elif said is not None and (said.charset or said.action is Action.CREATE):
            named = said.charset if said.charset != DEFAULT_CHARSET else None
            self._databases[said.database] = named or statement.statement.server_charset or UNDETERMINED_CHARSET
        for number, effect in enumerate(statement.effects):
            if effect.action is not Action.ALTER or not number:  # ALTER TABLE names its table before all others
                self._tables.take(effect, statement.text)

    def _created(self, effect: TableEffect, text: str) -> str:
        return self._named(table_default(text) or DEFAULT_CHARSET, effect)

    def _altered(self, before: str, effect: TableEffect, text: str) -> str:
        named = table_default(text)
        return before if named is None else self._named(named, effect)

    def _named(self, charset: str, effect: TableEffect) -> str:
        if charset != DEFAULT_CHARSET:
            return charset
        database = effect.source.database
        return self._databases.get(database) or self._of_database(database) or UNDETERMINED_CHARSET
