"""The position of a literal among the values of a column's type: exactly one of them, or between two.

``x < 3.5`` on whole numbers is ``x <= 3``; ``x = 3.5`` is never true. So every comparison becomes one inside the
column's own type, and nothing is rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa

from hudilake.errors import UnsupportedError
from hudilake.read.filters.expressions import Op, Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_WIDE = Context(prec=80)
#: No type has values with such an exponent.
_MOST_EXPONENT = 500
#: Units of a second by Arrow's name.
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class LiteralPosition:
    """``value`` (of the column's type, valid) is the literal if ``exact``, else the greatest value below it; None
    where there is none below."""

    value: pa.Scalar | None
    exact: bool


def position(kind: pa.DataType, value: Value) -> LiteralPosition:
    """The literal's position in a column type.

    Raises UnsupportedError for a literal that does not compare with that type (text with a number...).
    """
    literal_position = _position_of(kind, value)
    if literal_position is None:
        raise UnsupportedError(
            f"{type(value).__name__} {value!r} cannot be compared with a column of type {kind}",
            do_next="give the literal in the column's type",
        )
    return literal_position


def _position_of(kind: pa.DataType, value: Value) -> LiteralPosition | None:
    if pa.types.is_boolean(kind):
        return _exactly(kind, value) if isinstance(value, bool) else None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _exactly(kind, value) if isinstance(value, str) else None
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _exactly(kind, value) if isinstance(value, bytes) else None
    if pa.types.is_temporal(kind):
        moment = _moment(kind, value)
        return None if moment is None else _on_grid(kind, moment, *_integer_limits(kind))
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return _number(kind, value)


def _exactly(kind: pa.DataType, value: Value) -> LiteralPosition:
    return LiteralPosition(pa.scalar(value, kind), exact=True)


def _number(kind: pa.DataType, value: int | float | Decimal) -> LiteralPosition | None:
    if pa.types.is_floating(kind):
        return _floating(kind, value)
    if pa.types.is_integer(kind):
        low, high = _integer_limits(kind)
        return _on_grid(kind, _exact_number(value, low, high), low, high)
    if pa.types.is_decimal(kind):
        high = 10**kind.precision - 1
        steps = _exact_number(value, -high, high, 10**kind.scale)
        on_grid = _on_grid(pa.decimal256(76, 0), steps, -high, high)
        return LiteralPosition(None if on_grid.value is None else _scaled(kind, on_grid.value.as_py()), on_grid.exact)
    return None


def _exact_number(value: int | float | Decimal, low: int, high: int, factor: int = 1) -> Fraction:
    """The literal times ``factor``. Infinities and NaN (the greatest) are outside the limits."""
    if not _is_finite(value):
        return Fraction(low - 1 if value == -math.inf else high + 1)
    return _fraction(value) * factor


def _is_finite(value: int | float | Decimal) -> bool:
    """Whether it is a number. A Decimal is never turned into a float for that: -1E+400 is finite."""
    return value.is_finite() if isinstance(value, Decimal) else isinstance(value, int) or math.isfinite(value)


def _fraction(value: int | float | Decimal) -> Fraction:
    """The number; of one with a great exponent another one of its side, beyond or below all values that types hold.
    1e999999999 would be a number of a billion digits."""
    if isinstance(value, Decimal) and value and abs(value.adjusted()) > _MOST_EXPONENT:
        size = Fraction(10) ** (_MOST_EXPONENT if value.adjusted() > 0 else -_MOST_EXPONENT)
        return -size if value < 0 else size
    return Fraction(value)


def _scaled(kind: pa.DataType, steps: Decimal) -> pa.Scalar:
    return pa.scalar(steps.scaleb(-kind.scale, _WIDE), kind)


def _on_grid(kind: pa.DataType, number: Fraction, low: int, high: int) -> LiteralPosition:
    """``number`` counts steps of the type from zero."""
    floor = min(math.floor(number), high)
    if floor < low:
        return LiteralPosition(None, exact=False)
    return LiteralPosition(_step(kind, floor), exact=floor == number)


def _step(kind: pa.DataType, steps: int) -> pa.Scalar:
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(steps), kind)
    return pa.array([steps], _STORAGE.get(kind.bit_width, pa.int64())).view(kind)[0]


_STORAGE = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def _integer_limits(kind: pa.DataType) -> tuple[int, int]:
    if pa.types.is_unsigned_integer(kind):
        return 0, (1 << min(kind.bit_width, 63)) - 1
    return -(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1


def _moment(kind: pa.DataType, value: Value) -> Fraction | None:
    """Steps of a date, time or timestamp type from its zero."""
    if isinstance(value, time):
        if not pa.types.is_time(kind) or value.tzinfo is not None:
            return None
        seconds = value.hour * 3600 + value.minute * 60 + value.second
        return Fraction(seconds * 1_000_000 + value.microsecond, 1_000_000) * _PER_SECOND[kind.unit]
    if pa.types.is_time(kind) or not isinstance(value, date):
        return None
    if not isinstance(value, datetime):
        days = value.toordinal() - _EPOCH_DAY
        return Fraction(days) if pa.types.is_date32(kind) else Fraction(days * 86_400 * _PER_SECOND[_unit(kind)])
    since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if pa.types.is_date32(kind):
        return Fraction(micros, 86_400_000_000)
    return Fraction(micros, 1_000_000) * _PER_SECOND[_unit(kind)]


def _unit(kind: pa.DataType) -> str:
    return "ms" if pa.types.is_date64(kind) else str(kind.unit)


def _floating(kind: pa.DataType, value: int | float | Decimal) -> LiteralPosition:
    make = np.float32 if kind == pa.float32() else np.float64
    if not _is_finite(value):
        return LiteralPosition(pa.scalar(float(value), kind), exact=True)
    number = _fraction(value)
    with np.errstate(over="ignore"):
        near = make(_nearest(number))
    if math.isinf(near):
        near = make(math.copysign(np.finfo(make).max, near))
        below = near if number > 0 else make(-math.inf)
        return LiteralPosition(pa.scalar(float(below), kind), exact=False)
    if Fraction(float(near)) > number:
        near = np.nextafter(near, make(-math.inf))
    return LiteralPosition(pa.scalar(float(near), kind), exact=Fraction(float(near)) == number)


def _nearest(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def settled(kind: pa.DataType, op: Op, value: Value) -> tuple[Op, pa.Scalar] | bool:
    """The comparison inside the type, or its result for every value that is not null. Raises as ``position``."""
    literal_position = position(kind, value)
    if literal_position.value is not None and literal_position.exact:
        return op, literal_position.value
    if op in (Op.EQ, Op.NE):
        return op is Op.NE
    if literal_position.value is None:
        return op in (Op.GT, Op.GE)
    return (Op.LE if op in (Op.LT, Op.LE) else Op.GT), literal_position.value


def members(kind: pa.DataType, values: tuple[Value, ...]) -> pa.Array:
    """The values that the type can hold, array of the type; others equal no value. Raises as ``position``."""
    places = [position(kind, value) for value in values]
    return pa.array([p.value for p in places if p.exact and p.value is not None], kind)
