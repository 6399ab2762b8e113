"""ALTER TABLE of columns, keys, indexes and character sets."""

from __future__ import annotations

from collections.abc import Callable

from tests.programs.oracle.catalog import Column, Table
from tests.programs.oracle.generate.draw import Draw, Kind
from tests.programs.oracle.generate.types import KEY_TYPES, TYPES, WIDER, Definition, definition_of, drawn_definition

#: Makes a clause of ALTER TABLE; None where the table does not fit.
Clause = Callable[[Draw, Table], str | None]


def alter(draw: Draw, table: Table, *clauses: str) -> str:
    """ALTER TABLE with these clauses."""
    return f"{draw.of(('ALTER TABLE', 'alter table'))} {draw.ref(table)} {', '.join(clauses)}"


def add_column(draw: Draw, table: Table) -> str:
    """ADD COLUMN at any place."""
    word = draw.of(("ADD COLUMN", "ADD", "ADD COLUMN IF NOT EXISTS"))
    return f"{word} {draw.name(draw.fresh('c'))} {drawn_definition(draw.random)}{_place(draw, table)}"


def _place(draw: Draw, table: Table) -> str:
    return draw.of(("", "", "", " FIRST", f" AFTER {draw.name(draw.of(table.columns).name)}"))


def _add_several(draw: Draw, table: Table) -> str:
    """Only the last may be NOT NULL: Debezium takes the columns after one for NOT NULL too, and sends 0 for NULL."""
    first, last = drawn_definition(draw.random, comment=False), drawn_definition(draw.random)
    nullable = str(first).replace("NOT NULL", "").strip()
    return f"ADD COLUMN ({draw.fresh('c')} {nullable}, {draw.fresh('c')} {last})"


def _add_time(draw: Draw, table: Table) -> str:
    digits = draw.of(("", "", "(6)"))
    kind = draw.of(("TIMESTAMP", "DATETIME"))
    update = f" ON UPDATE CURRENT_TIMESTAMP{digits}" if draw.chance(0.3) else ""
    return f"ADD COLUMN {draw.fresh('c')} {kind}{digits} NOT NULL DEFAULT CURRENT_TIMESTAMP{digits}{update}"


def _add_generated(draw: Draw, table: Table) -> str | None:
    numbers = [c.name for c in table.plain if c.data_type in ("tinyint", "smallint", "mediumint", "int", "decimal")]
    texts = [c.name for c in table.plain if c.data_type in ("varchar", "char")]
    choices = [("VARCHAR(80)", f"CONCAT(`{name}`, '-', 1)") for name in texts]
    choices += [("VARCHAR(80)", f"UPPER(`{name}`)") for name in texts]
    choices += [("DECIMAL(40,4)", f"`{name}` * 2 + 1") for name in numbers]
    choices += [("BIGINT", f"COALESCE(`{name}`, 0) DIV 3") for name in numbers]
    if not choices:
        return None
    kind, expression = draw.of(choices)
    words = draw.of((("AS", "VIRTUAL"), ("GENERATED ALWAYS AS", "STORED"), ("AS", "PERSISTENT")))
    return f"ADD COLUMN {draw.fresh('g')} {kind} {words[0]} ({expression}) {words[1]}"


def _drop_column(draw: Draw, table: Table) -> str | None:
    free = [c for c in table.columns if c.name not in table.key]
    if len(table.columns) < 3 or not free:
        return None
    return f"{draw.of(('DROP COLUMN', 'DROP', 'DROP COLUMN IF EXISTS'))} {draw.name(draw.of(free).name)}"


def _rename_column(draw: Draw, table: Table) -> str | None:
    column = draw.column(table)
    return f"RENAME COLUMN {draw.name(column.name)} TO {draw.name(draw.fresh('r'))}" if column is not None else None


def _swap_columns(draw: Draw, table: Table) -> list[str] | None:
    """Two columns get each other's name, by way of a third: Debezium ends at a swap in one statement."""
    one = draw.column(table)
    other = draw.column(table, lambda c: one is not None and c.name != one.name)
    if one is None or other is None:
        return None
    names = (one.name, away := draw.fresh("away")), (other.name, one.name), (away, other.name)
    return [alter(draw, table, f"RENAME COLUMN `{old}` TO `{new}`") for old, new in names]


