"""Whether the value of an expression depends on the collations of columns: it compares their text, or may do so.

What is listed passes text on, or makes of it what its characters and bytes alone decide; MariaDB 11.4 gives the same
result with each collation (tests/binlake/schema/test_compared_text.py asks it). All else counts as a comparison.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

#: The result has the collation of the text that goes in.
_PASSED = (
    exp.Paren,
    exp.Concat,
    exp.ConcatWs,
    exp.Left,
    exp.Right,
    exp.Substring,
    exp.Pad,
    exp.Trim,
    exp.Reverse,
    exp.Repeat,
    exp.Coalesce,
)
#: The result is a number, a condition, or text that has not the collation of what goes in.
_COUNTED = (
    exp.Length,
    exp.BitLength,
    exp.Ascii,
    exp.Hex,
    exp.MD5,
    exp.SHA,
    exp.SHA2,
    exp.ToBase64,
    exp.Collate,
    exp.Is,
    exp.And,
    exp.Or,
    exp.Xor,
    exp.Not,
    exp.Neg,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.IntDiv,
    exp.Mod,
    exp.Abs,
    exp.Round,
    exp.Floor,
    exp.Ceil,
)
_COUNTED_BY_NAME = frozenset({"octet_length", "crc32", "ord", "quote"})
_PASSED_BY_NAME = frozenset({"mid"})
#: Compared with a number, text is a number.
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
_NOT_TEXT = frozenset(
    {
        exp.DataType.Type.BIGINT,
        exp.DataType.Type.UBIGINT,
        exp.DataType.Type.DECIMAL,
        exp.DataType.Type.DOUBLE,
        exp.DataType.Type.FLOAT,
        exp.DataType.Type.DATE,
        exp.DataType.Type.DATETIME,
        exp.DataType.Type.TIME,
        exp.DataType.Type.BINARY,
        exp.DataType.Type.VARBINARY,
    }
)
_IN_SINGLE_QUOTES = re.compile(r"'(?:[^'\\]|''|\\.)*'", re.DOTALL)


class _ComparedError(Exception):
    """Text of the columns is compared, or it is not known that it is not."""


def compares_text(expression: str, columns: Collection[str]) -> bool:
    """Whether the value may depend on the collations of columns. ``expression``: as MySQL writes it; ``columns``: their
    names in lower case."""
    return _compares_text(expression, frozenset(columns))


@lru_cache(maxsize=256)
def _compares_text(expression: str, columns: frozenset[str]) -> bool:
    if '"' in _IN_SINGLE_QUOTES.sub("", expression):
        return True  # a session with ANSI_QUOTES has names in them
    try:
        tree: exp.Expression = sqlglot.parse_one(f"({expression})", dialect="mysql")  # type: ignore[assignment]
    except SqlglotError:
        return True
    try:
        _carries(tree, columns)
    except _ComparedError:
        return True
    return False


def _carries(node: exp.Expression, columns: frozenset[str]) -> bool:
    """Whether the result has the collation of one of the columns. Raises _ComparedError."""
    if isinstance(node, exp.Column):
        return node.name.lower() in columns
    if isinstance(node, exp.Command):
        raise _ComparedError
    parts = [(one, _carries(one, columns)) for one in node.iter_expressions() if isinstance(one, exp.Expression)]
    carried = any(carries for _, carries in parts)
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    if isinstance(node, _PASSED) or name in _PASSED_BY_NAME:
        return carried
    if isinstance(node, _COUNTED) or name in _COUNTED_BY_NAME:
        return False
    if isinstance(node, exp.If | exp.Case):
        return _branches_carry(node, columns)
    if isinstance(node, exp.Cast) and node.to.this in _NOT_TEXT:
        return False
    if isinstance(node, _COMPARED) and any(isinstance(one, exp.Literal) and one.is_number for one, _ in parts):
        return False
    if carried:
        raise _ComparedError
    return False


def _branches_carry(node: exp.If | exp.Case, columns: frozenset[str]) -> bool:
    """The same of the values of IF and CASE. CASE with a value compares it."""
    ifs: list[exp.Expression] = [node] if isinstance(node, exp.If) else node.args["ifs"]
    compared = [node.this, *(one.this for one in ifs)] if isinstance(node, exp.Case) and node.this is not None else []
    if any(_carries(one, columns) for one in compared):
        raise _ComparedError
    ends = [one.args.get("true") for one in ifs] + [node.args.get("false"), node.args.get("default")]
    return any(_carries(one, columns) for one in ends if one is not None)
