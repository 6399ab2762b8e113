"""DATE, DATETIME, TIMESTAMP and TIME: from text and numbers, from one to another, and as numbers.

Moments are whole numbers here: DATE days since 1970, DATETIME and TIMESTAMP microseconds since 1970 in the session's
local time, TIME microseconds. None stands for the zero date, which the lake holds as null.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

from binlake.decode.types.mysql_types import MysqlType
from binlake.schema.rules.conversion.declared import TypeGroup, kind_of

SECOND = 1_000_000
DAY = 86_400 * SECOND
_UNIX_DAY = date(1970, 1, 1).toordinal()
#: The last second of a TIMESTAMP, 2038-01-19 03:14:07.
LAST_TIMESTAMP_S = (1 << 31) - 1
#: A moment that no DATETIME holds; rounding the last one may lead to it.
_YEAR_10000 = (date(9999, 12, 31).toordinal() + 1 - _UNIX_DAY) * DAY
_LARGEST_TIME = (838 * 3600 + 59 * 60 + 60) * SECOND - 1
#: The server knows digits and spaces of ASCII alone.
_SPACES = r"[ \t\n\v\f\r]*"
_RUN = re.compile(_SPACES + r"([0-9]+)(?:\.([0-9]*))?")
_PARTS = re.compile(_SPACES + r"([0-9]{1,4})[^\w\s]([0-9]{1,2})[^\w\s]([0-9]{1,2})(.*)", re.DOTALL)
_CLOCK = re.compile(r"(?:[ \t\n\v\f\r]+|T)([0-9]{1,2})(?:[^\w\s]([0-9]{1,2})(?:[^\w\s]([0-9]{1,2})(?:\.([0-9]*))?)?)?")
_TIME = re.compile(
    _SPACES + r"([+-])?(?:([0-9]+) +(?=[0-9]))?([0-9]+)(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?(?:\.([0-9]*))?"
)
_TIME_RUN = re.compile(_SPACES + r"([+-])?([0-9]+)(?:\.([0-9]*))?(?![0-9.]|[eE][+-]?[0-9])")
#: A text of so many characters is read as a DATETIME first.
_DATETIME_LENGTH = 12


def ymd(days: int) -> tuple[int, int, int]:
    """Year, month and day of days since 1970."""
    day = date.fromordinal(days + _UNIX_DAY)
    return day.year, day.month, day.day


def packed(kind: MysqlType, value: int) -> int | Decimal:
    """A moment as a number: 20240229, 20240229123456.5, -123456."""
    if kind.base == "date":
        year, month, day = ymd(value)
        return (year * 100 + month) * 100 + day
    days, rest = (0, abs(value)) if kind.base == "time" else divmod(value, DAY)
    year, month, day = (0, 0, 0) if kind.base == "time" else ymd(days)
    seconds, fraction = divmod(rest, SECOND)
    number = (year * 100 + month) * 100 + day
    number = ((number * 100 + seconds // 3600) * 100 + seconds // 60 % 60) * 100 + seconds % 60
    sign = -1 if kind.base == "time" and value < 0 else 1
    return sign * (number + Decimal(fraction) / SECOND) if fraction else sign * number


def from_parts(year: int, month: int, day: int) -> int | None:
    """Days since 1970; None for a day that no calendar has."""
    try:
        return date(year, month, day).toordinal() - _UNIX_DAY
    except ValueError:
        return None


def _full_year(year: int) -> int:
    return year + (2000 if year < 70 else 1900)


def datetime_of_text(text: str) -> int | None:
    """Microseconds since 1970 of a text as MySQL reads a DATETIME; None for what it does not read."""
    parts = _PARTS.match(text)
    if parts is None:
        return _datetime_of_run(text)
    year, month, day = int(parts[1]), int(parts[2]), int(parts[3])
    days = from_parts(year if len(parts[1]) > 2 else _full_year(year), month, day)
    clock = _CLOCK.match(parts[4])
    if days is None or clock is None:
        return None if days is None else days * DAY
    return _with_clock(days, int(clock[1]), int(clock[2] or 0), int(clock[3] or 0), clock[4] or "")


def _datetime_of_run(text: str) -> int | None:
    run = _RUN.match(text)
    if run is None or len(run[1]) < 4 or (run[2] is not None and len(run[1]) < 12):
        return None
    digits = run[1]
    wide = 4 if len(digits) in (4, 8) or len(digits) >= 14 else 2
    year, rest = digits[:wide], digits[wide:]
    fields = [int(rest[i : i + 2] or 0) for i in range(0, 10, 2)]
    days = from_parts(int(year) if wide == 4 else _full_year(int(year)), fields[0], fields[1])
    fraction = run[2] or "" if len(digits) >= 12 else ""
    return None if days is None else _with_clock(days, fields[2], fields[3], fields[4], fraction)


def _with_clock(days: int, hour: int, minute: int, second: int, fraction: str) -> int | None:
    if hour > 23 or minute > 59 or second > 59:
        return None
    return days * DAY + ((hour * 60 + minute) * 60 + second) * SECOND + int(fraction[:6].ljust(6, "0"))


def datetime_of_number(number: Decimal) -> int | None:
    """Microseconds since 1970 of a number such as 240229, 20240229 or 20240229123456.5; None for any other."""
    whole, fraction = int(number), int(abs(number - int(number)) * SECOND)
    if whole < 101 or number < 0:
        return None
    fraction = fraction if whole > 99991231 else 0
    if whole <= 69 * 10000 + 1231:
        whole = (whole + 20000000) * 10**6
    elif whole < 70 * 10000 + 101:
        return None
    elif whole <= 991231:
        whole = (whole + 19000000) * 10**6
    elif whole < 10000101:
        return None
    elif whole <= 99991231:
        whole *= 10**6
    elif whole < 101000000:
        return None
    elif whole <= 69 * 10**10 + 1231235959:
        whole += 20 * 10**12
    elif whole < 70 * 10**10 + 101000000:
        return None
    elif whole <= 991231235959:
        whole += 19 * 10**12
    if whole > 99991231235959:
        return None
    day, clock = divmod(whole, 10**6)
    days = from_parts(day // 10000, day // 100 % 100, day % 100)
    if days is None:
        return None
    return _with_clock(days, clock // 10000, clock // 100 % 100, clock % 100, f"{fraction:06d}")


def time_of_text(text: str) -> int:
    """Microseconds of a text as MySQL reads a TIME, cut to its range; 0 for what it does not read."""
    if len(text.strip()) >= _DATETIME_LENGTH and (moment := datetime_of_text(text)) is not None:
        return moment % DAY
    time_match = _TIME.match(text)
    if time_match is not None and (time_match[2] is not None or time_match[4] is not None):
        hours = int(time_match[2] or 0) * 24 + int(time_match[3])
        clock = hours, int(time_match[4] or 0), int(time_match[5] or 0), time_match[6] or ""
        return _cut(time_match[1] == "-", *clock)
    run = _TIME_RUN.match(text)
    if run is None or len(run[2]) >= _DATETIME_LENGTH:
        return 0
    number = int(run[2])
    return _cut(run[1] == "-", number // 10000, number // 100 % 100, number % 100, run[3] or "")


def time_of_number(number: Decimal) -> int:
    """Microseconds of a number such as 123456.5 as a TIME, cut to its range."""
    moment = datetime_of_number(number) if number >= 10**7 else None
    if moment is not None or 10**7 <= number <= 99991231235959:
        return moment % DAY if moment is not None else 0
    if abs(number) >= 8385960:
        return _LARGEST_TIME if number > 0 else -_LARGEST_TIME
    whole, fraction = int(abs(number)), f"{int(abs(number) % 1 * SECOND):06d}"
    return _cut(number < 0, whole // 10000, whole // 100 % 100, whole % 100, fraction)


def _cut(negative: bool, hours: int, minutes: int, seconds: int, fraction: str) -> int:
    if minutes > 59 or seconds > 59:
        return 0
    size = ((hours * 60 + minutes) * 60 + seconds) * SECOND + int(fraction[:6].ljust(6, "0"))
    size = size if hours <= 838 else _LARGEST_TIME
    return -size if negative else size


def datetime_with_digits(size: int, digits: int, *, rounds: bool) -> int:
    """Microseconds of a DATETIME with that many digits of a second: the rest is cut off the clock, or rounded."""
    step: int = 10 ** (6 - digits)
    return (size + (step // 2 if rounds else 0)) // step * step


def time_with_digits(size: int, digits: int, *, rounds: bool) -> int:
    """Microseconds of a TIME with that many digits of a second: cut off, or rounded half away from zero."""
    cut = datetime_with_digits(abs(size), digits, rounds=rounds)
    return cut if size >= 0 else -cut


Store = Callable[[Any], int | None]


def to_moment(
    new: MysqlType, old: MysqlType, number: Callable[[Any], Any], *, rounds: bool, today: int | None
) -> Store:
    """Stores values as DATE, DATETIME, TIMESTAMP or TIME. None for what becomes a zero date.

    ``number``: a value of the old type as an exact number. ``rounds``: whether fractions are rounded (MySQL) or cut off
    (MariaDB). ``today``: the statement's day, which a TIME is put on (days since 1970).
    """
    if new.base == "time":
        return _to_time(new, old, number, rounds=rounds)

    def store(value: Any) -> int | None:  # noqa: ANN401 - any lake value
        moment = _moment(old, value, number, today)
        if moment is None:
            return None
        if new.base == "date":
            return moment // DAY
        cut = datetime_with_digits(moment, new.length or 0, rounds=rounds)
        return cut if cut < _YEAR_10000 else None

    return store


def _moment(old: MysqlType, value: Any, number: Callable[[Any], Any], today: int | None) -> int | None:  # noqa: ANN401
    if old.base == "time":
        return None if today is None else today * DAY + int(value)
    if old.base == "date":
        return int(value) * DAY
    if old.base in ("datetime", "timestamp"):
        return int(value)
    if kind_of(old) in (TypeGroup.TEXT, TypeGroup.CHOICE):
        return datetime_of_text(value)
    if kind_of(old) is TypeGroup.BYTES:
        return datetime_of_text(value.decode("latin1"))
    return datetime_of_number(_exact(number(value)))


def _exact(number: Any) -> Decimal:  # noqa: ANN401 - any number
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


def _to_time(new: MysqlType, old: MysqlType, number: Callable[[Any], Any], *, rounds: bool) -> Store:
    digits = new.length or 0

    def store(value: Any) -> int:  # noqa: ANN401 - any lake value
        if old.base == "time":
            size = int(value)
        elif old.base == "date":
            size = 0
        elif old.base in ("datetime", "timestamp"):
            size = int(value) % DAY
        elif kind_of(old) in (TypeGroup.TEXT, TypeGroup.CHOICE):
            size = time_of_text(value)
        elif kind_of(old) is TypeGroup.BYTES:
            size = time_of_text(value.decode("latin1"))
        else:
            size = time_of_number(_exact(number(value)))
        return time_with_digits(size, digits, rounds=rounds)

    return store
