"""What pt-online-schema-change and gh-ost do at a source, statement by statement, while applications write.

Order of statements as in percona-toolkit's bin/pt-online-schema-change and gh-ost's go/logic/applier.go:

- pt-osc: CREATE TABLE ``_t_new`` (definition of t; ``__t_new`` if that is taken), ALTER TABLE ``_t_new``, triggers that
  carry every change over, INSERT LOW_PRIORITY IGNORE ... SELECT by chunks (only rows of ``--where``), RENAME TABLE t TO
  ``_t_old``, ``_t_new`` TO t; DROP TABLE IF EXISTS ``_t_old``. ``drop_swap``: DROP TABLE IF EXISTS t; RENAME TABLE
  ``_t_new`` TO t. Given up: DROP TABLE IF EXISTS ``_t_new``, unless ``--no-drop-new-table``.
- gh-ost: CREATE TABLE ``_t_ghc`` and heartbeats into it, CREATE TABLE ``_t_gho`` LIKE t, ALTER TABLE ``_t_gho``, INSERT
  IGNORE ... SELECT by chunks and changes applied from the binlog, CREATE TABLE ``_t_del`` (sentry), DROP TABLE
  ``_t_del``, RENAME TABLE t TO ``_t_del``, ``_t_gho`` TO t (``two-step``: two statements), DROP TABLE ``_t_ghc``, DROP
  TABLE ``_t_del`` only with ``--ok-to-drop-table``. Given up: ``_t_gho`` and ``_t_ghc`` stay until the next run drops
  them (``--initially-drop-ghost-table``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.binlake.schema.ddl_source import DdlSource, Row

NOTES = {"id": "bigint", "last_update": "varchar(30)", "hint": "varchar(64)", "value": "varchar(4096)"}


@dataclass
class Captured(DdlSource):
    """A source whose connector leaves the rows of some tables out; their statements come. ``together``: the rows of all
    tables go to one topic."""

    captures: Callable[[str], bool] = lambda table: True
    together: bool = False

    def event(self, table: str, op: str, after: Row | None, before: Row | None, key: int, kind: str = "") -> None:
        """A row event, if the connector's table filter takes it."""
        if self.captures(table):
            super().event(table, op, after, before, key, kind)
            if self.together:
                place = next(at for at in self.log.records if at[0] == f"s.shop.{table}")
                self.log.records.setdefault(("s", 0), []).extend(self.log.records.pop(place))
        else:
            self.pos += 10


@dataclass
class Tool:
    """One run of a tool over table ``t``. ``kind``: pt or gho. ``keeps``: the rows that it copies. ``fills``: the value
    that a row gets in the column that the run adds."""

    source: DdlSource
    kind: str
    column: str
    table: str = "t"
    keeps: Callable[[int], bool] = lambda key: True
    fills: Callable[[int], int] = lambda key: key * 7
    two_step: bool = False
    drop_swap: bool = False
    key: tuple[str, ...] = ("id",)
    running: bool = field(default=False, init=False)
    old: str = field(default="", init=False)

    @property
    def shadow(self) -> str:
        """The copy's name."""
        return f"_{self.table}_new" if self.kind == "pt" else f"_{self.table}_gho"

    def start(self) -> None:
        """Make the copy with another definition; changes are carried over from now on."""
        source = self.source
        if self.kind == "gho":
            for name in (self.shadow, f"_{self.table}_ghc"):
                if name in source.tables:
                    source.drop_table(name)
            source.create(f"_{self.table}_ghc", NOTES, snapshot=False)
            self.beat()
            source.like(self.shadow, self.table)
        else:
            if self.shadow in source.tables:
                source.drop_table(self.shadow)
            held = source.tables[self.table]
            source.create(self.shadow, held.columns, key=held.key, snapshot=False)
        source.add(self.shadow, self.column, "int", None, "NOT NULL")
        self.running = True

    def beat(self) -> None:
        """gh-ost writes a heartbeat."""
        name = f"_{self.table}_ghc"
        if name in self.source.tables:
            self.source.put(name, 1, hint="heartbeat", value=str(self.source.pos))

    def write(self, key: int, **values: Any) -> None:  # noqa: ANN401 - any JSON
        """An application writes a row; the copy gets it too."""
        self.source.put(self.table, key, **values)
        if self.running:
            self._copy(key)

    def delete(self, key: int) -> None:
        """An application deletes a row."""
        self.source.delete(self.table, key)
        if self.running and key in self.source.tables[self.shadow].rows:
            self.source.delete(self.shadow, key)

    def copy(self, keys: range) -> None:
        """A chunk of rows is copied."""
        held = self.source.tables[self.table].rows
        for key in sorted(held):
            if key in keys and self.keeps(key) and key not in self.source.tables[self.shadow].rows:
                self._copy(key)

    def _copy(self, key: int) -> None:
        row = self.source.tables[self.table].rows[key]
        values = {name: value for name, value in row.items() if name != "id"}
        self.source.put(self.shadow, key, **values | {self.column: self.fills(key)})

    def swap(self, old: str = "") -> None:
        """The copy takes the table's name."""
        source, table = self.source, self.table
        self.running, self.old = False, old or (f"_{table}_old" if self.kind == "pt" else f"_{table}_del")
        while self.old in source.tables:
            self.old = f"_{self.old}"
        if self.kind == "gho":
            source.create(self.old, {"id": "int"}, snapshot=False)
            source.drop_table(self.old)
        if self.drop_swap:
            source.drop_table(table)
            source.rename_tables((self.shadow, table))
            self.old = ""
        elif self.two_step:
            source.rename_tables((table, self.old))
            source.rename_tables((self.shadow, table))
        else:
            source.rename_tables((table, self.old), (self.shadow, table))
        if f"_{table}_ghc" in source.tables:
            source.drop_table(f"_{table}_ghc")

    def clean(self) -> None:
        """The old table is dropped."""
        if self.old in self.source.tables:
            self.source.drop_table(self.old)

    def give_up(self, *, drop: bool) -> None:
        """The run ends without a swap."""
        self.running = False
        if drop:
            self.source.drop_table(self.shadow)

    def roll_back(self) -> None:
        """Somebody swaps the old table in again."""
        source, away = self.source, f"_{self.table}_new"
        while away in source.tables:
            away = f"_{away}"
        source.rename_tables((self.table, away), (self.old, self.table))
        self.old = away
