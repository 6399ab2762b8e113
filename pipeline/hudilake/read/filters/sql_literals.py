"""Comparisons of an SQL engine: the exact ones, and the rounding range of the others.

An engine casts both sides to one type before it compares, and some of those casts round: ``id = 1e18`` compares as
doubles. Without rounding the comparison is exact. If a cast may round, the filter is a range around the literal, joined
with ``Unknown``: it is wide enough for every row the engine may find, and the engine evaluates the condition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import cast

import numpy as np
import pyarrow as pa

from hudilake.errors import UnsupportedError
from hudilake.read.filters.expressions import And, Compare, Filter, Op, Unknown, Value
from hudilake.read.filters.literals import position

_INTEGER = re.compile(r"[+-]?\d{1,38}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d{1,38}(\.\d{0,38})?|\.\d{1,38})", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|\+00(:00)?)?)?", re.ASCII)
_WIDE = Context(prec=120)
_DOWN, _UP = Context(prec=45, rounding=ROUND_FLOOR), Context(prec=45, rounding=ROUND_CEILING)
#: Digits that a double always holds exactly, and that never overflow an engine's decimals beside a 64-bit number.
_SAFE_DIGITS = 15
_DECIMAL_DIGITS, _LONG_DIGITS = 38, 19
_LONGEST_INTEGER = 100


def comparisons(field: pa.Field, pairs: Sequence[tuple[Op, Value]], text: str) -> list[Filter]:
    """The filters for ``field op value`` as DuckDB and Spark evaluate them, in a session whose time zone is UTC.

    Args:
        field: the column.
        pairs: comparisons and literals: int and Decimal for numbers as written, float for those with an exponent, text
            for everything in quotes. An engine brings all of them to one type (the items of a list, both ends of a
            range), so one that rounds makes the others round.
        text: their text in the query.
    """
    candidates = [_exact_value(field.type, value) for _, value in pairs]
    exact = [value for value in candidates if value is not None]
    if len(exact) == len(pairs) and _fit_together(field.type, exact):
        return [Compare(field.name, op, value) for (op, _), value in zip(pairs, exact, strict=True)]
    numbers = [cast(float, value) for _, value in pairs if _compares(field.type, value)]
    if len(numbers) < len(pairs):
        return [Unknown(text)]
    return [zone(field, op, number, text) for (op, _), number in zip(pairs, numbers, strict=True)]


def own_comparisons(field: pa.Field, pairs: Sequence[tuple[Op, Value]], text: str) -> list[Filter]:
    """The same without an engine: exact, except that a literal for a column of floats is the nearest double. A FLOAT
    is widened to compare with it, so no FLOAT equals 0.1. A literal in quotes is the nearest value of the column's
    type.

    Arguments as ``comparisons``.
    """
    if not pa.types.is_floating(field.type):
        candidates = [value if _compares(field.type, value) else _exact_value(field.type, value) for _, value in pairs]
    else:
        candidates = [_nearest(field.type, value) for _, value in pairs]
    exact = [value for value in candidates if value is not None]
    if len(exact) < len(pairs):
        return [Unknown(text)]
    return [Compare(field.name, op, value) for (op, _), value in zip(pairs, exact, strict=True)]


def _compares(kind: pa.DataType, value: Value) -> bool:
    return _is_number(kind) and isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _nearest(kind: pa.DataType, value: Value) -> Value | None:
    number = isinstance(value, int | float | Decimal) or (isinstance(value, str) and _NUMBER.fullmatch(value))
    if isinstance(value, bool) or not number:
        return None
    try:
        near = float(cast(float, value))
    except OverflowError:
        return None
    return float(np.float32(near)) if kind == pa.float32() and isinstance(value, str) else near


def _fit_together(kind: pa.DataType, values: Sequence[Value]) -> bool:
    """Whether one decimal type of an engine holds the column's values and the literals, if it uses one."""
    if pa.types.is_floating(kind) or not _is_number(kind):
        return True
    whole, scale = (kind.precision - kind.scale, kind.scale) if pa.types.is_decimal(kind) else (_LONG_DIGITS, 0)
    for value in values:
        digits = Decimal(cast(int | Decimal, value)).as_tuple()
        exponent = int(digits.exponent)
        whole, scale = max(whole, len(digits.digits) + exponent), max(scale, -exponent)
    return scale == 0 or whole + scale <= _DECIMAL_DIGITS


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def zone(field: pa.Field, op: Op, value: int | float | Decimal, text: str) -> Filter:
    """The range of values that an engine may match in a comparison that it rounds."""
    number = Decimal(value)
    if op is Op.NE or not number.is_finite():
        return Unknown(text)
    low, high = _around(field.type, number)
    above, below = Compare(field.name, Op.GE, low), Compare(field.name, Op.LE, high)
    if op is Op.EQ:
        return And((above, below, Unknown(text)))
    return And((below if op in (Op.LT, Op.LE) else above, Unknown(text)))


