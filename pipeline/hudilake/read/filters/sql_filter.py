"""SQL conditions as filters: the WHERE text of MySQL, DuckDB or Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, TypeAlias

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hudilake.errors import ConfigError
from hudilake.read.filters.expressions import (
    And,
    Compare,
    Constant,
    Eq,
    Filter,
    In,
    IsNull,
    Not,
    Op,
    Or,
    StartsWith,
    Unknown,
    Value,
)
from hudilake.read.filters.sql_literals import comparisons, own_comparisons, parse_moment

_OPS: dict[type[exp.Expr], Op] = {
    exp.EQ: Op.EQ,
    exp.NEQ: Op.NE,
    exp.LT: Op.LT,
    exp.LTE: Op.LE,
    exp.GT: Op.GT,
    exp.GTE: Op.GE,
}
#: Of a condition that is read. 1,000 comparisons take 0.1 s, 4,000 take 1.4 s, 20,000 values of IN 2 s (measured).
MOST_CHARACTERS: Final = 250_000
MOST_PARTS: Final = 2_000
MOST_DEPTH: Final = 32
_BRACKET: Final = re.compile(r"[()]")
_JOINED: Final = re.compile(r"\b(?:and|or|not|xor)\b|\|\||&&|!(?!=)", re.IGNORECASE)
_MOMENTS = ("DATE", "TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPTZ", "TIMESTAMPLTZ", "DATETIME")


def parse_filter(text: str, schema: pa.Schema, dialect: str = "duckdb", by_engine: bool = False) -> Filter:
    """The filter of a WHERE condition.

    Args:
        text: the condition, without WHERE.
        schema: the columns it may name, meta fields included; the case of names is ignored.
        dialect: its dialect, a name of sqlglot (``duckdb``, ``mysql``, ``spark``).
        by_engine: whether DuckDB or Spark, whose casts may round, evaluates the condition at the end.

    Unsupported parts become ``Unknown``. Raises ConfigError for text that is not a condition, or too large a one: the
    parser takes more than linear time.
    """
    check_size(text)
    try:
        tree = sqlglot.parse_one(text, read=dialect, into=exp.Condition)
        return ConditionReader(schema, by_engine=by_engine).read(tree)
    except RecursionError:
        raise _too_large("its parts are nested too deep", text) from None
    except SqlglotError as error:
        raise ConfigError(
            f"the condition cannot be parsed: {explained(error)}", do_next="correct the condition", condition=text
        ) from error


def check_size(text: str) -> None:
    """Raise ConfigError for a condition with more characters, brackets in each other or parts than are read."""
    depth = deepest = 0
    for sign in _BRACKET.findall(text):
        depth += 1 if sign == "(" else -1
        deepest = max(deepest, depth)
    if len(text) > MOST_CHARACTERS:
        raise _too_large(f"it has {len(text)} characters, and {MOST_CHARACTERS} are read", text)
    if deepest > MOST_DEPTH:
        raise _too_large(f"it has {deepest} brackets in each other, and {MOST_DEPTH} are read", text)
    if (parts := len(_JOINED.findall(text)) + 1) > MOST_PARTS:
        raise _too_large(f"it joins {parts} parts, and {MOST_PARTS} are read", text)


def _too_large(why: str, text: str) -> ConfigError:
    return ConfigError(
        f"the condition is too large: {why}",
        do_next="write it shorter: name, IN (...) in place of many comparisons",
        condition=f"{text[:60]}...",
    )


@dataclass(frozen=True)
class ConditionReader:
    """Reads conditions over one table.

    Args:
        schema: its columns.
        qualifiers: the qualifiers of this table's columns, in lower case.
        unqualified: whether a bare name is this table's.
        by_engine: as in ``parse_filter``.
        others: names, in lower case, that are never this table's when they are bare.
    """

    schema: pa.Schema
    qualifiers: Collection[str] = ()
    unqualified: bool = True
    by_engine: bool = False
    others: Collection[str] = ()

    def read(self, node: exp.Expr) -> Filter:
        """The filter of a condition."""
        handler = _HANDLERS.get(type(node))
        result = handler(self, node) if handler is not None and _is_plain(node) else None
        return Unknown(node.sql()) if result is None else result

    def field(self, node: exp.Expr | None) -> pa.Field | None:
        """The column of a node; None for other nodes."""
        if not isinstance(node, exp.Column) or not _is_plain(node) or isinstance(node.this, exp.Star):
            return None
        table = node.table.lower()
        if not (table in self.qualifiers if table else self.unqualified and node.name.lower() not in self.others):
            return None
        named = [field for field in self.schema if field.name.lower() == node.name.lower()]
        return named[0] if len(named) == 1 else None

    def _logical(self, node: exp.Expr) -> Filter | None:
        kind = And if isinstance(node, exp.And) else Or
        return kind(tuple(self.read(part) for part in node.flatten()))

    def _negation(self, node: exp.Expr) -> Filter | None:
        return Not(self.read(node.this))

    def _inner(self, node: exp.Expr) -> Filter | None:
        return self.read(node.this)

    def _compare(self, node: exp.Expr) -> Filter | None:
        op, field, other = _OPS[type(node)], self.field(node.this), node.expression
        if field is None:
            op, field, other = op.flipped, self.field(node.expression), node.this
        return None if field is None else self._compared(field, op, other, node)

    def _compared(self, field: pa.Field, op: Op, literal: exp.Expr, node: exp.Expr) -> Filter | None:
        if isinstance(literal, exp.Null):
            return Constant(None)
        filters = self._all_compared(field, [(op, literal)], node)
        return None if filters is None else filters[0]

    def _all_compared(
        self, field: pa.Field, pairs: Sequence[tuple[Op, exp.Expr]], node: exp.Expr
    ) -> list[Filter] | None:
        values = [(op, literal_value(literal)) for op, literal in pairs]
        literals = [(op, value) for op, value in values if value is not None]
        if len(literals) < len(values):
            return None
        compare = comparisons if self.by_engine else own_comparisons
        filters = compare(field, literals, node.sql())
        return filters if len(filters) == len(pairs) else None

    def _between(self, node: exp.Expr) -> Filter | None:
        field = self.field(node.this)
        if field is None:
            return None
        filters = self._all_compared(field, [(Op.GE, node.args["low"]), (Op.LE, node.args["high"])], node)
        return None if filters is None else And(tuple(filters))

    def _membership(self, node: exp.Expr) -> Filter | None:
        field, items = self.field(node.this), node.expressions
        if field is None or not items:
            return None
        given = [item for item in items if not isinstance(item, exp.Null)]
        parts = self._all_compared(field, [(Op.EQ, item) for item in given], node)
        if parts is None:
            return None
        exact = [part.value for part in parts if isinstance(part, Compare)]
        filters: Filter = In(field.name, tuple(exact)) if len(exact) == len(parts) else Or(tuple(parts))
        return filters if len(given) == len(items) else Or((filters, Constant(None)))

    def _null_test(self, node: exp.Expr) -> Filter | None:
        field = self.field(node.this)
        return IsNull(field.name) if field is not None and isinstance(node.expression, exp.Null) else None

    def _like(self, node: exp.Expr) -> Filter | None:
        filters = self._unnegated_like(node)
        return Not(filters) if filters is not None and node.args.get("negate") else filters

    def _unnegated_like(self, node: exp.Expr) -> Filter | None:
        field, pattern = self.field(node.this), node.expression
        if field is None or not pa.types.is_string(field.type) or not _is_text(pattern) or "\\" in pattern.name:
            return None
        text = pattern.name
        prefix = text[: min((index for index in (text.find("%"), text.find("_")) if index >= 0), default=len(text))]
        if prefix == text:
            return Eq(field.name, text)
        starts = StartsWith(field.name, prefix)
        return starts if set(text[len(prefix) :]) == {"%"} else And((starts, Unknown(f"{field.name} like '{text}'")))

    def _starts_with(self, node: exp.Expr) -> Filter | None:
        field = self.field(node.this)
        if field is None or not pa.types.is_string(field.type) or not _is_text(node.expression):
            return None
        return StartsWith(field.name, node.expression.name)

    def _bare(self, node: exp.Expr) -> Filter | None:
        field = self.field(node)
        return Eq(field.name, True) if field is not None and pa.types.is_boolean(field.type) else None

    def _constant(self, node: exp.Expr) -> Filter | None:
        return Constant(None if isinstance(node, exp.Null) else bool(node.this))


_Handler: TypeAlias = "Callable[[ConditionReader, exp.Expr], Filter | None]"
_HANDLERS: dict[type[exp.Expr], _Handler] = {
    exp.And: ConditionReader._logical,
    exp.Or: ConditionReader._logical,
    exp.Not: ConditionReader._negation,
    exp.Paren: ConditionReader._inner,
    exp.Between: ConditionReader._between,
    exp.In: ConditionReader._membership,
    exp.Is: ConditionReader._null_test,
    exp.Like: ConditionReader._like,
    exp.StartsWith: ConditionReader._starts_with,
    exp.Column: ConditionReader._bare,
    exp.Boolean: ConditionReader._constant,
    exp.Null: ConditionReader._constant,
    **dict.fromkeys(_OPS, ConditionReader._compare),
}


#: Parts of a node that the handlers use; a node with other parts (an escape, ``symmetric``...) is not supported.
_READ_PARTS = {"this", "expression", "expressions", "low", "high", "negate", "table", "to", "is_string", "_type"}


def _is_plain(node: exp.Expr) -> bool:
    return all(name in _READ_PARTS for name, value in node.args.items() if value)


def explained(error: SqlglotError) -> str:
    """sqlglot's error message, without the marks around the position and the classes of its own parser."""
    details = getattr(error, "errors", None)
    if not details:
        return str(error)
    words = str(details[0].get("description")).partition(" but got <")[0]
    words = "something is missing" if words.startswith("Required keyword") else words
    return f"{words} at line {details[0].get('line')}, column {details[0].get('col')}"


def _is_text(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def literal_value(node: exp.Expr) -> Value | None:
    """A literal's value for ``sql_literals.comparisons``; None for other nodes."""
    if isinstance(node, exp.Paren):
        return literal_value(node.this)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else _number(str(node.this))
    if isinstance(node, exp.Neg):
        value = literal_value(node.this)
        return -value if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else None
    if isinstance(node, exp.Cast) and _is_plain(node) and _is_text(node.this) and node.to.this.name in _MOMENTS:
        rounds = bool(node.to.expressions)  # TIMESTAMP(0)
        return None if rounds else _cast(node.this.name, str(node.to.this.name))
    return None


def _cast(text: str, kind: str) -> Value | None:
    moment = parse_moment(text)
    is_date = moment is not None and len(text) == len("2024-02-29")
    return moment if kind != "DATE" or is_date else None


def _number(text: str) -> int | float | Decimal | None:
    try:
        if "e" in text.lower():
            return float(text)
        return Decimal(text) if "." in text else int(text)
    except (ValueError, InvalidOperation):
        return None