def _rename_again(draw: Draw, table: Table) -> str | None:
    """DROP of a column and RENAME of another to its name."""
    one = draw.column(table)
    other = draw.column(table, lambda c: one is not None and c.name != one.name)
    if one is None or other is None:
        return None
    return f"DROP COLUMN `{one.name}`, RENAME COLUMN `{other.name}` TO `{one.name}`"


def _redefined(draw: Draw, table: Table, column: Column, definition: Definition) -> str:
    if draw.chance(0.35):
        name = draw.fresh("r") if draw.chance(0.5) else column.name
        return (
            f"CHANGE COLUMN {draw.name(column.name)} {draw.name(name)} {definition}{_place_after(draw, table, column)}"
        )
    return f"MODIFY COLUMN {draw.name(column.name)} {definition}{_place_after(draw, table, column)}"


def _place_after(draw: Draw, table: Table, column: Column) -> str:
    others = [c.name for c in table.columns if c.name != column.name]
    return draw.of(("", "", " FIRST", f" AFTER {draw.name(draw.of(others))}")) if others else ""


def _widen(draw: Draw, table: Table) -> str | None:
    column = draw.column(table, lambda c: c.data_type in WIDER and "unsigned" not in c.type)
    if column is None:
        return None
    kind = draw.of(WIDER[column.data_type])
    return _redefined(draw, table, column, Definition(kind, "" if column.nullable else "NOT NULL"))


def _retype(draw: Draw, table: Table) -> str | None:
    column = draw.column(table)
    return _redefined(draw, table, column, definition_of(draw.random, draw.of(TYPES))) if column is not None else None


def _reorder(draw: Draw, table: Table) -> str | None:
    column = draw.column(table)
    if column is None:
        return None
    definition = Definition(column.type, "" if column.nullable else "NOT NULL")
    return f"MODIFY {draw.name(column.name)} {definition}{draw.of((' FIRST', f' AFTER `{table.columns[0].name}`'))}"


def _default(draw: Draw, table: Table) -> str | None:
    column = draw.column(table, lambda c: not c.data_type.endswith(("text", "blob", "json")))
    if column is None:
        return None
    word = f"ALTER COLUMN {draw.name(column.name)}"
    return draw.of((f"{word} DROP DEFAULT", f"{word} SET DEFAULT {draw.value(table, column)}"))


def _add_key(draw: Draw, table: Table) -> str | None:
    if table.key:
        return None
    column = draw.column(table, lambda c: not c.data_type.endswith(("text", "blob", "json")))
    return f"ADD PRIMARY KEY ({draw.name(column.name)})" if column is not None else None


def _new_key(draw: Draw, table: Table) -> str | None:
    """DROP and ADD PRIMARY KEY in one statement, with one more column mostly, so that rows stay distinct."""
    column = draw.column(table, lambda c: not c.data_type.endswith(("text", "blob", "json")))
    if not table.key or column is None:
        return None
    columns = [*table.key, column.name] if draw.chance(0.6) else [column.name]
    return f"DROP PRIMARY KEY, ADD PRIMARY KEY ({', '.join(map(draw.name, columns))})"


def _key_by_number(draw: Draw, table: Table) -> str | None:
    """Another key by a new column with numbers."""
    if not table.key or any("auto_increment" in c.extra for c in table.columns):
        return None
    name = draw.fresh("k")
    return f"ADD COLUMN {name} BIGINT NOT NULL AUTO_INCREMENT FIRST, DROP PRIMARY KEY, ADD PRIMARY KEY ({name})"


def _change_key_column(draw: Draw, table: Table) -> str | None:
    if not table.key:
        return None
    column = table.column(draw.of(table.key))
    kind = draw.of(("BIGINT", "VARCHAR(40)", "INT", "DECIMAL(20,2)", *KEY_TYPES)) if draw.chance(0.5) else column.type
    name = draw.fresh("k") if draw.chance(0.5) else column.name
    return f"CHANGE {draw.name(column.name)} {draw.name(name)} {kind} NOT NULL"


