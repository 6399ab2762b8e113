"""Constants of column definitions as lake values: the values that old rows of an added column have in the source."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal, Inexact, InvalidOperation, localcontext
from typing import Any

import pyarrow as pa

from binlake.decode.ddl.columns import ColumnDefinition, Default
from binlake.decode.types.mysql_types import MysqlType
from binlake.decode.types.zero_dates import texts_of
from hudilake.errors import UnsupportedError

_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "year", "bool")
_TEXTS = ("char", "varchar", "text", "json", "set", "uuid")
_BYTES = ("binary", "varbinary", "blob")
#: What a connector's process writes for characters that its charset lacks: Java reads a statement's text so.
UNREAD = "\ufffd"
#: Of a number that is looked at: 1e999999999 would be one of a billion digits.
_MOST_DIGITS = 400


def constant_of(column: ColumnDefinition) -> pa.Scalar:
    """The value of an added column in rows that existed before it, as a scalar of the column's lake type.

    This is the column's default. Without a default it is NULL, or for NOT NULL the value that MySQL uses for the type.

    Raises UnsupportedError, with the reason, where the constant is unknown: the default is computed, its text
    has characters that the connector could not read, or a TIMESTAMP's text is without an offset, so that it depends on
    a session's time zone.
    """
    kind = column.type
    if kind is None:
        raise UnsupportedError(f"the type {column.type_text} has no place in the lake")
    if column.default is Default.COMPUTED:
        raise UnsupportedError(f"{column.computed} is no constant")
    if column.default is Default.CONSTANT and column.literal is not None:
        return _scalar(_value(kind, column.literal, column.as_bytes), kind, column.literal)
    if column.nullable:
        return pa.scalar(None, kind.lake_type)
    return _scalar(_implicit(kind), kind, "the type's own default")


def _scalar(value: Any, kind: MysqlType, said: str) -> pa.Scalar:  # noqa: ANN401 - any lake type
    try:
        if kind.dates_as_text:
            dated = pa.array([value], replace(kind, dates_as_text=False).lake_type)
            return texts_of(dated)[0]
        return pa.scalar(value, kind.lake_type)
    except (pa.ArrowException, OverflowError) as error:
        raise UnsupportedError(f"{said!r} does not fit {kind.text}") from error


def _value(kind: MysqlType, literal: str, as_bytes: bool) -> Any:  # noqa: ANN401 - any lake type
    if UNREAD in literal:
        raise UnsupportedError(f"the connector could not read the characters of {literal!r}")
    try:
        if as_bytes:
            return _of_bytes(kind, literal)
        return _of_text(kind, literal)
    except (ValueError, ArithmeticError) as error:
        raise UnsupportedError(f"{literal!r} cannot be read as {kind.text}") from error


def _of_text(kind: MysqlType, literal: str) -> Any:  # noqa: ANN401 - any lake type
    if kind.base in _TEXTS:
        return literal.rstrip(" ") if kind.base == "char" else literal
    if kind.base == "enum":
        return _option(kind, literal)
    if kind.base in _INTEGERS or kind.base == "bit":
        number = _integer(literal)
        return _bits(kind, number) if kind.base == "bit" else number
    if kind.base == "decimal":
        exact = _exact(literal, kind.scale or 0)
        return exact if pa.types.is_decimal(kind.lake_type) else f"{exact:f}"
    if kind.base in ("float", "double"):
        return float(literal)
    if kind.base in _BYTES:
        return _padded(kind, literal.encode())
    if kind.base == "date":
        return date.fromisoformat(literal)
    if kind.base == "datetime":
        return _stamp(literal, kind.length or 0)
    if kind.base == "timestamp" and literal.endswith("+00:00"):
        return datetime.fromisoformat(literal)
    if kind.base == "time":
        return _time(literal)
    raise UnsupportedError(f"a constant of type {kind.text} cannot be told")


def _of_bytes(kind: MysqlType, literal: str) -> Any:  # noqa: ANN401 - any lake type
    digits = literal[2:].removesuffix("'")
    base = 16 if literal[0] in "xX" or literal[:2] == "0x" else 2
    number = int(digits or "0", base)
    if kind.base == "bit":
        return _bits(kind, number)
    if kind.base in _BYTES:
        size = -(-len(digits) // 2) if base == 16 else -(-len(digits) // 8)
        return _padded(kind, number.to_bytes(size, "big"))
    if kind.base in _INTEGERS:
        return number
    raise UnsupportedError(f"{literal} as {kind.text} cannot be told")


def _option(kind: MysqlType, literal: str) -> str:
    choice = next((option for option in kind.options if option.lower() == literal.lower()), None)
    if choice is None:
        raise ValueError(literal)
    return choice


def _integer(literal: str) -> int:
    number = Decimal(literal)
    if number.adjusted() > _MOST_DIGITS or number != number.to_integral_value():
        raise ValueError(literal)
    return int(number)


def _bits(kind: MysqlType, number: int) -> bool | bytes:
    length = kind.length or 1
    return bool(number) if length == 1 else number.to_bytes(-(-length // 8), "big")


def _padded(kind: MysqlType, data: bytes) -> bytes:
    return data.ljust(kind.length or 1, b"\0") if kind.base == "binary" else data


def _exact(literal: str, scale: int) -> Decimal:
    with localcontext() as context:
        context.prec, context.traps[Inexact], context.traps[InvalidOperation] = 100, True, True
        return Decimal(literal).quantize(Decimal(1).scaleb(-scale))


def _stamp(literal: str, digits: int) -> datetime:
    moment = datetime.fromisoformat(literal)
    if moment.tzinfo is not None or moment.microsecond % 10 ** (6 - digits):
        raise ValueError(literal)
    return moment.replace(tzinfo=UTC)


def _time(literal: str) -> int:
    sign, text = (-1, literal[1:]) if literal.startswith("-") else (1, literal)
    whole, _, fraction = text.partition(".")
    hours, minutes, seconds = (int(part) for part in whole.split(":"))
    return sign * (((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int(fraction.ljust(6, "0")[:6] or 0))


def _implicit(kind: MysqlType) -> Any:  # noqa: ANN401 - any lake type
    """The value that MySQL uses for a NOT NULL column without a default."""
    if kind.base in ("char", "varchar", "text", "set"):
        return ""
    if kind.base in _BYTES:
        return _padded(kind, b"")
    if kind.base == "enum" and kind.options:
        return kind.options[0]
    if kind.base in _INTEGERS or kind.base in ("decimal", "float", "double", "time", "bit"):
        return _of_text(kind, "00:00:00" if kind.base == "time" else "0")
    raise UnsupportedError(f"what {kind.text} NOT NULL without a default holds in old rows cannot be told")
