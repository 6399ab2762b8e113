"""Values of any type as numbers, and numbers as MySQL stores them: rounded, and cut to the range of the column."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np

from binlake.decode.types.mysql_types import MysqlType
from binlake.schema.rules.conversion.declared import TypeGroup, kind_of
from binlake.schema.rules.conversion.moments import packed

_EXACT = Context(prec=400)
_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)", re.ASCII)
_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?\d+)", re.ASCII)
_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64, "bool": 8}
INTEGERS = frozenset(_BITS)
_LARGEST_FLOAT = float(np.finfo(np.float32).max)
_LARGEST_DOUBLE = float(np.finfo(np.float64).max)
#: Exponents beyond this one say no more than "beyond every column's range".
_LONGEST_EXPONENT = 400
_NO_YEAR = 1e10

Number = int | float | Decimal


def integer_range(kind: MysqlType) -> tuple[int, int]:
    """The least and the largest number of an integer type."""
    bits = _BITS[kind.base]
    return (0, (1 << bits) - 1) if kind.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


def number_of(kind: MysqlType, value: Any) -> Number:  # noqa: ANN401 - any lake value
    """A value as a number: exact for exact types, for text its longest numeric beginning, or 0."""
    group = kind_of(kind)
    if group is TypeGroup.TEXT or kind.base == "decimal":
        return parsed(value) if isinstance(value, str) else Decimal(value)
    if group is TypeGroup.BYTES:
        return parsed(value.decode("latin1"))
    if kind.base == "bit":
        return int(value) if isinstance(value, bool) else int.from_bytes(value, "big")
    if group is TypeGroup.MOMENT:
        return packed(kind, value)
    if group is TypeGroup.CHOICE:
        return choice_number(kind, value)
    return float(value) if group is TypeGroup.REAL else int(value)


def parsed(text: str) -> Decimal:
    """The number that a text begins with; 0 if it begins with none."""
    number_match = _NUMBER.match(text)
    if number_match is None:
        return Decimal(0)
    digits, _, exponent = number_match[1].lower().partition("e")
    power = max(-_LONGEST_EXPONENT, min(_LONGEST_EXPONENT, float(exponent or 0)))
    return Decimal(f"{digits}E{int(power)}")


def choice_number(kind: MysqlType, value: str) -> int:
    """An ENUM's place in the list (0 for the error value), or a SET's bits."""
    if kind.base == "enum":
        return kind.options.index(value) + 1 if value in kind.options else 0
    members = set(value.split(",")) if value else set()
    return sum(1 << place for place, option in enumerate(kind.options) if option in members)


def to_integer(new: MysqlType, old: MysqlType) -> Callable[[Any], int]:
    """Stores values as whole numbers: exact numbers and text are rounded half away from zero, real numbers half to
    even, moments lose their fraction."""
    low, high = integer_range(new)

    def store(value: Any) -> int:  # noqa: ANN401 - any lake value
        return max(low, min(high, whole_of(old, value)))

    return store


def whole_of(old: MysqlType, value: Any) -> int:  # noqa: ANN401 - any lake value
    """A value as a whole number: of text only the digits before any other character, of real numbers 64 bits."""
    group = kind_of(old)
    if group in (TypeGroup.TEXT, TypeGroup.BYTES):
        integer_match = _INTEGER.match(value if isinstance(value, str) else value.decode("latin1"))
        number = _in_64_bits(whole(Decimal(integer_match[1]), truncates=True)) if integer_match else 0
    else:
        number = whole(number_of(old, value), truncates=group is TypeGroup.MOMENT)
    return number if group in (TypeGroup.EXACT, TypeGroup.MOMENT, TypeGroup.CHOICE) else _in_64_bits(number)


def _in_64_bits(number: int) -> int:
    return max(-(1 << 63), min((1 << 63) - 1, number))


def whole(number: Number, *, truncates: bool = False) -> int:
    """A number without its fraction. An infinite number becomes one beyond every column's range."""
    if isinstance(number, int):
        return number
    if isinstance(number, float):
        return round(number) if math.isfinite(number) else (1 << 65) * (1 if number > 0 else -1)
    return int(number) if truncates else int(number.to_integral_value(ROUND_HALF_UP))


