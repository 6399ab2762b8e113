"""Values of an input in the type of a lake column: the same value, or an error. Nothing is rounded, cut or guessed.

A float stands for the shortest decimal that reads as it: 0.1 is a tenth in a DECIMAL, and 2.675 does not fit into one
with two places. A text stands for the value that it spells. A float holds a decimal if the float, written with as many
digits as the decimal has, is that decimal. From 2^53 on a float (of 32 bits: 2^24) is several whole numbers, so none.
``\\x6162`` spells bytes. Another text is its own bytes in UTF-8, but hexadecimal digits alone may be either, so none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, Inexact
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: A decimal has an exponent of three digits at most, so that no text is a number of a million digits.
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_SPECIAL: Final = re.compile(r"nan|[+-]?inf(inity)?", re.IGNORECASE)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = r"(\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,12}))?"
_TIME_OF_DAY: Final = re.compile(_TIME, re.ASCII)
_MOMENT: Final = re.compile(rf"(\d{{4}}-\d\d-\d\d)[ T]{_TIME}(Z|[+-]\d\d:\d\d)?", re.ASCII)
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2})+", re.ASCII)
_BOOLEANS: Final = {"true": True, "false": False, "1": True, "0": False}
#: Digits of a number that is looked at.
_MOST_DIGITS: Final = 400
_MOST_SHOWN: Final = 100
_WIDE: Final = Context(prec=2 * _MOST_DIGITS, traps=[Inexact])


@dataclass
class UnfitValueError(Exception):
    """A value that a type cannot hold exactly. ``row``: its index."""

    row: int
    value: str

    @property
    def shown(self) -> str:
        """The value for people, shortened."""
        return repr(self.value if len(self.value) <= _MOST_SHOWN else self.value[:_MOST_SHOWN] + "...")


def readable(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether values of a type may be values of a lake type. A number is no text, and a text that spells one is."""
    if pa.types.is_null(given) or given == kind or _is_lossless(given, kind):
        return True
    return (pa.types.is_timestamp(given) and pa.types.is_date(kind)) or _reader(given, kind) is not None


