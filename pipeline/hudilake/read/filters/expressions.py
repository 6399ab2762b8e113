"""Filters: the conditions of a reader, as values.

The logic has three values, as SQL: a comparison with null is neither true nor false, and a row passes where its filter
is true. Text compares by code points (as UTF-8 bytes do), bytes unsigned; NaN equals itself and is greater than every
number, -0.0 equals 0.0, as in Spark and DuckDB. Numbers compare by value whatever their types: ``Eq("id",
Decimal("3.5"))`` on a whole-number column is never true.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

#: A literal. Datetimes without a zone are UTC.
Value: TypeAlias = bool | int | float | Decimal | str | bytes | date | datetime | time


class Op(StrEnum):
    """The comparisons."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def negated(self) -> Op:
        """The comparison that is true for exactly the other values, except null."""
        return _NEGATED[self]

    @property
    def flipped(self) -> Op:
        """The same with its sides exchanged."""
        return _FLIPPED.get(self, self)


_NEGATED = {Op.EQ: Op.NE, Op.NE: Op.EQ, Op.LT: Op.GE, Op.GE: Op.LT, Op.GT: Op.LE, Op.LE: Op.GT}
_FLIPPED = {Op.LT: Op.GT, Op.GT: Op.LT, Op.LE: Op.GE, Op.GE: Op.LE}


@dataclass(frozen=True)
class Compare:
    """A top-level column against a literal. ``Eq``, ``Ne``, ``Lt``, ``Le``, ``Gt`` and ``Ge`` make one."""

    column: str
    op: Op
    value: Value

    def __str__(self) -> str:
        return f"{self.column} {self.op} {_text(self.value)}"


def Eq(column: str, value: Value) -> Compare:
    """Equal.

    Example:
        >>> sorted(orders.scan(["id"], hudilake.Eq("qty", 2)).to_arrow().column("id").to_pylist())
        [2]
    """
    return Compare(column, Op.EQ, value)


def Ne(column: str, value: Value) -> Compare:
    """Not equal.

    Example:
        >>> sorted(orders.scan(["id"], hudilake.Ne("qty", 2)).to_arrow().column("id").to_pylist())
        [1, 3]
    """
    return Compare(column, Op.NE, value)


def Lt(column: str, value: Value) -> Compare:
    """Less.

    Example:
        >>> sorted(orders.scan(["id"], hudilake.Lt("qty", 4)).to_arrow().column("id").to_pylist())
        [2]
    """
    return Compare(column, Op.LT, value)


def Le(column: str, value: Value) -> Compare:
    """Less or equal.

    Example:
        >>> sorted(orders.scan(["id"], hudilake.Le("qty", 4)).to_arrow().column("id").to_pylist())
        [1, 2]
    """
    return Compare(column, Op.LE, value)


def Gt(column: str, value: Value) -> Compare:
    """Greater.

    Example:
        >>> sorted(orders.scan(["id"], hudilake.Gt("qty", 4)).to_arrow().column("id").to_pylist())
        [3]
    """
    return Compare(column, Op.GT, value)


def Ge(column: str, value: Value) -> Compare:
    """Greater or equal.

    Example:
        >>> sorted(orders.scan(["id"], hudilake.Ge("qty", 4)).to_arrow().column("id").to_pylist())
        [1, 3]
    """
    return Compare(column, Op.GE, value)


@dataclass(frozen=True)
class In:
    """Equal to one of the values; with ``negated``, different from all of them.

    Example:
        >>> sorted(orders.scan(["id"], hudilake.In("id", (1, 3, 9))).to_arrow().column("id").to_pylist())
        [1, 3]
    """

    column: str
    values: tuple[Value, ...]
    negated: bool = False

    @cached_property
    def distinct(self) -> tuple[Value, ...]:
        """The values, none twice."""
        return tuple(dict.fromkeys(self.values))

    def __str__(self) -> str:
        shown = ", ".join(map(_text, self.values[:5])) + (", ..." if len(self.values) > 5 else "")
        return f"{self.column} {'not ' if self.negated else ''}in ({shown})"


@dataclass(frozen=True)
class IsNull:
    """Null; with ``negated``, not null (``IsNotNull``).

    Example:
        >>> sorted(orders.scan(["id"], hudilake.IsNull("qty")).to_arrow().column("id").to_pylist())
        []
    """

    column: str
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.column} is {'not ' if self.negated else ''}null"


def IsNotNull(column: str) -> IsNull:
    """Not null.

    Example:
        >>> sorted(orders.scan(["id"], hudilake.IsNotNull("qty")).to_arrow().column("id").to_pylist())
        [1, 2, 3]
    """
    return IsNull(column, negated=True)


@dataclass(frozen=True)
class StartsWith:
    """Text or bytes that begin so; with ``negated``, that do not.

    Example:
        >>> sorted(orders.scan(["id"], hudilake.StartsWith("day", "d")).to_arrow().column("id").to_pylist())
        [1, 2, 3]
    """

    column: str
    prefix: str | bytes
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.column} {'does not start' if self.negated else 'starts'} with {_text(self.prefix)}"


