"""The collations of a table's text columns before each statement, as far as statements tell that two are the same one.

A collation that a statement names is known by its name. One that a table has by default is known as that of a
statement: a column that MODIFY defines without a name gets the table's default again, whatever this is called. What a
character set has by default is not known: sessions and versions of a server decide it (``character_set_collations``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from binlake.decode.ddl.clauses import (
    Action,
    AddColumn,
    Clause,
    ConvertCharset,
    ModifyColumn,
    RenameColumn,
    TableDefault,
    under_new_names,
)
from binlake.decode.ddl.columns import UNNAMED_COLLATION

_OF_TABLE = "the default of {}"


@dataclass(frozen=True)
class Collations:
    """Those of one table: a name, or what stands for one.

    Args:
        default: of columns that name none.
        columns: by name in lower case; one that is not in it has a collation that is not known.
    """

    default: str = _OF_TABLE.format("the table")
    columns: Mapping[str, str] = field(default_factory=dict)

    def after(self, clauses: Iterable[Clause], order: int) -> Collations:
        """Those after a statement, whose ordering value stands for what it does not name."""
        clauses = list(clauses)
        default, columns = self.default, under_new_names(self.columns, clauses)
        columns = {name.lower(): collation for name, collation in columns.items()}
        for clause in clauses:
            if isinstance(clause, TableDefault | ConvertCharset):
                default = _named(clause.collation, order)
            if isinstance(clause, ConvertCharset):
                columns = dict.fromkeys(columns, default)
        for clause in clauses:
            if not isinstance(clause, AddColumn | ModifyColumn | RenameColumn) or clause.column is None:
                continue
            column, name = clause.column, clause.column.name.lower()
            columns.pop(name, None)
            if column.is_text and column.collation != UNNAMED_COLLATION:
                columns[name] = column.collation or default
        return Collations(default, columns)


def _named(collation: str, order: int) -> str:
    return _OF_TABLE.format(order) if collation == UNNAMED_COLLATION else collation


#: The ordering value of the newest CREATE TABLE before another one, and its collations; None if none is known.
CollationsBefore = Callable[[int], tuple[int, Collations] | None]


def no_collations(order: int) -> tuple[int, Collations] | None:
    """Those of a table of which no CREATE TABLE is known."""
    return None


def created_collations(clauses: Iterable[Clause], order: int) -> Collations:
    """Those that the CREATE TABLE at an ordering value gives."""
    return Collations(_OF_TABLE.format(order)).after(clauses, order)


@dataclass
class CollationHistory:
    """Follows a table's collations through its statements. ``created``: what CREATE TABLE has defined."""

    created: CollationsBefore = no_collations
    _since: int = -1
    _known: Collations = field(default_factory=Collations)

    def before(self, order: int) -> Collations:
        """Those before a statement."""
        made = self.created(order)
        return made[1] if made is not None and made[0] > self._since else self._known

    def note(self, order: int, action: Action, clauses: Iterable[Clause]) -> None:
        """Note what a statement defines or changes."""
        made = action is Action.CREATE
        self._known = created_collations(clauses, order) if made else self.before(order).after(clauses, order)
        self._since = order

    def turned(self, clauses: Iterable[Clause], order: int, texts: Iterable[str]) -> frozenset[str]:
        """The text columns (names after a statement, in lower case) that may have another collation by it.

        ``texts``: the names of all text columns.
        """
        clauses = list(clauses)
        defined = {
            clause.column.name.lower(): (clause.old if isinstance(clause, RenameColumn) else clause.column.name).lower()
            for clause in clauses
            if isinstance(clause, ModifyColumn | RenameColumn) and clause.column is not None and clause.column.is_text
        }
        if any(isinstance(clause, ConvertCharset) for clause in clauses):
            defined = {name.lower(): name.lower() for name in texts} | defined
        before = self.before(order)
        after = before.after(clauses, order)
        same = {
            new
            for new, old in defined.items()
            if old in before.columns and before.columns[old] == after.columns.get(new)
        }
        return frozenset(defined.keys() - same)
