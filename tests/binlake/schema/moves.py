"""Three databases whose tables are renamed, moved, swapped, dropped and made again, told as Debezium tells it.

As recorded with Debezium 3 and MariaDB: a statement with several parts comes as one record a part, at one position;
each names the database of the name that its part ends with, has the text as it was written, and describes the table of
that name if there is one after the statement. ``Moves`` also keeps, as a plain model, which table has which name.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from binlake.decode.changes import SourceTable
from tests.binlake.schema.ddl_source import Follower
from tests.binlake.stream.topic_log import TopicLog

DATABASES = ("db1", "db2", "db3")
FILE = "mariadb-bin.000003"
#: The settings of a stream over all of them, for ``Follower.more``.
ALL: dict[str, Any] = {"kafka": {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": r"s(\.db\d\..*)?"}}
Rows = dict[int, dict[str, int]]


@dataclass
class Held:
    """A table: the column besides ``id``, its rows, and all values that it ever had; no two tables have one value."""

    column: str
    rows: Rows = field(default_factory=dict)
    values: set[int] = field(default_factory=set)


@dataclass
class Moves:
    """The source. ``tables``: by their names now. ``open``: the first statement of which the log does not say which
    tables it is about."""

    tables: dict[SourceTable, Held] = field(default_factory=dict)
    log: TopicLog = field(default_factory=TopicLog)
    ddl: list[bytes] = field(default_factory=list)
    ever: list[Held] = field(default_factory=list)
    open: str = ""
    file: str = FILE
    pos: int = 100
    statements: list[str] = field(default_factory=list)

    def carry_out(self, sql: str) -> None:
        """Carry out a statement, and stand behind it."""
        self.pos += 10

    def create(self, name: SourceTable, column: str = "v", *, snapshot: bool = False) -> None:
        self.tables[name] = Held(column)
        self.ever.append(self.tables[name])
        text = f"CREATE TABLE {name} (id INT PRIMARY KEY, {column} INT)"
        self.carry_out(text)
        self.record([(text, name, "CREATE")], snapshot=snapshot)

    def drop(self, name: SourceTable) -> None:
        del self.tables[name]
        self.carry_out(f"DROP TABLE {name}")
        self.record([(f"DROP TABLE `{name.database}`.`{name.table}`", name, "DROP")])

    def rename(self, used: str, *pairs: tuple[SourceTable, SourceTable], written: bool, alter: bool = False) -> None:
        """RENAME TABLE, run in the database ``used``; ``written``: names of that database have it before them too."""
        leaves_open = not written and self.leaves_open(used, *pairs)
        parts = []
        for old, new in pairs:
            self.tables[new] = self.tables.pop(old)
            one, other = (self._spelled(name, used, written=written) for name in (old, new))
            text = f"ALTER TABLE {one} RENAME TO {other}" if alter else f"RENAME TABLE {one} TO {other}"
            parts.append((text, new, "ALTER"))
        whole = ", ".join([parts[0][0], *(text.removeprefix("RENAME TABLE ") for text, _, _ in parts[1:])])
        self.carry_out(f"USE {used}; {whole}")
        self.record(parts)
        self.open = self.open or (self.statements[-1] if leaves_open else "")

    def leaves_open(self, used: str, *pairs: tuple[SourceTable, SourceTable]) -> bool:
        """The plain rule: no part ends with a name without a database, and several databases have such tables, which
        look as the tables do afterwards."""
        if any(new.database == used for _, new in pairs) or all(old.database != used for old, _ in pairs):
            return False
        after = self._after(pairs, used, used)
        likely = [self._after(pairs, used, one) for one in DATABASES]
        return sum(one is not None and after is not None and one.items() >= after.items() for one in likely) > 1

    def _after(
        self, pairs: Sequence[tuple[SourceTable, SourceTable]], used: str, looked_up: str
    ) -> dict[SourceTable, str] | None:
        """The columns of the tables of the statement after it, if it looks its names up in a database; None if it
        cannot."""
        tables, moved = {name: held.column for name, held in self.tables.items()}, dict[SourceTable, str]()
        for old, new in pairs:
            source = SourceTable(looked_up, old.table) if old.database == used else old
            if source not in tables or source == new:
                return None
            tables[new] = moved[new] = tables.pop(source)
            moved.pop(source, None)
        return moved

    @staticmethod
    def _spelled(name: SourceTable, used: str, *, written: bool) -> str:
        return name.table if name.database == used and not written else str(name)

    def put(self, name: SourceTable, key: int, value: int) -> None:
        held = self.tables[name]
        before, row = held.rows.get(key), {"id": key, held.column: value}
        held.rows[key] = row
        held.values.add(value)
        self.carry_out(f"REPLACE INTO {name} VALUES ({key}, {value})")
        self._event(name, "c" if before is None else "u", row, before, key)

    def delete(self, name: SourceTable, key: int) -> None:
        before = self.tables[name].rows.pop(key)
        self.carry_out(f"DELETE FROM {name} WHERE id = {key}")
        self._event(name, "d", None, before, key)

    def _place(self, name: SourceTable) -> dict[str, Any]:
        place = {"ts_ms": (1_760_000_000 + self.pos) * 1000, "snapshot": "false", "db": name.database}
        return {**place, "table": name.table, "server_id": 1, "file": self.file, "pos": self.pos, "row": 0}

    def _event(self, name: SourceTable, op: str, after: object, before: object, key: int) -> None:
        value = {"before": before, "after": after, "source": self._place(name), "op": op, "ts_ms": 0}
        self.log.add(f"s.{name}", value, {"id": key}, key % 2)

    def record(self, parts: Sequence[tuple[str, SourceTable, str]], *, snapshot: bool = False) -> None:
        """The records of a statement: the text of each part, the name it ends with, and what became of that table."""
        self.statements.append("; ".join(text for text, _, _ in parts))
        for text, name, kind in parts:
            change: dict[str, Any] = {"type": kind, "id": f'"{name.database}"."{name.table}"', "table": None}
            if (held := self.tables.get(name)) is not None:
                types = [("id", "INT"), (held.column, "INT")]
                columns = [{"name": n, "typeName": t, "typeExpression": t} for n, t in types]
                change["table"] = {"columns": columns, "primaryKeyColumnNames": ["id"]}
            source = self._place(name) | ({"snapshot": "true"} if snapshot else {})
            there = kind == "DROP" or name in self.tables
            record = {"source": source, "databaseName": name.database, "ddl": text, "ts_ms": 0}
            self.ddl.append(json.dumps(record | {"tableChanges": [change] if there else []}).encode())


def followed(source: Moves, place: Path, **sections: Any) -> Follower:  # noqa: ANN401 - of the settings
    """A stream over the three databases."""
    return Follower(source, place, sections, more=ALL)  # type: ignore[arg-type] # the parts that it uses


def name(text: str) -> SourceTable:
    """The table of ``database.table``."""
    return SourceTable(*text.split("."))


def step(chance: random.Random, source: Moves, left_open: float = 0.1) -> None:
    """One statement or a few rows. ``left_open``: how many of the statements that can leave open which tables they are
    about are written so."""
    names = sorted(source.tables, key=str)
    free = [SourceTable(d, t) for d in DATABASES for t in "tuw" if SourceTable(d, t) not in source.tables]
    what = chance.choices(["rows", "move", "swap", "turn", "drop", "create"], [8, 6, 2, 1, 1, 2])[0]
    if what in ("move", "swap", "turn") and len(names) > 2 and free:
        ring, by = chance.sample(names, {"move": 1, "swap": 2, "turn": 3}[what]), chance.choice(free)
        pairs = [(ring[0], by)]
        if what != "move":
            pairs += [*((ring[at], ring[at - 1]) for at in range(1, len(ring))), (by, ring[-1])]
        used = ring[0].database if chance.random() < 0.7 else chance.choice(DATABASES)
        written = chance.random() < 0.2 or (source.leaves_open(used, *pairs) and chance.random() >= left_open)
        source.rename(used, *pairs, written=written, alter=what == "move" and chance.random() < 0.3)
    elif what == "drop" and len(names) > 2:
        source.drop(chance.choice(names))
    elif what == "create" and free:
        source.create(chance.choice(free), chance.choice("vxy"))
    else:
        for _ in range(chance.randrange(1, 4)):
            some = chance.choice(names)
            if source.tables[some].rows and chance.random() < 0.2:
                source.delete(some, chance.choice(sorted(source.tables[some].rows)))
            else:
                source.put(some, chance.randrange(6), source.pos)