@dataclass(frozen=True)
class And:
    """All of the parts; true if there are none.

    Example:
        >>> both = hudilake.And((hudilake.Gt("qty", 2), hudilake.Lt("id", 3)))
        >>> sorted(orders.scan(["id"], both).to_arrow().column("id").to_pylist())
        [1]
    """

    parts: tuple[Filter, ...]

    def __str__(self) -> str:
        return "(" + " and ".join(map(str, self.parts)) + ")" if self.parts else "true"


@dataclass(frozen=True)
class Or:
    """Any of the parts; false if there are none.

    Example:
        >>> any_of = hudilake.Or((hudilake.Eq("id", 1), hudilake.Eq("qty", 2)))
        >>> sorted(orders.scan(["id"], any_of).to_arrow().column("id").to_pylist())
        [1, 2]
    """

    parts: tuple[Filter, ...]

    def __str__(self) -> str:
        return "(" + " or ".join(map(str, self.parts)) + ")" if self.parts else "false"


@dataclass(frozen=True)
class Not:
    """The opposite.

    Example:
        >>> sorted(orders.scan(["id"], hudilake.Not(hudilake.Eq("id", 1))).to_arrow().column("id").to_pylist())
        [2, 3]
    """

    part: Filter

    def __str__(self) -> str:
        return f"not {self.part}"


@dataclass(frozen=True)
class Constant:
    """The same for every row; None is SQL's unknown, which passes no row, negated or not."""

    value: bool | None

    def __str__(self) -> str:
        return "null" if self.value is None else str(self.value).lower()


@dataclass(frozen=True)
class Unknown:
    """An unsupported condition: it skips nothing, and the caller must evaluate it."""

    text: str

    def __str__(self) -> str:
        return f"[{self.text}]"


Filter: TypeAlias = Compare | In | IsNull | StartsWith | And | Or | Not | Constant | Unknown
TRUE, FALSE = Constant(True), Constant(False)


def normalised(part: Filter, negate: bool = False) -> Filter:
    """The filter without ``Not`` and without ``Constant(None)``, true for exactly the same rows.

    Negations move to the leaves (valid in three values); a remaining "unknown" passes no row, as false does.
    """
    if isinstance(part, Not):
        return normalised(part.part, not negate)
    if isinstance(part, And | Or):
        kind = And if isinstance(part, And) is not negate else Or
        return _joined(kind, [normalised(inner, negate) for inner in part.parts])
    if isinstance(part, Constant):
        return FALSE if part.value is None else Constant(part.value is not negate)
    return _negated(part) if negate else part


def _negated(leaf: Compare | In | IsNull | StartsWith | Unknown) -> Filter:
    if isinstance(leaf, Compare):
        return Compare(leaf.column, leaf.op.negated, leaf.value)
    if isinstance(leaf, In):
        return In(leaf.column, leaf.values, not leaf.negated)
    if isinstance(leaf, IsNull):
        return IsNull(leaf.column, not leaf.negated)
    if isinstance(leaf, StartsWith):
        return StartsWith(leaf.column, leaf.prefix, not leaf.negated)
    return Unknown(f"not {leaf.text}")


def _joined(kind: type[And | Or], parts: list[Filter]) -> Filter:
    """Flattens nested parts of one type and folds constants."""
    neutral, absorbing = (TRUE, FALSE) if kind is And else (FALSE, TRUE)
    flat = [item for part in parts for item in (part.parts if isinstance(part, kind) else (part,))]
    items = [item for item in dict.fromkeys(flat) if item != neutral]
    if absorbing in items:
        return absorbing
    if len(items) == 1:
        return items[0]
    return kind(tuple(items)) if items else neutral


def all_of(*parts: Filter) -> Filter:
    """The conjunction, normalised."""
    return normalised(And(parts))


def leaves(part: Filter) -> Iterator[Compare | In | IsNull | StartsWith | Constant | Unknown]:
    """All parts except And, Or and Not."""
    if isinstance(part, And | Or):
        for inner in part.parts:
            yield from leaves(inner)
    elif isinstance(part, Not):
        yield from leaves(part.part)
    else:
        yield part


def columns_of(part: Filter) -> tuple[str, ...]:
    """The columns a filter names, each once, in their order."""
    named = (leaf.column for leaf in leaves(part) if not isinstance(leaf, Constant | Unknown))
    return tuple(dict.fromkeys(named))


def unknown_parts(part: Filter) -> tuple[str, ...]:
    """The texts of the unsupported parts."""
    return tuple(dict.fromkeys(leaf.text for leaf in leaves(part) if isinstance(leaf, Unknown)))


def _text(value: Value) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return str(value).lower() if isinstance(value, bool) else str(value)