def exactly(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The same values in a lake type.

    Args:
        values: n values of a type that is ``readable``.
        kind: the lake type.

    Raises UnfitValueError for the first value that the type cannot hold.
    """
    if values.type == kind:
        return values
    if pa.types.is_null(values.type) or _is_lossless(values.type, kind):
        return _by_arrow(values, kind)
    if pa.types.is_timestamp(values.type) and pa.types.is_date(kind):
        return _dates(values, kind)
    read = _reader(values.type, kind)
    assert read is not None, "the type is not readable"
    given = values.to_pylist()
    if pa.types.is_floating(values.type) and not pa.types.is_floating(kind):
        read = _if_below(1 << (24 if pa.types.is_float32(values.type) else 53), read)
    if pa.types.is_float32(values.type):
        given = [None if value is None else float(str(np.float32(value))) for value in given]
    return pa.chunked_array([_by_value(given, read, kind)], kind)


def _by_arrow(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    try:
        return values.cast(kind)
    except pa.ArrowException:
        row = _first_unfit(values, kind)
        raise UnfitValueError(row, str(values[row])) from None


def _first_unfit(values: pa.ChunkedArray, kind: pa.DataType) -> int:
    """The index of the first value that cannot be cast; there is one."""
    low, high = 0, len(values)  # the first ``low`` values can be cast, the first ``high`` cannot
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _can_cast(values.slice(low, middle - low), kind) else (low, middle)
    return low


def _can_cast(values: pa.ChunkedArray, kind: pa.DataType) -> bool:
    try:
        values.cast(kind)
    except pa.ArrowException:
        return False
    return True


def _by_value(given: list[Any], read: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
    made: list[Any] = []
    for row, value in enumerate(given):
        try:
            made.append(None if value is None else read(value))
        except (ArithmeticError, LookupError, ValueError) as error:
            raise UnfitValueError(row, str(value)) from error
    try:
        return pa.array(made, kind)
    except (pa.ArrowException, OverflowError):
        row = next(row for row, value in enumerate(made) if not _holds(kind, value))
        raise UnfitValueError(row, str(given[row])) from None


def _holds(kind: pa.DataType, value: object) -> bool:
    try:
        pa.array([value], kind)
    except (pa.ArrowException, OverflowError):
        return False
    return True


def _dates(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Moments at midnight as dates."""
    days = values.cast(kind)
    wrong = pc.not_equal(days.cast(values.type), values)
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        raise UnfitValueError(row, str(values[row]))
    return days


def _is_lossless(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether Arrow's own cast gives the same values or an error (measured; others round, wrap or cut)."""
    if pa.types.is_integer(given):
        return bool(pa.types.is_integer(kind))
    if pa.types.is_float32(given):
        return bool(pa.types.is_float64(kind))
    if pa.types.is_timestamp(given) or pa.types.is_date(given):
        return bool(pa.types.is_timestamp(kind))
    if pa.types.is_time(given):
        return bool(pa.types.is_time(kind))
    if pa.types.is_string(given) or pa.types.is_large_string(given):
        return bool(pa.types.is_string(kind))
    return is_bytes(given) and (pa.types.is_string(kind) or is_bytes(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether the values of a type are bytes."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _reader(given: pa.DataType, kind: pa.DataType) -> Callable[[Any], Any] | None:
    """What reads one value of a type as one of a lake type; None if the two have nothing to do with each other."""
    if pa.types.is_string(given) or pa.types.is_large_string(given):
        return _of_text(kind)
    if pa.types.is_integer(given) or pa.types.is_decimal(given) or given in (pa.float32(), pa.float64()):
        return _of_number(kind)
    return int if pa.types.is_boolean(given) and pa.types.is_integer(kind) else None


def _of_text(kind: pa.DataType) -> Callable[[str], Any] | None:
    if pa.types.is_string(kind):
        return str
    if is_bytes(kind):
        return _bytes_spelled
    if pa.types.is_boolean(kind):
        return lambda text: _BOOLEANS[text.lower()]
    if pa.types.is_date(kind):
        return read_date
    if pa.types.is_time(kind):
        return _read_time
    if pa.types.is_timestamp(kind):
        return lambda text: read_moment(text, zoned=kind.tz is not None)
    if pa.types.is_floating(kind):
        return lambda text: float(text) if _SPECIAL.fullmatch(text) else as_float(read_number(text), kind)
    number = _of_number(kind)
    return None if number is None else lambda text: number(read_number(text))


def _of_number(kind: pa.DataType) -> Callable[[int | float | Decimal], Any] | None:
    if pa.types.is_boolean(kind):
        return _as_boolean
    if pa.types.is_integer(kind):
        return _as_integer
    if pa.types.is_decimal(kind):
        return lambda value: _as_decimal(value, kind.precision, kind.scale)
    if pa.types.is_floating(kind):
        return lambda value: as_float(_decimal(value), kind) if _is_finite(value) else float(value)
    return None


def _if_below(bound: int, read: Callable[[Any], Any]) -> Callable[[float], Any]:
    def checked(value: float) -> object:
        if abs(value) >= bound:
            raise ValueError("one of several whole numbers")
        return read(value)

    return checked


def _is_finite(value: int | float | Decimal) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _decimal(value: int | float | Decimal) -> Decimal:
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _bytes_spelled(text: str) -> bytes:
    spelled = text.startswith("\\x")
    if spelled != bool(_HEX.fullmatch(text, 2 * spelled)) and text != "\\x":
        raise ValueError("may be other bytes")
    return bytes.fromhex(text[2:]) if spelled else text.encode()


def read_number(text: str) -> Decimal:
    """The number that a text spells. Raises ValueError for any other text."""
    if len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        raise ValueError("no number")
    return Decimal(text)


def _as_boolean(value: int | float | Decimal) -> bool:
    if value not in (0, 1):
        raise ValueError("neither 0 nor 1")
    return value == 1


def _as_integer(value: int | float | Decimal) -> int:
    whole = int(value)
    if whole != value:
        raise ValueError("a fraction")
    return whole


def _as_decimal(value: int | float | Decimal, precision: int, scale: int) -> Decimal:
    number = _decimal(value)
    if not number.is_finite() or (number.adjusted() >= precision - scale and number):
        raise ValueError("too great")
    return number.quantize(Decimal(1).scaleb(-scale), context=_WIDE)


def as_float(number: Decimal, kind: pa.DataType) -> float:
    """A decimal as a float of a type. Raises ValueError if the float is not this decimal in as many digits."""
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    with np.errstate(over="ignore"):
        near = float(np.float32(float(number))) if pa.types.is_float32(kind) else float(number)
    if not math.isfinite(near) or Decimal(f"{near:.{max(len(digits), 1) - 1}e}") != number:
        raise ValueError("rounded")
    return near


def read_date(text: str) -> date:
    """The date that a text spells, YYYY-MM-DD. Raises ValueError for any other text."""
    if not _DATE.fullmatch(text):
        raise ValueError("no date")
    return date.fromisoformat(text)


def _read_time(text: str) -> time:
    time_match = _TIME_OF_DAY.fullmatch(text)
    if time_match is None:
        raise ValueError("no time of day")
    return time.fromisoformat(time_match[1]).replace(microsecond=_micros(time_match[2]))


def read_moment(text: str, zoned: bool) -> datetime:
    """The moment that a text spells: a date, or a date with a time of day, and a zone if there is one.

    ``zoned``: whether the column's values are moments in UTC; a text without a zone is in UTC then. Raises ValueError.
    """
    moment_match = _MOMENT.fullmatch(text)
    if moment_match is None:
        read_date(text)
        moment_match = _MOMENT.fullmatch(f"{text} 00:00:00")
        assert moment_match is not None
    day, time_of_day, fraction, zone = moment_match.groups()
    moment = datetime.fromisoformat(f"{day} {time_of_day}").replace(microsecond=_micros(fraction))
    if zone is None:
        return moment.replace(tzinfo=UTC) if zoned else moment
    if not zoned:
        raise ValueError("a zone")
    return moment.replace(tzinfo=datetime.strptime(zone.replace("Z", "+00:00"), "%z").tzinfo).astimezone(UTC)


def _micros(fraction: str | None) -> int:
    padded = (fraction or "").ljust(6, "0")
    if padded[6:].strip("0"):
        raise ValueError("more than microseconds")
    return int(padded[:6])
