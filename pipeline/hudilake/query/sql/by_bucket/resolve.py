"""Which table a column's name in a SELECT means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from hudilake.query.sql.joins import Joins
from hudilake.query.sql.planned_table import PlannedTable
from hudilake.query.sql.text import alias_of


@dataclass(frozen=True, eq=False)
class Sources:
    """The sources of a SELECT and the columns of those that are tables.

    Args:
        joins: FROM and the joins.
        tables: the tables of the query's references, by the identity (``id``) of the reference.
    """

    joins: Joins
    tables: Mapping[int, PlannedTable]

    def table(self, source: int) -> PlannedTable | None:
        """The table of a source; None for a subquery, a function or a name of WITH."""
        return self.tables.get(id(self.joins.sources[source]))

    def columns(self, source: int) -> tuple[str, ...]:
        """The columns that are read of a source that is a table."""
        table = self.table(source)
        return () if table is None else table.plan.columns

    def alias(self, source: int) -> str:
        """What the query calls the rows of a source, in lower case."""
        node = self.joins.sources[source]
        return alias_of(node) if isinstance(node, exp.Table) else node.alias_or_name.lower()

    @cached_property
    def aliases(self) -> dict[str, int]:
        """Source by what its rows are called; a repeated name is left out."""
        names = [self.alias(number) for number in range(len(self.joins.sources))]
        return {name: number for number, name in enumerate(names) if names.count(name) == 1}

    def of(self, column: exp.Column) -> tuple[int, str] | None:
        """The source and the column, as the table spells it; None where that is not certain.

        A bare name that USING makes one of several columns is the first of them.
        """
        holders = self._qualified(column) if column.table else self.bare(column.name)
        for source in holders:
            for name in self.columns(source):
                if name.lower() == column.name.lower():
                    return source, name
        return None

    def bare(self, name: str) -> list[int]:
        """The sources that a bare name may mean: one, or those that USING makes one; none where it is not certain."""
        name = name.lower()
        seen = [n for n in range(len(self.joins.sources)) if not self.joins.hidden(n)]
        if any(self.table(n) is None for n in seen):
            return []
        holders = [n for n in seen if name in map(str.lower, self.columns(n))]
        merged = [n for n in holders if n and name in self.joins.using(n)]
        return holders if len(holders) - len(merged) == 1 else []

    def is_inner(self, select: exp.Select, column: exp.Column) -> bool:
        """Whether a bare name below a SELECT means a table of a query inside of it."""
        around = column.find_ancestor(exp.Select)
        while around is not None and around is not select:
            inner = Joins.of(around)
            known = [self.tables[id(node)] for node in inner.sources if id(node) in self.tables] if inner else []
            if any(column.name.lower() == name.lower() for table in known for name in table.plan.columns):
                return True
            around = around.find_ancestor(exp.Select)
        return False

    def _qualified(self, column: exp.Column) -> list[int]:
        source = self.aliases.get(column.table.lower())
        if source is None:
            return []
        node = self.joins.sources[source]
        named = isinstance(node, exp.Table) and not node.alias
        if column.db and not (named and isinstance(node, exp.Table) and node.db.lower() == column.db.lower()):
            return []
        return [source]


def plain_columns(node: exp.Expr) -> Iterator[exp.Column]:
    """The columns that an expression names, stars left out."""
    for column in node.find_all(exp.Column):
        if not isinstance(column.this, exp.Star):
            yield column
