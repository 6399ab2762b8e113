"""What the Hive Metastore 3.1.3 refuses in what clients send (MetaStoreUtils)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from lakemetastore.model import Column

_DATABASE_NAME = re.compile(r"[A-Za-z0-9_]+")
_TABLE_NAME = re.compile(r"[A-Za-z0-9_/]+")
_FIRST_TOKEN = re.compile(r"\w+|\W+")
_NUMBERS = {
    name: rank for rank, name in enumerate(("tinyint", "smallint", "int", "bigint", "decimal", "float", "double"))
}
_STRINGS = frozenset({"string", "char", "varchar"})
_TIMES = frozenset({"date", "datetime", "timestamp"})
_NESTED = frozenset({"array", "map", "struct", "uniontype"})
_OTHERS = frozenset({"void", "boolean", "binary", "interval_year_month", "interval_day_time"})
_TYPES = _NUMBERS.keys() | _STRINGS | _TIMES | _NESTED | _OTHERS
_ALIASES = {"integer": "int", "numeric": "decimal"}
_FROM_DESERIALIZER = "<derived from deserializer>"


def is_database_name(name: str) -> bool:
    """Whether a database may have that name: ASCII letters, digits and underscores."""
    return _DATABASE_NAME.fullmatch(name) is not None


def is_table_name(name: str) -> bool:
    """Whether a table may have that name: ASCII letters, digits, underscores and slashes."""
    return _TABLE_NAME.fullmatch(name) is not None


def wrong_column(columns: Iterable[Column]) -> str | None:
    """``type: ...`` of the first column whose type does not begin with a type's name; None if there is none.

    The names of columns are not looked at, and neither is what comes after the first word of a type.
    """
    for column in columns:
        if column.type == _FROM_DESERIALIZER:
            continue
        first = _FIRST_TOKEN.match(column.type)
        if first is None or first[0] not in _TYPES:
            return f"type: {column.type}"
    return None


def incompatible_columns(before: Sequence[Column], after: Sequence[Column]) -> list[str]:
    """The columns, by place, to whose new type the Metastore does not let the old one change."""
    pairs = zip(before, after, strict=False)
    return [new.name for old, new in pairs if not _is_compatible(_first_word(old.type), _first_word(new.type))]


def _first_word(kind: str) -> str:
    word = re.split(r"\W", kind.lower(), maxsplit=1)[0]
    return _ALIASES.get(word, word)


def _is_compatible(old: str, new: str) -> bool:
    if old == new:
        return True
    if {old, new} & _NESTED or not {old, new} <= _TYPES:
        return False
    if old in _NUMBERS and new in _NUMBERS:
        return _NUMBERS[old] < _NUMBERS[new]
    if new in _STRINGS:
        return old in _STRINGS or old in _TIMES or old in _NUMBERS or old == "void"
    return old == "void" or (old in _STRINGS and new == "double")
