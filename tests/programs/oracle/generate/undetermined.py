"""Statements whose effect on rows no log holds: defaults by functions that are not deterministic, and foreign keys that
change rows of their own table without an event.

A foreign key is never on a column of the primary key: what it changes is then a value, or the whole row.
"""

from __future__ import annotations

from tests.programs.oracle.catalog import Table
from tests.programs.oracle.generate.draw import Draw, Kind

_FUNCTIONS = (
    ("VARCHAR(36)", "UUID()"),
    ("INT", "FLOOR(RAND() * 1000)"),
    ("DOUBLE", "RAND()"),
    ("BIGINT", "CONNECTION_ID()"),
    ("VARCHAR(200)", "CURRENT_USER()"),
    ("DATETIME(6)", "NOW(6)"),
)
_ACTIONS = ("ON DELETE CASCADE", "ON DELETE SET NULL", "ON UPDATE CASCADE", "ON DELETE CASCADE ON UPDATE CASCADE")
_MOST = 7


def _add_computed(draw: Draw) -> list[str] | None:
    table = draw.table()
    if table is None:
        return None
    kind, function = draw.of(_FUNCTIONS)
    words = draw.of(("DEFAULT", "NOT NULL DEFAULT"))
    return [f"ALTER TABLE {draw.ref(table)} ADD COLUMN {draw.fresh('u')} {kind} {words} ({function})"]


def _parent(draw: Draw) -> Table | None:
    return draw.table(lambda t: len(t.key) == 1 and t.method is None)


def _child(draw: Draw) -> list[str] | None:
    """A table with a foreign key, rows in it, and a change of the parent."""
    parent = _parent(draw)
    if parent is None or len(draw.tables) >= _MOST:
        return None
    key = parent.column(parent.key[0])
    name = draw.place(parent.database, draw.fresh("f"))
    refers = f"REFERENCES {draw.ref(parent)} ({draw.name(key.name)}) {draw.of(_ACTIONS)}"
    charset = f" CHARACTER SET {key.charset}" if key.charset else ""
    made = f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT, p {key.type}{charset}, FOREIGN KEY (p) {refers})"
    filled = f"INSERT INTO {name} SELECT ROW_NUMBER() OVER (ORDER BY {draw.name(key.name)}), 7, {draw.name(key.name)}"
    return [made, f"{filled} FROM {draw.ref(parent)}", *(_change(draw, parent) if draw.chance(0.7) else [])]


def _change(draw: Draw, parent: Table) -> list[str]:
    key = parent.column(parent.key[0])
    name = draw.name(key.name)
    if draw.chance(0.6):
        return [f"DELETE FROM {draw.ref(parent)} ORDER BY {name} LIMIT {draw.of((1, 2))}"]
    return [f"UPDATE {draw.ref(parent)} SET {name} = {draw.value(parent, key)} ORDER BY {name} LIMIT 1"]


def _change_parent(draw: Draw) -> list[str] | None:
    parent = _parent(draw)
    return _change(draw, parent) if parent is not None else None


KINDS = (
    Kind("add undetermined column", 1.5, _add_computed),
    Kind("foreign key", 1.5, _child),
    Kind("change of parent", 1.5, _change_parent),
)
