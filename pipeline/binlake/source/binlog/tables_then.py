"""What a table of a MariaDB was at a place of the binlog, as far as the events of that place leave it open.

The server knows a table as it is now. Its answer holds at a place unless a statement after the place changes what was
asked, so the rest of the binlog is read ahead, for its statements alone. What a later statement changes is as the
statements before the place declare it, if the binlog still has the one that made the column or the table. Else it is
not determined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import (
    EVERY_TABLE,
    Action,
    AddColumn,
    DropColumn,
    ModifyColumn,
    RenameColumn,
    TableEffect,
)
from binlake.source.binlog.statement_log import DeclaredTables, PlacedStatement, StatementLogs
from binlake.source.binlog.table_map import LoggedTable

if TYPE_CHECKING:
    from binlake.source.database.connection import SourceConnection

_QUESTION = "SELECT {} FROM information_schema.{} WHERE table_schema = %s AND table_name = %s"
_VERSIONING = re.compile(r"(?:\b(ADD|DROP)\s+SYSTEM\s+)?\bVERSIONING\b", re.IGNORECASE)
#: So often the server is asked, if statements of the table keep coming while it answers.
TRIES = 5


@dataclass(frozen=True, slots=True)
class TableThen:
    """A table at a place.

    Args:
        types: open column, in lower case -> type as DDL writes it, None if it is not determined. The server's own
            columns, which no SELECT shows, are not in it.
        versioned: whether its former rows are in it, too (system versioning); None if it is not determined.
    """

    types: Mapping[str, str | None]
    versioned: bool | None = False


class TablesThen:
    """Answers about one server; any thread may ask.

    Args:
        connect: begins a session at the server.
        logs: of its statements.
    """

    def __init__(self, connect: Callable[[], AbstractContextManager[SourceConnection]], logs: StatementLogs) -> None:
        self._connect, self._logs = connect, logs

    def at(self, table: LoggedTable, offset: int) -> TableThen:
        """What a definition in the event with an offset leaves open: its ``open_columns``, and whether it is versioned.

        Raises BadInputError (the server no longer has the place), ConfigError, TransientError.
        """
        with self._logs.lock:
            then = self._by_now(table.source, table.open_columns, offset)
            is_open = None in then.types.values() or (then.versioned is None and table.may_be_versioned)
            if not is_open:
                return then
            with self._connect() as connection:
                before = self._logs.read_before(connection, offset)
            return _declared(before, table.source, then)

    def _by_now(self, source: SourceTable, columns: frozenset[str], offset: int) -> TableThen:
        """What the answer of the server for the present says of the place."""
        undetermined = TableThen(dict.fromkeys(columns), versioned=None)
        with self._connect() as connection:
            self._logs.read_ahead(connection, offset)
        for _ in range(TRIES):
            until = self._logs.ahead.end
            followed = _FollowedTable(source, {name: name for name in columns})
            followed.through(self._logs.ahead.between(offset, until))
            if followed.source is None:
                return undetermined
            with self._connect() as connection:
                types, versioned = _answer(connection, followed.source)
                self._logs.read_ahead(connection, offset)
            if not followed.through(self._logs.ahead.between(until, self._logs.ahead.end)):
                return followed.as_now(types, versioned=versioned) if types else undetermined
        return undetermined


def _answer(connection: SourceConnection, source: SourceTable) -> tuple[dict[str, str], bool]:
    """Types by column in lower case, empty if the table is not there; and whether it is versioned."""
    names = source.database, source.table
    columns = connection.rows(_QUESTION.format("column_name, column_type", "columns"), names)
    kinds = connection.rows(_QUESTION.format("table_type", "tables"), names)
    types = {str(name).lower(): str(text) for name, text in columns}
    return types, [str(kind) for [kind] in kinds] == ["SYSTEM VERSIONED"]


@dataclass
class _FollowedTable:
    """A table on its way from a place to the present.

    Args:
        source: its name by now; None if it is not there any more.
        names: column then -> column by now, in lower case, of those that no statement has defined anew.
    """

    source: SourceTable | None
    names: dict[str, str]
    _columns: frozenset[str] = frozenset()
    _versioning: bool = False

    def __post_init__(self) -> None:
        self._columns = frozenset(self.names)

    def through(self, statements: Iterable[PlacedStatement]) -> bool:
        """Follow it through statements, in order; whether one of them was about it."""
        meant = False
        for statement in statements:
            for effect in statement.effects:
                if self.source is not None and is_about(effect, self.source):
                    meant = True
                    self._take(effect, statement.text)
        return meant

    def _take(self, effect: TableEffect, text: str) -> None:
        self._versioning |= _VERSIONING.search(text) is not None
        if effect.action in (Action.DROP, Action.RENAME):
            self.source = effect.to
        elif effect.action is Action.ALTER:
            renamed, defined = _renamed(effect), _defined(effect)
            self.names = {then: renamed.get(now, now) for then, now in self.names.items() if now not in defined}

    def as_now(self, types: Mapping[str, str], *, versioned: bool) -> TableThen:
        """The table then, as the server answers for it now."""
        known = {then: types[now] for then, now in self.names.items() if now in types}
        changed: dict[str, str | None] = dict.fromkeys(self._columns - self.names.keys())
        return TableThen(known | changed, None if self._versioning else versioned)


def is_about(effect: TableEffect, source: SourceTable) -> bool:
    """Some servers do not distinguish names of tables by case."""
    meant = effect.source.database.lower(), effect.source.table.lower()
    if effect.source.table == EVERY_TABLE:
        return effect.action is Action.DROP and meant[0] == source.database.lower()
    return meant == (source.database.lower(), source.table.lower())


def _renamed(effect: TableEffect) -> dict[str, str]:
    return {one.old.lower(): one.new.lower() for one in effect.clauses if isinstance(one, RenameColumn)}


def _defined(effect: TableEffect) -> set[str]:
    """The columns, by their names before, that a statement defines anew or drops."""
    defined = set()
    for clause in effect.clauses:
        if isinstance(clause, ModifyColumn):
            defined.add(clause.column.name.lower())
        elif isinstance(clause, DropColumn):
            defined.add(clause.name.lower())
        elif isinstance(clause, RenameColumn) and clause.column is not None:
            defined.add(clause.old.lower())
    return defined


@dataclass(frozen=True)
class _DeclaredTable:
    """A table as statements declare it. ``whole``: whether one of them made it, so that all columns are known."""

    types: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False
    versioned: bool | None = None


def _declared(statements: Iterable[PlacedStatement], source: SourceTable, then: TableThen) -> TableThen:
    """What ``then`` leaves open as the statements before declare it."""
    tables = DeclaredTables(_DeclaredTable(), _created, _altered)
    for statement in statements:
        for effect in statement.effects:
            tables.take(effect, statement.text)
    declared = tables.of(source)
    types = dict(then.types)
    for name, kind in then.types.items():
        if kind is None and declared.whole and name not in declared.types:
            del types[name]
        elif kind is None:
            types[name] = declared.types.get(name)
    return TableThen(types, declared.versioned if then.versioned is None else then.versioned)


def _created(effect: TableEffect, text: str) -> _DeclaredTable:
    types = {one.column.name.lower(): one.column.type_text for one in effect.clauses if isinstance(one, AddColumn)}
    return _DeclaredTable(types, bool(types), _VERSIONING.search(text) is not None)


def _altered(table: _DeclaredTable, effect: TableEffect, text: str) -> _DeclaredTable:
    renamed, defined = _renamed(effect), _defined(effect)
    types = {renamed.get(name, name): kind for name, kind in table.types.items() if name not in defined}
    for clause in effect.clauses:
        if isinstance(clause, ModifyColumn):
            types[clause.column.name.lower()] = clause.column.type_text
        elif isinstance(clause, RenameColumn) and clause.column is not None:
            types[clause.new.lower()] = clause.column.type_text
        elif isinstance(clause, AddColumn):
            name = clause.column.name.lower()
            if not clause.if_not_exists or (table.whole and name not in table.types):
                types[name] = clause.column.type_text
    words = {str(match[1]).upper() for match in _VERSIONING.finditer(text)}
    versioned = table.versioned
    if words:
        versioned = words == {"ADD"} if words in ({"ADD"}, {"DROP"}) else None
    return _DeclaredTable(types, table.whole, versioned)