def _around(kind: pa.DataType, number: Decimal) -> tuple[Decimal, Decimal]:
    """A few units of rounding to either side, of floats (relative) and of the column's own steps (absolute)."""
    single = kind == pa.float32()
    step = Decimal("1e-37") if single else Decimal("1e-300")
    if pa.types.is_integer(kind):
        step = Decimal(1)
    elif pa.types.is_decimal(kind):
        step = Decimal(2).scaleb(-kind.scale)
    share = Decimal(2) ** (-20 if single else -45)
    width = _WIDE.add(_WIDE.multiply(_WIDE.abs(number), share), step)
    return _DOWN.subtract(number, width), _UP.add(number, width)


def _exact_value(kind: pa.DataType, value: Value) -> Value | None:
    """The literal as a value that compares by itself; None if the engine may round or fail."""
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else None
    if pa.types.is_boolean(kind):
        return value if isinstance(value, bool) else None
    if pa.types.is_binary(kind):
        plain = isinstance(value, str) and value.isascii() and value.isprintable() and "\\" not in value
        return value.encode() if plain and isinstance(value, str) else None
    if kind == pa.date32() or pa.types.is_timestamp(kind):
        return _moment(kind, value)
    if isinstance(value, bool) or not _is_number(kind):
        return None
    return _number(kind, value)


def _moment(kind: pa.DataType, value: Value) -> Value | None:
    if isinstance(value, date):
        return value
    shape = _DATE if kind == pa.date32() else _TIMESTAMP
    if not isinstance(value, str) or not shape.fullmatch(value):
        return None
    return parse_moment(value)


def parse_moment(text: str) -> date | datetime | None:
    """A date or a timestamp as SQL writes it, without a zone or in UTC; None for anything else."""
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
        return datetime.fromisoformat(text) if _TIMESTAMP.fullmatch(text) else None
    except ValueError:
        return None


def _number(kind: pa.DataType, value: Value) -> Value | None:
    if isinstance(value, str):
        return _number_in_quotes(kind, value)
    if isinstance(value, float):
        return value if kind == pa.float64() else None
    if not isinstance(value, int | Decimal):
        return None
    digits = Decimal(value).as_tuple()
    scale = max(0, -int(digits.exponent))
    if pa.types.is_decimal(kind):
        return value
    if pa.types.is_integer(kind):
        return value if isinstance(value, int) or len(digits.digits) <= _SAFE_DIGITS >= scale else None
    return value if len(digits.digits) <= _SAFE_DIGITS >= scale and position(kind, value).exact else None


def _number_in_quotes(kind: pa.DataType, text: str) -> Value | None:
    """Engines cast the text to the column's type; None if that rounds."""
    if pa.types.is_integer(kind):
        return int(text) if _INTEGER.fullmatch(text) and len(text) <= _LONGEST_INTEGER else None
    if not _NUMBER.fullmatch(text) or len(text) > _SAFE_DIGITS:
        return None
    number = Decimal(text)
    try:
        return number if position(kind, number).exact else None
    except UnsupportedError:
        return None
