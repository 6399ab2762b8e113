"""The generated columns of a table before each statement, and what a change of the columns that they read does to them.

The server computes them anew where a statement converts such a column (MODIFY, CHANGE, CONVERT TO), and writes no event
(measured with MariaDB 11.4, stored and virtual ones alike).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from binlake.decode.ddl.clauses import Action, AddColumn, Clause, ModifyColumn, RenameColumn, under_new_names
from binlake.decode.ddl.columns import ColumnDefinition
from binlake.decode.ddl.tokens import renamed_in

_WORD = re.compile(r"`((?:[^`]|``)+)`|(\w+)")
#: Generated columns by name in lower case.
Generated = Mapping[str, ColumnDefinition]
#: The ordering value of the newest CREATE TABLE before another one, and its generated columns; None if none is known.
GeneratedBefore = Callable[[int], tuple[int, Generated] | None]


def nothing_generated(order: int) -> tuple[int, Generated] | None:
    """The columns of a table of which no CREATE TABLE is known."""
    return None


def columns_of(clauses: Iterable[Clause]) -> dict[str, ColumnDefinition]:
    """The generated columns that a CREATE TABLE defines."""
    return changed({}, clauses)


def changed(known: Generated, clauses: Iterable[Clause]) -> dict[str, ColumnDefinition]:
    """The generated columns after a statement. One that is renamed, and the expression of one that reads a renamed
    column, have its new name."""
    clauses = list(clauses)
    names = {clause.old.lower(): clause.new for clause in clauses if isinstance(clause, RenameColumn)}
    columns = {
        name: replace(column, name=names.get(name, column.name), expression=renamed_in(column.expression, names))
        if names
        else column
        for name, column in known.items()
    }
    columns = {name.lower(): column for name, column in under_new_names(columns, clauses).items()}
    for clause in clauses:
        if isinstance(clause, AddColumn | ModifyColumn | RenameColumn) and clause.column is not None:
            columns.pop(clause.column.name.lower(), None)
            columns |= {clause.column.name.lower(): clause.column} if clause.column.generated else {}
    return columns


def reading(columns: Generated, bases: Iterable[str]) -> list[tuple[ColumnDefinition, frozenset[str]]]:
    """The generated columns that read columns, directly or through others, in the order in which they are computed;
    each with those of ``bases`` (in lower case) that it reads."""
    reads = {base: frozenset({base}) for base in bases}
    readers: list[tuple[ColumnDefinition, frozenset[str]]] = []
    while True:
        news = {
            name: frozenset[str]().union(*(reads[word] for word in words(column.expression) & reads.keys()))
            for name, column in columns.items()
            if name not in reads
        }
        news = {name: read for name, read in news.items() if read}
        if not news:
            return readers
        reads |= news
        readers += [(columns[name], read) for name, read in news.items()]


def words(expression: str) -> set[str]:
    """What may be a column's name in an expression, in lower case; also what is none."""
    return {(quoted.replace("``", "`") or word).lower() for quoted, word in _WORD.findall(expression)}


@dataclass
class GeneratedHistory:
    """Follows a table's generated columns through its statements. ``created``: what CREATE TABLE has defined."""

    created: GeneratedBefore = nothing_generated
    _since: int = -1
    _columns: dict[str, ColumnDefinition] = field(default_factory=dict)
    _is_made: bool = False

    def before(self, order: int) -> Generated:
        """The columns before a statement, as far as they are known."""
        made = self.created(order)
        return made[1] if made is not None and made[0] > self._since else self._columns

    def is_known(self, order: int) -> bool:
        """Whether a CREATE TABLE before a statement tells which columns are generated."""
        return self._is_made or self.created(order) is not None

    def note(self, order: int, action: Action, clauses: Iterable[Clause]) -> None:
        """Note what a statement defines or changes."""
        known = {} if action is Action.CREATE else self.before(order)
        self._is_made |= action is Action.CREATE
        self._since, self._columns = order, changed(known, clauses)
