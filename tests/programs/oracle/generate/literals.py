"""Values of columns as SQL literals: small ones that repeat, and the edges of each type.

FLOAT values have few digits, because Debezium's snapshot rounds to six. YEAR 0 is left out, because it ends a snapshot.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from tests.programs.oracle.catalog import Column

_WORDS = (
    "",
    "a",
    "B",
    "Ada",
    "Łukasz",
    "naïve",
    "雪",
    "🧪",
    "O''Brien",
    'q"q',
    "a,b",
    "x:y",
    "tab\tbed",
    " lead",
    "12",
    "-3.5",
)
_LATIN = ("", "a", "B", "Ada", "naïve", "O''Brien", "12", "-3.5", "1e2", " x ")
_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_BYTES = ("", "00", "00ff", "41", "deadbeef", "c3a9", "20")
_DATES = ("1000-01-01", "1969-12-31", "1970-01-01", "2000-02-29", "2024-02-29", "2038-01-19", "9999-12-31")
_CLOCKS = ("00:00:00", "23:59:59", "12:34:56", "00:00:01")
_TIMES = ("00:00:00", "-838:59:59", "838:59:59", "12:34:56", "-00:00:01", "100:00:00")
_JSON = ("{}", "[]", '{"a": 1, "b": [true, null]}', '"text"', "12.50", '{"é": "雪"}')


def literal(draw: random.Random, column: Column) -> str:
    """A value of the column as SQL; NULL at times where that is allowed."""
    if column.nullable and draw.random() < 0.15:
        return "NULL"
    return value(draw, column.type, column.charset)


def key_literal(draw: random.Random, column: Column) -> str:
    """A value out of few, so that statements meet the same rows."""
    if column.data_type in _BITS or column.data_type in ("decimal", "float", "double"):
        return str(draw.randint(1, 12))
    return literal(draw, column)


def value(draw: random.Random, kind: str, charset: str | None = "utf8mb4") -> str:
    """A value of a type that is not NULL."""
    name = re.split(r"[\s(]", kind, maxsplit=1)[0]
    inner = _inner(kind)
    if name in _BITS:
        return _integer(draw, _BITS[name], "unsigned" in kind)
    makers: dict[str, Callable[[], str]] = {
        "decimal": lambda: _decimal(draw, inner, "unsigned" in kind),
        "float": lambda: draw.choice(("0", "1", "-1.5", "0.25", "100", "12345")),
        "double": lambda: draw.choice(("0", "1", "-1.5", "0.1", "1e300", "-2.5e-10", "123456.789")),
        "bit": lambda: f"b'{draw.getrandbits(int(inner or 1)):b}'",
        "year": lambda: draw.choice(("1901", "1970", "2024", "2155")),
        "date": lambda: f"'{draw.choice(_DATES)}'",
        "datetime": lambda: f"'{draw.choice(_DATES)} {draw.choice(_CLOCKS)}{_fraction(draw, inner)}'",
        "timestamp": lambda: f"'{draw.choice(_DATES[2:5])} {draw.choice(_CLOCKS[1:3])}{_fraction(draw, inner)}'",
        "time": lambda: _time(draw, inner),
        "enum": lambda: draw.choice(_options(inner)),
        "set": lambda: _members(draw, _options(inner)),
        # What MariaDB makes of JSON; a constraint says that it is valid.
        "longtext": lambda: f"'{draw.choice(_JSON)}'",
        "json": lambda: f"'{draw.choice(_JSON)}'",
    }
    if name in makers:
        return makers[name]()
    if name.endswith(("blob", "binary")):
        return _bytes(draw, inner)
    return _text(draw, inner, charset)


def _inner(kind: str) -> str:
    found = re.search(r"\((.*)\)", kind)
    return found[1] if found else ""


def _integer(draw: random.Random, bits: int, unsigned: bool) -> str:
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return str(draw.choice((low, high, 0, 1, 2, 7, draw.randint(0, 100), draw.randint(0, 100))))


def _decimal(draw: random.Random, inner: str, unsigned: bool) -> str:
    precision, _, scale = inner.partition(",")
    whole, digits = int(precision) - int(scale or 0), int(scale or 0)
    left = draw.choice(("0", "9" * min(whole, 30), str(draw.randint(0, 99))[: max(whole, 1)])) if whole else "0"
    right = draw.choice(("0" * digits, "9" * digits, "5" + "0" * (digits - 1))) if digits else ""
    sign = "" if unsigned else draw.choice(("", "", "-"))
    return f"{sign}{left}.{right}" if right else f"{sign}{left}"


def _fraction(draw: random.Random, inner: str) -> str:
    digits = int(inner or 0)
    return "." + draw.choice(("0" * digits, "9" * digits, "123456"[:digits])) if digits else ""


def _time(draw: random.Random, inner: str) -> str:
    text = draw.choice(_TIMES)
    return f"'{text}{'' if '838' in text else _fraction(draw, inner)}'"


def _options(inner: str) -> list[str]:
    return re.findall(r"'(?:[^']|'')*'", inner)


def _members(draw: random.Random, options: list[str]) -> str:
    chosen = [o.strip("'") for o in options if draw.random() < 0.5]
    return f"'{','.join(chosen)}'"


def _bytes(draw: random.Random, inner: str) -> str:
    text = draw.choice(_BYTES)
    return f"x'{text[: 2 * int(inner)] if inner else text}'"


def _text(draw: random.Random, inner: str, charset: str | None) -> str:
    word = draw.choice(_WORDS if (charset or "").startswith("utf8mb4") else _LATIN)
    length = int(inner) if inner.isdigit() else 60
    return "'" + word.replace("''", "\0")[:length].replace("\0", "''") + "'"
