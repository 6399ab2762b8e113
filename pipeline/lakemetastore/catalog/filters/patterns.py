"""The two dialects of LIKE.

The Hive Metastore up to 3 reads a regular expression of which only ``.`` (a character), ``.*`` (any text) and the
backslash are understood; Spark sends ``value.*``, ``.*value`` and ``.*value.*``. Version 4 and SQL use ``_`` and ``%``.
A pattern with ``.*`` is a regular expression. Of the others one with ``%`` or ``_`` is SQL's, where a dot is itself.
What is left is a regular expression again. So the one text that changes its meaning is an old client's pattern with
``%`` or ``_`` and without ``.*``: here they match more than themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_NO_CASE = "(?i)"
_ESCAPE = "\\"


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a pattern as SQL's LIKE writes it, and as a regular expression does."""

    sql: str
    expression: str


_ANY, _ONE = _Piece("%", ".*"), _Piece("_", ".")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that whole values match or do not match."""

    pieces: tuple[_Piece, ...]
    ignore_case: bool = False

    def matches(self, values: pa.StringArray) -> pa.BooleanArray:
        """Whether each value matches, (values,)."""
        sql = "".join(piece.sql for piece in self.pieces)
        if _ESCAPE * 2 not in sql:
            return pc.match_like(values, sql, ignore_case=self.ignore_case)
        # Arrow 26 reads an escaped backslash before the end of a pattern as another one.
        expression = "".join(piece.expression for piece in self.pieces)
        return pc.match_substring_regex(values, rf"(?s)\A{expression}\z", ignore_case=self.ignore_case)


def like(pattern: str) -> Pattern:
    """What a pattern of either dialect means. Case counts, unless it begins with ``(?i)``."""
    if pattern.startswith(_NO_CASE):
        return Pattern(tuple(_of_expression(pattern.removeprefix(_NO_CASE))), ignore_case=True)
    if ".*" in pattern or not {"%", "_"} & set(pattern):
        return Pattern(tuple(_of_expression(pattern)))
    return Pattern(tuple(_of_sql(pattern)))


def _of_expression(text: str) -> Iterator[_Piece]:
    position = 0
    while position < len(text):
        if text.startswith(".*", position):
            yield _ANY
            position += 2
        elif text[position] == _ESCAPE and position + 1 < len(text):
            yield _literal(text[position + 1])
            position += 2
        else:
            yield _ONE if text[position] == "." else _literal(text[position])
            position += 1


def _of_sql(text: str) -> Iterator[_Piece]:
    special = {"%": _ANY, "_": _ONE}
    position = 0
    while position < len(text):
        if text[position] == _ESCAPE and position + 1 < len(text):
            yield _literal(text[position + 1])
            position += 2
        else:
            yield special.get(text[position]) or _literal(text[position])
            position += 1


def _literal(character: str) -> _Piece:
    return _Piece(_ESCAPE + character if character in ("%", "_", _ESCAPE) else character, re.escape(character))
