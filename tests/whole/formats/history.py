"""A random history of a table: rows inserted, changed, moved and deleted, and statements between them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.whole.formats.values import KINDS, Kind

Row = dict[str, Any]
DATABASE = "shop"


@dataclass(frozen=True)
class Definition:
    """The columns of a table with their types, which of them may be null, and its key."""

    table: str
    columns: Mapping[str, str]
    nullable: frozenset[str]
    key: tuple[str, ...]

    def kind(self, name: str) -> Kind:
        """The type of a column."""
        return KINDS[self.columns[name]]

    @property
    def body(self) -> str:
        """What stands between the parentheses of CREATE TABLE."""
        parts = [f"`{n}` {t}{'' if n in self.nullable else ' not null'}" for n, t in self.columns.items()]
        return ", ".join(parts + ([f"primary key ({', '.join(self.key)})"] if self.key else []))


@dataclass(frozen=True)
class Rows:
    """A rows event: (before, after) of each row. ``last``: whether its transaction ends with it."""

    position: int
    transaction: int
    first: int
    last: bool
    op: str
    rows: Sequence[tuple[Row | None, Row | None]]
    definition: Definition


@dataclass(frozen=True)
class Statement:
    """A statement about the table; ``before`` is None for CREATE TABLE."""

    position: int
    sql: str
    before: Definition | None
    definition: Definition

    @property
    def kind(self) -> str:
        """CREATE, ALTER or TRUNCATE."""
        return self.sql.partition(" ")[0]


@dataclass
class History:
    """What happened to a table, and the rows that are left. ``changes``: every (op, before, after), in order."""

    definition: Definition
    dice: random.Random
    unique: str | None = None
    rows: list[Row] = field(default_factory=list)
    events: list[Rows | Statement] = field(default_factory=list)
    changes: list[tuple[str, Row | None, Row | None]] = field(default_factory=list)
    position: int = 1000
    transaction: int = 0
    _pending: list[tuple[str, list[tuple[Row | None, Row | None]]]] = field(default_factory=list)

    def begin(self) -> None:
        """CREATE TABLE."""
        self._state(f"CREATE TABLE `{self.definition.table}` ({self.definition.body})", None)

    def transact(self, op: str | None = None, statements: int | None = None) -> None:
        """A transaction of some statements, each of which changes some rows."""
        for _ in range(statements or self.dice.choice([1, 1, 1, 2, 3])):
            chosen = op or self.dice.choice("cccuuuuudds")
            changed = {"c": self._inserts, "u": self._updates, "d": self._deletes, "s": self._shift}[chosen]()
            if changed:
                self._pending.append(("u" if chosen == "s" else chosen, changed))
        self._commit()

    def _commit(self) -> None:
        self.transaction += 1
        number = 0
        for i, (op, changed) in enumerate(self._pending):
            self.position += self.dice.randrange(40, 400)
            last = i == len(self._pending) - 1
            event = Rows(self.position, self.transaction, number, last, op, changed, self.definition)
            self.events.append(event)
            self.changes += [(op, before, after) for before, after in changed]
            number += len(changed)
        self._pending = []

    def _value(self, name: str) -> Any:  # noqa: ANN401 - any value
        if name in self.definition.nullable and self.dice.random() < 0.35:
            return None
        return self.definition.kind(name).draw(self.dice)

    def _fresh(self, name: str) -> int:
        return self.dice.choice([n for n in range(-9, 600) if all(row[name] != n for row in self.rows)])

    def _inserts(self) -> list[tuple[Row | None, Row | None]]:
        changed: list[tuple[Row | None, Row | None]] = []
        for _ in range(self.dice.choice([1, 1, 2, 5])):
            row = {name: self._value(name) for name in self.definition.columns}
            for name in self._uniques():
                row[name] = self._fresh(name)
            if not self._uniques() and self.rows and self.dice.random() < 0.3:
                row = dict(self.dice.choice(self.rows))  # a row that is there already
            self.rows.append(row)
            changed.append((None, dict(row)))
        return changed

    def _uniques(self) -> list[str]:
        return list(dict.fromkeys([*self.definition.key, *([self.unique] if self.unique else [])]))

    def _updates(self) -> list[tuple[Row | None, Row | None]]:
        changed: list[tuple[Row | None, Row | None]] = []
        for row in self.dice.sample(self.rows, min(len(self.rows), self.dice.choice([1, 1, 2, 4]))):
            before = dict(row)
            names = [name for name in self.definition.columns if name not in self._uniques()]
            for name in self.dice.sample(names, min(len(names), self.dice.choice([1, 1, 2, 3]))):
                row[name] = self._value(name)
            if self._uniques() and self.dice.random() < 0.2:
                name = self.dice.choice(self._uniques())
                row[name] = self._fresh(name)
            if row != before:
                changed.append((before, dict(row)))
        return changed

    def _shift(self) -> list[tuple[Row | None, Row | None]]:
        """UPDATE ... SET key = key + 1 ORDER BY key DESC: each row takes the place that another has left."""
        names = self._uniques()
        if not names:
            return self._updates()
        name = self.dice.choice(names)
        changed: list[tuple[Row | None, Row | None]] = []
        for row in sorted(self.rows, key=lambda one: -one[name])[: self.dice.choice([2, 3, 9])]:
            before = dict(row)
            row[name] += 1
            changed.append((before, dict(row)))
        return changed

    def _deletes(self) -> list[tuple[Row | None, Row | None]]:
        chosen = self.dice.sample(self.rows, min(len(self.rows), self.dice.choice([1, 1, 2])))
        for row in chosen:
            self.rows.remove(row)
        return [(dict(row), None) for row in chosen]

    def alter(self) -> None:
        """A statement that adds, drops or renames a column."""
        free = [n for n in self.definition.columns if n.startswith("x")]
        what = self.dice.choice(["add", "add", "rename", "drop"]) if free else "add"
        columns, nullable = dict(self.definition.columns), set(self.definition.nullable)
        name = f"x{self.position}"
        if what == "add":
            kind = self.dice.choice(["int", "varchar(40)", "decimal(12,3)", "json", "bit(9)", "datetime(3)"])
            columns[name] = kind
            nullable.add(name)
            default = 7 if kind == "int" else None
            for row in self.rows:
                row[name] = default
            sql = f"ADD COLUMN `{name}` {kind}" + (f" DEFAULT {default}" if default else "")
        elif what == "rename":
            old = self.dice.choice(free)
            columns = {name if n == old else n: kind for n, kind in columns.items()}
            nullable = {name if n == old else n for n in nullable}
            for row in self.rows:
                row[name] = row.pop(old)
            sql = f"CHANGE COLUMN `{old}` `{name}` {columns[name]}"
        else:
            old = self.dice.choice(free)
            del columns[old]
            nullable.discard(old)
            for row in self.rows:
                del row[old]
            sql = f"DROP COLUMN `{old}`"
        now = Definition(self.definition.table, columns, frozenset(nullable), self.definition.key)
        before, self.definition = self.definition, now
        self._state(f"ALTER TABLE `{now.table}` {sql}", before)

    def rekey(self) -> None:
        """A statement that makes the unique column the key, and the key a unique column."""
        assert self.unique is not None
        key, self.unique = (self.unique,), self.definition.key[0]
        now = replace(self.definition, key=key)
        before, self.definition = self.definition, now
        self._state(f"ALTER TABLE `{now.table}` DROP PRIMARY KEY, ADD PRIMARY KEY (`{key[0]}`)", before)

    def truncate(self) -> None:
        """TRUNCATE TABLE, which no row event says."""
        self.rows.clear()
        self._state(f"TRUNCATE TABLE `{self.definition.table}`", self.definition)

    def _state(self, sql: str, before: Definition | None) -> None:
        self.position += self.dice.randrange(40, 400)
        self.events.append(Statement(self.position, sql, before, self.definition))