def to_decimal(new: MysqlType, old: MysqlType) -> Callable[[Any], Decimal | str]:
    """Stores values as DECIMAL: rounded half away from zero, cut to the digits of the column. As text beyond 38
    digits."""
    scale = new.scale or 0
    step = Decimal(1).scaleb(-scale)
    high = Decimal(10**new.precision - 1).scaleb(-scale, _EXACT)
    low, as_text = Decimal(0) if new.unsigned else _EXACT.minus(high), new.precision > 38

    def store(value: Any) -> Decimal | str:  # noqa: ANN401 - any lake value
        number = number_of(old, value)
        exact = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
        cut = max(low, min(high, exact)).quantize(step, ROUND_HALF_UP, _EXACT)
        cut = max(low, min(high, cut)) or abs(cut)
        return f"{cut:f}" if as_text else cut

    return store


def to_real(new: MysqlType, old: MysqlType) -> Callable[[Any], float]:
    """Stores values as FLOAT or DOUBLE, in the range of the type; FLOAT(m,d) rounds to d digits."""
    single = new.base == "float"
    high = _LARGEST_FLOAT if single else _LARGEST_DOUBLE
    if new.scale is not None:
        high = min(high, float(Decimal(10) ** (new.precision - new.scale) - Decimal(1).scaleb(-new.scale)))
    low = 0.0 if new.unsigned else -high

    def store(value: Any) -> float:  # noqa: ANN401 - any lake value
        number = _as_float(number_of(old, value))
        if new.scale is not None and math.isfinite(number):
            number = round(number * 10**new.scale) / 10**new.scale
        number = max(low, min(high, number))
        return float(np.float32(number)) if single else number

    return store


def _as_float(number: Number) -> float:
    try:
        return float(number)
    except (OverflowError, InvalidOperation):
        return math.copysign(math.inf, number)


def to_bits(new: MysqlType, old: MysqlType) -> Callable[[Any], bool | bytes]:
    """Stores values as BIT: a number beyond the column's bits, or below 0, sets all of them; a DECIMAL below 0 none."""
    length = new.length or 1
    high = (1 << length) - 1
    size = -(-length // 8)

    def store(value: Any) -> bool | bytes:  # noqa: ANN401 - any lake value
        number = whole_of(old, value)
        if number < 0:
            number = 0 if old.base == "decimal" else high
        number = min(number, high)
        return bool(number) if length == 1 else number.to_bytes(size, "big")

    return store


def to_year(new: MysqlType, old: MysqlType) -> Callable[[Any], int]:
    """Stores values as YEAR: 1 to 69 are years from 2001, 70 to 99 from 1970; 0 for what is no year."""

    def store(value: Any) -> int:  # noqa: ANN401 - any lake value
        if old.base == "time":
            return 0
        if old.base in ("date", "datetime", "timestamp"):
            number = int(packed(old, value)) // (10**4 if old.base == "date" else 10**10)
            return number if 1901 <= number <= 2155 else 0
        number = _for_year(old, value)
        if 0 < number < 70 or (number == 0 and _is_short_zero(old, value)):
            return 2000 + number
        if 70 <= number <= 99:
            return 1900 + number
        return number if 1901 <= number <= 2155 else 0

    return store


def _for_year(old: MysqlType, value: Any) -> int:  # noqa: ANN401 - any lake value
    group = kind_of(old)
    if group in (TypeGroup.TEXT, TypeGroup.BYTES):
        return whole(number_of(old, value))
    return int(value) if group is TypeGroup.REAL and abs(value) < _NO_YEAR else whole_of(old, value)


def _is_short_zero(old: MysqlType, value: Any) -> bool:  # noqa: ANN401 - any lake value
    """Whether a text is a zero that is the year 2000: any but ``0000``."""
    if kind_of(old) not in (TypeGroup.TEXT, TypeGroup.BYTES):
        return False
    text = value if isinstance(value, str) else value.decode("latin1")
    return len(text) != 4 and _NUMBER.match(text) is not None


def place_of(old: MysqlType, value: Any) -> int:  # noqa: ANN401 - any lake value
    """A number as an ENUM's place or a SET's bits; a DECIMAL is cut to 64 bits."""
    number = whole_of(old, value)
    return _in_64_bits(number) if old.base == "decimal" else number
