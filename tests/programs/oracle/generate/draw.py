"""What a kind of statement is drawn from: chance, the tables as they are, and names that are free."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.programs.oracle.catalog import Column, Table
from tests.programs.oracle.generate.literals import key_literal, literal
from tests.programs.oracle.script import DATABASE, SECOND

T = TypeVar("T")


@dataclass
class Draw:
    """``tables``: of both databases, as the server described them last."""

    random: random.Random
    tables: list[Table] = field(default_factory=list)
    _used: int = 0

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return self.random.random() < share

    def of(self, choices: Sequence[T]) -> T:
        """One of them."""
        return self.random.choice(choices)

    def table(self, fits: Callable[[Table], bool] = lambda _: True) -> Table | None:
        """A table of the kind looked for; None if there is none."""
        fitting = [table for table in self.tables if fits(table)]
        return self.of(fitting) if fitting else None

    def column(self, table: Table, fits: Callable[[Column], bool] = lambda _: True) -> Column | None:
        """A column that is neither generated nor part of the primary key nor of the partitioning."""
        fitting = [c for c in table.plain if c.name not in table.key and c.name not in table.expression and fits(c)]
        return self.of(fitting) if fitting else None

    def fresh(self, prefix: str) -> str:
        """A name that nothing has yet."""
        self._used += 1
        return f"{prefix}{self._used}"

    def name(self, name: str) -> str:
        """An identifier, quoted or not."""
        return (
            name if name.isidentifier() and name.isascii() and self.chance(0.5) else "`" + name.replace("`", "``") + "`"
        )

    def ref(self, table: Table) -> str:
        """A table's name, with its database where that is needed and at times besides."""
        return self.place(table.database, table.name)

    def place(self, database: str, name: str) -> str:
        """The name of a table that may not exist yet."""
        if database != DATABASE or self.chance(0.2):
            return f"{self.name(database)}.{self.name(name)}"
        return self.name(name)

    def database(self) -> str:
        """Mostly the first one."""
        return SECOND if self.chance(0.15) else DATABASE

    def value(self, table: Table, column: Column) -> str:
        """A value for a column."""
        source = key_literal if column.name in table.key or column.name in table.expression else literal
        return source(self.random, column)


@dataclass(frozen=True)
class Kind:
    """A kind of statement. ``make``: its statements, or None where no table fits. ``weight``: how often it is drawn."""

    name: str
    weight: float
    make: Callable[[Draw], list[str] | None]
