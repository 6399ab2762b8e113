"""Partition expressions: the functions of dates, times and whole numbers that MySQL allows in PARTITION BY.

Values are None, int, date, datetime (TIMESTAMP with its zone UTC, DATETIME without), time in microseconds is not among
them. An expression is None where one of its columns is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from binlake.decode.ddl.tokens import Reader, Token, split_at_commas, tokens_of
from hudilake.errors import UnsupportedError

Row = Mapping[str, Any]
Evaluate = Callable[[Row], Any]
#: Of an expression that is evaluated; its parts are evaluated inside each other.
_MOST_TOKENS = 200
#: TO_DAYS('1970-01-01') and the proleptic ordinal of Python differ by this number.
_DAYS = date(1970, 1, 1).toordinal() - 719_528


def expression(text: str) -> tuple[Evaluate, tuple[str, ...]]:
    """A function of a row (column name in lower case -> value) and the columns that it needs.

    Raises UnsupportedError for what is not known here.
    """
    columns: list[str] = []
    tokens = tokens_of(text)
    if len(tokens) > _MOST_TOKENS:
        raise _unknown(text[:_MOST_TOKENS])
    reader = Reader(tokens)
    evaluator = _sum(reader, columns)
    if reader.left:
        raise _unknown(text)
    return evaluator, tuple(dict.fromkeys(columns))


def constant(text: str) -> Any:  # noqa: ANN401 - a value of any partition column
    """The value of a text without columns. Raises UnsupportedError for what is not known here."""
    evaluator, columns = expression(text)
    if columns:
        raise _unknown(text)
    return evaluator({})


def _unknown(text: str) -> UnsupportedError:
    return UnsupportedError(
        f"the partition expression {text!r} cannot be evaluated", do_next="set schema_changes.partitions to keep"
    )


def _sum(reader: Reader, columns: list[str]) -> Evaluate:
    left = _product(reader, columns)
    while reader.left and (sign := reader.next.text) in ("+", "-"):
        reader.skip()
        left = _combined(sign, left, _product(reader, columns))
    return left


def _product(reader: Reader, columns: list[str]) -> Evaluate:
    left = _value(reader, columns)
    while reader.left and (sign := reader.next.text.upper()) in ("*", "%", "MOD", "DIV"):
        reader.skip()
        left = _combined(sign, left, _value(reader, columns))
    return left


_OPERATORS: Mapping[str, Callable[[int, int], int | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": lambda a, b: _remainder(a, b),
    "MOD": lambda a, b: _remainder(a, b),
    "DIV": lambda a, b: None if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1),
}


def _remainder(a: int, b: int) -> int | None:
    """The remainder with the sign of ``a``, as in MySQL; None for a division by 0."""
    return None if b == 0 else (abs(a) % abs(b)) * (-1 if a < 0 else 1)


def _combined(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    operator = _OPERATORS[sign]

    def evaluate(row: Row) -> Any:  # noqa: ANN401 - an int or None
        a, b = left(row), right(row)
        return None if a is None or b is None else operator(a, b)

    return evaluate


def _value(reader: Reader, columns: list[str]) -> Evaluate:
    inside = reader.bracketed()
    if inside is not None:
        nested = Reader(inside)
        evaluator = _sum(nested, columns)
        if nested.left:
            raise _unknown("(...)")
        return evaluator
    if reader.take_sign("-"):
        minus = _value(reader, columns)
        return lambda row: None if (value := minus(row)) is None else -value
    if not reader.left:
        raise _unknown("")
    token = reader.next
    if token.kind in ("number", "string"):
        reader.skip()
        given = int(token.text) if token.kind == "number" and token.text.isdigit() else token.value
        if token.kind == "number" and not isinstance(given, int):
            raise _unknown(token.text)
        return lambda row: given
    name = reader.name()
    if name is None:
        raise _unknown(token.text)
    arguments = reader.bracketed() if token.kind == "word" else None
    if arguments is not None:
        return _called(name.upper(), arguments, columns)
    if token.is_word("NULL"):
        return lambda row: None
    columns.append(name)
    return lambda row: row[name.lower()]


def _called(name: str, arguments: Sequence[Token], columns: list[str]) -> Evaluate:
    function = _FUNCTIONS.get(name)
    if function is None:
        raise _unknown(f"{name}()")
    given: list[Evaluate] = []
    parts = [part for part in split_at_commas(arguments) if part]
    for part in parts:
        inside = Reader(part)
        given.append(_sum(inside, columns))
        if inside.left:
            raise _unknown(f"{name}()")

    def evaluate(row: Row) -> Any:  # noqa: ANN401 - an int or None
        values = [one(row) for one in given]
        return None if any(value is None for value in values) else function(*values)

    return evaluate


def _day(value: Any) -> date:  # noqa: ANN401 - a date, or a text that is one
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else date.fromisoformat(str(value)[:10])


def _moment(value: Any) -> datetime:  # noqa: ANN401 - a moment, or a text that is one
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a DATETIME has no zone
    return datetime.fromisoformat(str(value))


def _unix(value: Any) -> int:  # noqa: ANN401 - a moment, or a text that is one
    moment = _moment(value)
    return int((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp())


def _seconds(value: Any) -> int:  # noqa: ANN401 - a moment
    moment = _moment(value)
    return moment.hour * 3600 + moment.minute * 60 + moment.second


_FUNCTIONS: Mapping[str, Callable[..., int | None]] = {
    "YEAR": lambda v: _day(v).year,
    "MONTH": lambda v: _day(v).month,
    "QUARTER": lambda v: (_day(v).month + 2) // 3,
    "DAY": lambda v: _day(v).day,
    "DAYOFMONTH": lambda v: _day(v).day,
    "DAYOFWEEK": lambda v: _day(v).isoweekday() % 7 + 1,
    "WEEKDAY": lambda v: _day(v).weekday(),
    "DAYOFYEAR": lambda v: _day(v).timetuple().tm_yday,
    "TO_DAYS": lambda v: _day(v).toordinal() - _DAYS,
    "TO_SECONDS": lambda v: (_day(v).toordinal() - _DAYS) * 86_400 + _seconds(v),
    "DATEDIFF": lambda a, b: _day(a).toordinal() - _day(b).toordinal(),
    "UNIX_TIMESTAMP": _unix,
    "HOUR": lambda v: _moment(v).hour,
    "MINUTE": lambda v: _moment(v).minute,
    "SECOND": lambda v: _moment(v).second,
    "MICROSECOND": lambda v: _moment(v).microsecond,
    "TIME_TO_SEC": _seconds,
    "ABS": abs,
    "MOD": _remainder,
    "FLOOR": lambda v: v,
    "CEILING": lambda v: v,
    "CEIL": lambda v: v,
}
