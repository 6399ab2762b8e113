"""Column types and definitions as SQL.

UUID, INET4 and INET6 columns and system-versioned tables are left out: they end Debezium's connector.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.programs.oracle.generate.literals import value

_INTEGERS = (
    "TINYINT",
    "SMALLINT",
    "MEDIUMINT",
    "INT",
    "BIGINT",
    "INT UNSIGNED",
    "BIGINT UNSIGNED",
    "TINYINT(1)",
    "INT(5) ZEROFILL",
)
_NUMBERS = (
    "DECIMAL(10,2)",
    "DECIMAL(5,0)",
    "DECIMAL(30,10)",
    "NUMERIC(8,3) UNSIGNED",
    "FLOAT",
    "DOUBLE",
    "BIT(1)",
    "BIT(9)",
)
_TEXTS = ("VARCHAR(40)", "VARCHAR(12)", "CHAR(8)", "TEXT", "TINYTEXT", "MEDIUMTEXT", "VARCHAR(300)")
_LISTS = ("ENUM('a','B','c d')", "SET('x','y','z')")
_BYTES = ("VARBINARY(20)", "BINARY(4)", "BLOB")
_TIMES = (
    "DATE",
    "DATETIME",
    "DATETIME(3)",
    "DATETIME(6)",
    "TIMESTAMP NULL",
    "TIMESTAMP(6) NULL",
    "TIME",
    "TIME(3)",
    "YEAR",
)
TYPES = (*_INTEGERS, *_NUMBERS, *_TEXTS, *_LISTS, *_BYTES, *_TIMES, "JSON")
#: Types of columns that may be part of a key.
KEY_TYPES = ("INT", "BIGINT", "BIGINT UNSIGNED", "VARCHAR(12)", "DATE", "DECIMAL(10,2)", "BINARY(4)", "SMALLINT")
#: A type -> types that hold all its values.
WIDER = {
    "tinyint": ("SMALLINT", "INT", "BIGINT"),
    "smallint": ("INT", "BIGINT"),
    "mediumint": ("INT", "BIGINT"),
    "int": ("BIGINT",),
    "float": ("DOUBLE",),
    "varchar": ("VARCHAR(400)", "TEXT", "LONGTEXT"),
    "char": ("VARCHAR(40)", "CHAR(30)"),
    "decimal": ("DECIMAL(38,12)",),
    "varbinary": ("VARBINARY(200)", "BLOB"),
    "datetime": ("DATETIME(6)",),
    "timestamp": ("TIMESTAMP(6) NULL",),
    "time": ("TIME(6)",),
    "enum": ("ENUM('a','B','c d','new')",),
    "set": ("SET('x','y','z','w')",),
    "text": ("MEDIUMTEXT", "LONGTEXT"),
    "blob": ("LONGBLOB",),
}


@dataclass(frozen=True)
class Definition:
    """A column's definition without its name: its type and what follows it."""

    kind: str
    rest: str

    def __str__(self) -> str:
        return f"{self.kind} {self.rest}".strip()


def drawn_definition(draw: random.Random, *, comment: bool = True) -> Definition:
    """Any type, with or without NULL, a constant default, a comment."""
    return definition_of(draw, draw.choice(TYPES), comment=comment)


def definition_of(draw: random.Random, kind: str, *, comment: bool = True) -> Definition:
    """A definition of that type."""
    words = []
    with_null = kind.endswith(" NULL")
    if not with_null and draw.random() < 0.4:
        words.append("NOT NULL")
    if draw.random() < 0.4 and not _without_default(kind):
        words.append(f"DEFAULT {value(draw, kind.lower().replace('numeric', 'decimal').removesuffix(' null'))}")
    if comment and draw.random() < 0.1:
        words.append(draw.choice(("COMMENT 'first, (second)'", "COMMENT 'it''s; -- no end'", "COMMENT '/* no */'")))
    return Definition(kind, " ".join(words))


def _without_default(kind: str) -> bool:
    return "TEXT" in kind or "BLOB" in kind or kind in ("JSON", "BIT(1)", "BIT(9)")