def _drop_key(draw: Draw, table: Table) -> str | None:
    return "DROP PRIMARY KEY" if table.key else None


def _index(draw: Draw, table: Table) -> str | None:
    if table.indexes and draw.chance(0.4):
        return f"DROP INDEX {draw.name(draw.of(sorted(table.indexes)))}"
    column = draw.column(table, lambda c: not c.data_type.endswith(("text", "blob", "json")))
    unique = draw.of(("INDEX", "INDEX", "UNIQUE KEY"))
    return f"ADD {unique} {draw.fresh('i')} ({draw.name(column.name)})" if column is not None else None


def _charset(draw: Draw, table: Table) -> str:
    charset = draw.of(("utf8mb4", "utf8mb4", "latin1", "utf8mb3"))
    return draw.of((f"CONVERT TO CHARACTER SET {charset}", f"DEFAULT CHARACTER SET {charset}"))


def _column_charset(draw: Draw, table: Table) -> str | None:
    column = draw.column(table, lambda c: c.data_type in ("varchar", "char", "text"))
    charset = draw.of(("utf8mb4", "latin1", "utf8mb4 COLLATE utf8mb4_bin"))
    return f"MODIFY {draw.name(column.name)} {column.type} CHARACTER SET {charset}" if column is not None else None


def _options(draw: Draw, table: Table) -> str:
    return draw.of(
        ("COMMENT = 'DROP COLUMN x;'", "ENGINE = InnoDB", "AUTO_INCREMENT = 500", "FORCE", "ROW_FORMAT = COMPACT")
    )


#: name -> weight, clause.
CLAUSES: dict[str, tuple[float, Clause]] = {
    "add column": (5, add_column),
    "add columns": (1, _add_several),
    "add time column": (1, _add_time),
    "add generated column": (1.5, _add_generated),
    "drop column": (3, _drop_column),
    "rename column": (2, _rename_column),
    "drop and rename column": (1, _rename_again),
    "widen column": (2.5, _widen),
    "retype column": (3, _retype),
    "reorder column": (1, _reorder),
    "default of column": (1, _default),
    "add primary key": (1.5, _add_key),
    "new primary key": (1.5, _new_key),
    "key by number": (0.7, _key_by_number),
    "change key column": (1.2, _change_key_column),
    "drop primary key": (0.7, _drop_key),
    "index": (1.5, _index),
    "charset of table": (0.8, _charset),
    "charset of column": (0.8, _column_charset),
    "table options": (0.7, _options),
}


def _kind(name: str) -> Kind:
    weight, clause = CLAUSES[name]

    def made(draw: Draw) -> list[str] | None:
        table = draw.table()
        text = clause(draw, table) if table is not None else None
        if table is None or text is None:
            return None
        return [alter(draw, table, text)]

    return Kind(name, weight, made)


def _several(draw: Draw) -> list[str] | None:
    table = draw.table()
    if table is None:
        return None
    names = draw.random.sample(["add column", "drop column", "rename column", "widen column", "index"], 2)
    clauses = [text for text in (CLAUSES[name][1](draw, table) for name in names) if text is not None]
    return [alter(draw, table, *clauses)] if clauses else None


def _swap(draw: Draw) -> list[str] | None:
    table = draw.table()
    return _swap_columns(draw, table) if table is not None else None


def _lenient(draw: Draw) -> list[str] | None:
    """A conversion with loss, which the server carries out without its strict mode."""
    table = draw.table()
    text = _retype(draw, table) if table is not None else None
    if table is None or text is None:
        return None
    return ["SET SESSION sql_mode = ''", alter(draw, table, text), "SET SESSION sql_mode = DEFAULT"]


KINDS = (
    *map(_kind, CLAUSES),
    Kind("several clauses", 2, _several),
    Kind("swap columns", 1, _swap),
    Kind("lenient retype", 2, _lenient),
)
