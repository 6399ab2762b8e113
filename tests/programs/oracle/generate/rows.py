"""Statements that change rows."""

from __future__ import annotations

from tests.programs.oracle.catalog import Column, Table
from tests.programs.oracle.generate.draw import Draw, Kind


def insert(draw: Draw, table: Table, count: int, verb: str = "INSERT") -> str:
    """INSERT of some rows; columns with a default are left out at times."""
    columns = [c for c in table.plain if c.name in table.key or not (_may_be_left_out(c) and draw.chance(0.2))]
    names = ", ".join(draw.name(c.name) for c in columns)
    rows = ", ".join(f"({', '.join(draw.value(table, c) for c in columns)})" for _ in range(count))
    return f"{verb} INTO {draw.ref(table)} ({names}) VALUES {rows}"


def _may_be_left_out(column: Column) -> bool:
    return column.nullable or column.default is not None or "auto_increment" in column.extra


def _where(draw: Draw, table: Table) -> str:
    """Few rows: those of a key, or the first ones with a condition."""
    if table.key and draw.chance(0.6):
        column = table.column(table.key[0])
        return f"WHERE {draw.name(column.name)} {draw.of(('=', '=', '=', '>'))} {draw.value(table, column)}"
    column = draw.of(table.columns)
    condition = draw.of(("IS NOT NULL", "IS NULL", f"<> {draw.value(table, column)}"))
    order = f" ORDER BY {', '.join(draw.name(k) for k in table.key)}" if table.key else ""
    return f"WHERE {draw.name(column.name)} {condition}{order} LIMIT {draw.random.randint(1, 4)}"


def update(draw: Draw, table: Table) -> str | None:
    """UPDATE of one to three columns that are no part of the key."""
    columns = [c for c in table.plain if c.name not in table.key]
    if not columns:
        return None
    chosen = draw.random.sample(columns, min(len(columns), draw.random.randint(1, 3)))
    setting = ", ".join(f"{draw.name(c.name)} = {draw.value(table, c)}" for c in chosen)
    return f"UPDATE {draw.ref(table)} SET {setting} {_where(draw, table)}"


def delete(draw: Draw, table: Table) -> str:
    """DELETE of few rows."""
    return f"DELETE FROM {draw.ref(table)} {_where(draw, table)}"


def change(draw: Draw) -> str | None:
    """Any change to rows of any table."""
    table = draw.table()
    if table is None:
        return None
    way = draw.random.random()
    if way < 0.45:
        return insert(draw, table, draw.of((1, 1, 2, 5)))
    return update(draw, table) if way < 0.8 else delete(draw, table)


def _one(make: str) -> Kind:
    weights = {"insert": 10.0, "update": 8.0, "delete": 4.0, "replace": 2.0, "insert ignore": 1.0}

    def made(draw: Draw) -> list[str] | None:
        table = draw.table()
        if table is None:
            return None
        if make == "update":
            text = update(draw, table)
            return [text] if text is not None else None
        if make == "delete":
            return [delete(draw, table)]
        return [insert(draw, table, draw.of((1, 2, 6)), make.upper())]

    return Kind(make, weights[make], made)


def _key_update(draw: Draw) -> list[str] | None:
    table = draw.table(lambda t: bool(t.key))
    if table is None:
        return None
    column = table.column(draw.of(table.key))
    return [
        f"UPDATE {draw.ref(table)} SET {draw.name(column.name)} = {draw.value(table, column)} {_where(draw, table)}"
    ]


def _upsert(draw: Draw) -> list[str] | None:
    table = draw.table(lambda t: bool(t.key) and len(t.plain) > len(t.key))
    if table is None:
        return None
    column = draw.of([c for c in table.plain if c.name not in table.key])
    return [f"{insert(draw, table, 2)} ON DUPLICATE KEY UPDATE {draw.name(column.name)} = {draw.value(table, column)}"]


def _transaction(draw: Draw) -> list[str] | None:
    inside = [text for text in (change(draw) for _ in range(draw.random.randint(2, 5))) if text is not None]
    if not inside:
        return None
    if draw.chance(0.3) and len(inside) > 1:
        inside.insert(1, "SAVEPOINT half")
        inside.append("ROLLBACK TO SAVEPOINT half")
    begin = draw.of(("START TRANSACTION", "BEGIN"))
    return [begin, *inside, draw.of(("COMMIT", "COMMIT", "ROLLBACK"))]


def _copied_rows(draw: Draw) -> list[str] | None:
    """INSERT ... SELECT within one table, under other keys."""
    table = draw.table(lambda t: len(t.key) == 1 and "int" in t.column(t.key[0]).data_type)
    if table is None:
        return None
    names = [draw.name(c.name) for c in table.plain]
    chosen = [f"{n} + 100" if c.name in table.key else n for n, c in zip(names, table.plain, strict=True)]
    source = f"SELECT {', '.join(chosen)} FROM {draw.ref(table)} LIMIT 5"
    return [f"INSERT IGNORE INTO {draw.ref(table)} ({', '.join(names)}) {source}"]


KINDS = (
    *map(_one, ("insert", "update", "delete", "replace", "insert ignore")),
    Kind("key update", 3, _key_update),
    Kind("upsert", 2, _upsert),
    Kind("transaction", 6, _transaction),
    Kind("insert select", 1, _copied_rows),
)
