"""Text of several collations: generated columns and partitions that compare it, and statements that give it others.

Values differ in case, accents and spaces at the end, so that each collation takes others of them for equal.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.programs.oracle.catalog import Column, Table
from tests.programs.oracle.generate.draw import Draw, Kind

_COLLATIONS = (
    "utf8mb4_bin",
    "utf8mb4_general_ci",
    "utf8mb4_nopad_bin",
    "utf8mb4_uca1400_ai_ci",
    "latin1_swedish_ci",
    "latin1_general_cs",
    "latin1_bin",
)
_VALUES = ("x", "X", "x ", "e", "E", "é", "y", "", "ss", "ß", "xy", " x", "x,e")
_WORDS = ("x", "X", "e", "ss")
_CONDITIONS = (
    "{0} = '{1}'",
    "{0} <> '{1}'",
    "{0} < '{1}'",
    "{0} <=> '{1}'",
    "{0} LIKE '{1}%'",
    "{0} IN ('{1}', 'y')",
    "{0} BETWEEN '{1}' AND 'y'",
    "{0} REGEXP '^{1}'",
    "CONCAT({0}, '{1}') = 'xX'",
    "CASE {0} WHEN '{1}' THEN 2 ELSE 1 END",
    "IF({0} = '{1}', 3, 4)",
    "STRCMP({0}, '{1}')",
    "FIND_IN_SET('{1}', {0})",
    "LOCATE('{1}', {0})",
    "INSTR({0}, '{1}')",
    "LENGTH({0})",
    "CHAR_LENGTH({0}) + 1",
    "{0} IS NULL",
    "{0} COLLATE utf8mb4_bin = '{1}'",
)
_TEXTS = (
    "CONCAT({0}, '-', id)",
    "LEFT({0}, 1)",
    "COALESCE({0}, '{1}')",
    "UPPER({0})",
    "REPLACE({0}, '{1}', 'z')",
    "GREATEST({0}, '{1}')",
    "NULLIF({0}, '{1}')",
    "HEX({0})",
    "TRIM(LEADING '{1}' FROM {0})",
    "IF({0} = '{1}', {0}, 'other')",
)
_IN_PARTITIONS = (
    " PARTITION BY LIST COLUMNS (s) (PARTITION p0 VALUES IN ('x', 'é'), PARTITION p1 VALUES IN ('y', '', 'ss'))",
    " PARTITION BY LIST COLUMNS (s) (PARTITION p0 VALUES IN ('x', 'e'), PARTITION p1 VALUES IN ('y', '', 'ss'))",
    " PARTITION BY LIST COLUMNS (s) (PARTITION p0 VALUES IN ('x', 'e'), PARTITION p1 VALUES IN ('X', 'y'))",
    " PARTITION BY LIST COLUMNS (s) (PARTITION p0 VALUES IN ('x', 'y'), PARTITION p1 DEFAULT)",
)


def _is_text(column: Column) -> bool:
    return column.data_type in ("varchar", "char", "text", "tinytext", "mediumtext", "enum")


def _collate(draw: Draw, column: Column | None = None) -> str:
    """COLLATE of a column, which its character set has; at times nothing."""
    charset = column.charset if column is not None else None
    fitting = [one for one in _COLLATIONS if charset is None or one.startswith(f"{charset}_")]
    return f" COLLATE {draw.of(fitting)}" if fitting and draw.chance(0.6) else ""


def _generated(draw: Draw, name: str, reads: str) -> str:
    kind, templates = draw.of((("INT", _CONDITIONS), ("INT", _CONDITIONS), ("VARCHAR(60)", _TEXTS)))
    expression = draw.of(templates).format(f"`{reads}`", draw.of(_WORDS))
    return f"{name} {kind} AS ({expression}) {draw.of(('VIRTUAL', 'STORED'))}"


def _rows(draw: Draw, count: int) -> str:
    def text() -> str:
        return "NULL" if draw.chance(0.1) else f"'{draw.of(_VALUES)}'"

    return ", ".join(
        f"({draw.random.randint(1, 40)}, '{draw.of(_VALUES)}', {text()}, {draw.of(('NULL', 1, 2))})"
        for _ in range(count)
    )


def _create(draw: Draw) -> list[str] | None:
    if len(draw.tables) >= 7:
        return None
    name = draw.fresh("q")
    table = draw.of(("", " COLLATE utf8mb4_bin", " CHARSET latin1 COLLATE latin1_swedish_ci", " CHARSET utf8mb4"))
    latin1 = draw.of(("", " CHARACTER SET latin1", " CHARACTER SET latin1 COLLATE latin1_bin"))
    generated = [_generated(draw, draw.fresh("g"), draw.of(("s", "l", "e"))) for _ in range(draw.of((1, 2, 3)))]
    parts = draw.of(_IN_PARTITIONS) if draw.chance(0.3) else ""
    columns = [
        "id INT NOT NULL",
        f"s VARCHAR(9){_collate(draw)} NOT NULL",
        f"l VARCHAR(9){latin1}",
        f"e ENUM('x','Y'){_collate(draw)}",
        *generated,
        f"PRIMARY KEY (id{', s' if parts else ''})",
    ]
    made = f"CREATE TABLE {name} ({', '.join(columns)}){table}{parts}"
    return [made, f"INSERT IGNORE INTO {name} (id, s, l, e) VALUES {_rows(draw, draw.random.randint(3, 9))}"]


def _compared(table: Table) -> bool:
    return [column.name for column in table.columns[:3]] == ["id", "s", "l"]


def _change(draw: Draw) -> list[str] | None:
    table = draw.table(_compared)
    if table is None:
        return None
    insert = f"REPLACE INTO {draw.ref(table)} (id, s, l, e) VALUES {_rows(draw, draw.of((1, 2)))}"
    update = f"UPDATE IGNORE {draw.ref(table)} SET l = '{draw.of(_VALUES)}' ORDER BY id LIMIT 2"
    return [draw.of((insert, insert, update))]


def _altering(clause: Callable[[Draw, Table, Column], str]) -> Callable[[Draw], list[str] | None]:
    def made(draw: Draw) -> list[str] | None:
        table = draw.table(_compared) or draw.table(lambda t: any(map(_is_text, t.plain)))
        if table is None:
            return None
        column = draw.of([one for one in table.plain if _is_text(one)])
        return [f"ALTER TABLE {draw.ref(table)} {clause(draw, table, column)}"]

    return made


def _column(draw: Draw, table: Table, column: Column) -> str:
    charset = f" CHARACTER SET {draw.of(('utf8mb4', 'latin1'))}" if draw.chance(0.2) else ""
    kind = column.type.replace("(9)", "(20)") if draw.chance(0.6) else column.type
    nullable = "" if column.nullable else " NOT NULL"
    definition = f"{kind}{charset}{'' if charset else _collate(draw, column)}{nullable}"
    if draw.chance(0.2) and column.name not in table.key:
        return f"CHANGE {draw.name(column.name)} {draw.name(draw.fresh('r'))} {definition}"
    return f"MODIFY {draw.name(column.name)} {definition}"


def _table(draw: Draw, table: Table, column: Column) -> str:
    collation = draw.of(_COLLATIONS)
    charset = collation.split("_")[0]
    return draw.of(
        (
            f"COLLATE {collation}",
            f"DEFAULT CHARACTER SET {charset}",
            f"CONVERT TO CHARACTER SET {charset}",
            f"CONVERT TO CHARACTER SET {charset} COLLATE {collation}",
            f"CONVERT TO CHARACTER SET utf8mb4{draw.of(('', ' COLLATE utf8mb4_nopad_bin'))}",
        )
    )


KINDS = (
    Kind("create compared", 2, _create),
    Kind("compared rows", 3, _change),
    Kind(
        "add compared column",
        2,
        _altering(lambda draw, table, column: f"ADD COLUMN {_generated(draw, draw.fresh('g'), column.name)}"),
    ),
    Kind("collation of column", 5, _altering(_column)),
    Kind("collation of table", 1.5, _altering(_table)),
)
