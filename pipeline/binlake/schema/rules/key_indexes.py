"""The indexes that can be a table's key, before each statement.

The rows of a table without a primary key have a unique index as their key. If it is dropped, rows may share what it
held apart, and Debezium goes on with its columns as the key (measured, 3.4): the lake would keep one row of several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from binlake.decode.ddl.clauses import (
    Action,
    AddUnique,
    ChangeKey,
    Clause,
    DropIndex,
    RenameColumn,
    RenameIndex,
    UntoldModel,
)
from hudilake.format.definition.column_names import lake_name


@dataclass(frozen=True)
class KeyIndexes:
    """The indexes of a table that hold rows apart.

    Args:
        has_primary: whether it has a primary key.
        unique: the columns of each unique index (``lake_name`` in lower case) by its name in lower case.
    """

    has_primary: bool = False
    unique: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def after(self, clauses: Iterable[Clause]) -> KeyIndexes:
        """Those after a statement, which drops before it adds."""
        has_primary, unique = self.has_primary, dict(self.unique)
        clauses = list(clauses)
        names = {_column(one.old): _column(one.new) for one in clauses if isinstance(one, RenameColumn)}
        unique = {name: frozenset(names.get(one, one) for one in held) for name, held in unique.items()}
        for clause in sorted(clauses, key=lambda one: not isinstance(one, DropIndex)):
            if isinstance(clause, ChangeKey):
                has_primary = bool(clause.columns) and not clause.by_index
            elif isinstance(clause, AddUnique):
                unique[clause.name.lower()] = frozenset(map(_column, clause.columns))
            elif isinstance(clause, DropIndex):
                unique.pop(clause.name.lower(), None)
            elif isinstance(clause, RenameIndex):
                columns = unique.pop(clause.old.lower(), None)
                unique |= {clause.new.lower(): columns} if columns is not None else {}
        return KeyIndexes(has_primary, unique)

    def hold_apart(self, key: Iterable[str]) -> bool:
        """Whether no two rows have the same values in these columns of the lake. Nulls are left out of account: a row
        that has one in the key is refused."""
        columns = {name.lower() for name in key}
        return self.has_primary or any(held <= columns for held in self.unique.values())


def indexes_of(defined: Iterable[Clause], key: Iterable[str]) -> KeyIndexes:
    """The indexes that a CREATE TABLE defines. ``key``: of the table, which is the primary key where no index is
    unique."""
    indexes = KeyIndexes().after(defined)
    return indexes if indexes.unique else KeyIndexes(bool(tuple(key)))


#: The ordering value of the newest CREATE TABLE before another one, and its indexes; None if none is known.
IndexesBefore = Callable[[int], tuple[int, KeyIndexes] | None]


def no_indexes(order: int) -> tuple[int, KeyIndexes] | None:
    """The indexes of a table of which no CREATE TABLE is known."""
    return None


@dataclass
class KeyIndexHistory:
    """Follows a table's indexes through its statements. ``created``: what CREATE TABLE has defined."""

    created: IndexesBefore = no_indexes
    _since: int = -1
    _known: KeyIndexes | None = None

    def before(self, order: int) -> KeyIndexes | None:
        """The indexes before a statement; None if they are not known."""
        made = self.created(order)
        return made[1] if made is not None and made[0] > self._since else self._known

    def note(self, order: int, action: Action, clauses: Iterable[Clause]) -> None:
        """Note what a statement defines or changes."""
        clauses = list(clauses)
        known = KeyIndexes() if action is Action.CREATE else self.before(order)
        if any(isinstance(clause, UntoldModel) for clause in clauses):
            known = None
        self._since, self._known = order, known.after(clauses) if known is not None else None


def _column(name: str) -> str:
    return lake_name(name).lower()
