"""Conditions on the wire: a tree of JSON objects, or one SQL text. Literals are text with their type, so that no number
or time changes on its way."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from hudilake.errors import ConfigError
from hudilake.read.filters.expressions import (
    And,
    Compare,
    Constant,
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
from lakemetastore.api.base import ApiMessage

#: The deepest nesting of parts that is read.
MAX_DEPTH: Final = 64
#: The most parts of a condition; the values of an ``in`` are none.
MAX_PARTS: Final = 2_000


class LiteralValue(ApiMessage):
    """A literal. ``value``: ``true``/``false``, a number in decimal digits, ISO 8601, base64 for bytes, or text."""

    type: Literal["boolean", "integer", "float", "decimal", "text", "bytes", "date", "timestamp", "time"]
    value: str


class CompareWire(ApiMessage):
    """A column against a literal."""

    kind: Literal["compare"] = "compare"
    column: str
    op: Literal["=", "<>", "<", "<=", ">", ">="]
    value: LiteralValue


class InWire(ApiMessage):
    """A column equal to one of the literals, or to none of them."""

    kind: Literal["in"] = "in"
    column: str
    values: tuple[LiteralValue, ...]
    negated: bool = False


class IsNullWire(ApiMessage):
    """A column that is null, or is not."""

    kind: Literal["is_null"] = "is_null"
    column: str
    negated: bool = False


class StartsWithWire(ApiMessage):
    """A column of text or bytes that begins so, or does not."""

    kind: Literal["starts_with"] = "starts_with"
    column: str
    prefix: LiteralValue
    negated: bool = False


class GroupWire(ApiMessage):
    """All, any or (with one part) the opposite of the parts."""

    kind: Literal["and", "or", "not"]
    parts: tuple[ConditionWire, ...]


class ConstantWire(ApiMessage):
    """The same for every row."""

    kind: Literal["constant"] = "constant"
    value: bool | None


class UnknownWire(ApiMessage):
    """A condition that the reader evaluates by itself: it skips nothing."""

    kind: Literal["unknown"] = "unknown"
    text: str


ConditionWire: TypeAlias = Annotated[
    CompareWire | InWire | IsNullWire | StartsWithWire | GroupWire | ConstantWire | UnknownWire,
    Field(discriminator="kind"),
]
GroupWire.model_rebuild()


def to_wire(part: Filter) -> ConditionWire:
    """A filter as a message."""
    if isinstance(part, Compare):
        return CompareWire(column=part.column, op=part.op.value, value=literal(part.value))
    if isinstance(part, In):
        return InWire(column=part.column, values=tuple(map(literal, part.values)), negated=part.negated)
    if isinstance(part, IsNull):
        return IsNullWire(column=part.column, negated=part.negated)
    if isinstance(part, StartsWith):
        return StartsWithWire(column=part.column, prefix=literal(part.prefix), negated=part.negated)
    if isinstance(part, Not):
        return GroupWire(kind="not", parts=(to_wire(part.part),))
    if isinstance(part, And | Or):
        return GroupWire(kind="and" if isinstance(part, And) else "or", parts=tuple(map(to_wire, part.parts)))
    return ConstantWire(value=part.value) if isinstance(part, Constant) else UnknownWire(text=part.text)


def from_wire(message: ConditionWire) -> Filter:
    """The filter of a message. Raises ConfigError for a literal that its type cannot have, ``not`` with other than one
    part, nesting below MAX_DEPTH and more than MAX_PARTS parts."""
    if (parts := _parts(message)) > MAX_PARTS:
        raise ConfigError(
            f"the condition is too large: it has {parts} parts",
            do_next="write it shorter: one in with many values in place of many comparisons",
            limit=MAX_PARTS,
        )
    return _from_wire(message, 0)


def _parts(message: ConditionWire) -> int:
    return 1 + sum(map(_parts, message.parts)) if isinstance(message, GroupWire) else 1


def _from_wire(message: ConditionWire, depth: int) -> Filter:
    if depth > MAX_DEPTH:
        raise ConfigError("the condition is nested too deep", do_next="write it flatter", limit=MAX_DEPTH)
    if isinstance(message, CompareWire):
        return Compare(message.column, Op(message.op), value_of(message.value))
    if isinstance(message, InWire):
        return In(message.column, tuple(map(value_of, message.values)), message.negated)
    if isinstance(message, IsNullWire):
        return IsNull(message.column, message.negated)
    if isinstance(message, StartsWithWire):
        return _starts_with(message)
    if isinstance(message, ConstantWire):
        return Constant(message.value)
    if isinstance(message, UnknownWire):
        return Unknown(message.text)
    parts = tuple(_from_wire(part, depth + 1) for part in message.parts)
    if message.kind == "not":
        if len(parts) != 1:
            raise ConfigError("not has other than one part", do_next="give it one part")
        return Not(parts[0])
    return And(parts) if message.kind == "and" else Or(parts)


def _starts_with(message: StartsWithWire) -> StartsWith:
    prefix = value_of(message.prefix)
    if not isinstance(prefix, str | bytes):
        raise ConfigError("a prefix is text or bytes", do_next="give a literal of one of these", column=message.column)
    return StartsWith(message.column, prefix, message.negated)


def literal(value: Value) -> LiteralValue:
    """A literal as a message."""
    if isinstance(value, bool):
        return LiteralValue(type="boolean", value=str(value).lower())
    if isinstance(value, int):
        return LiteralValue(type="integer", value=str(value))
    if isinstance(value, float):
        return LiteralValue(type="float", value=repr(value))
    if isinstance(value, Decimal):
        return LiteralValue(type="decimal", value=str(value))
    if isinstance(value, bytes):
        return LiteralValue(type="bytes", value=base64.b64encode(value).decode())
    if isinstance(value, str):
        return LiteralValue(type="text", value=value)
    kind: Literal["timestamp", "date", "time"] = (
        "timestamp" if isinstance(value, datetime) else "date" if isinstance(value, date) else "time"
    )
    return LiteralValue(type=kind, value=value.isoformat())


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text]


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number) and "inf" not in text.lower():
        raise ValueError(text)
    return number


_READ: Final[dict[str, Callable[[str], Value]]] = {
    "boolean": _boolean,
    "integer": int,
    "float": _float,
    "decimal": Decimal,
    "text": str,
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "time": time.fromisoformat,
}


def value_of(message: LiteralValue) -> Value:
    """The literal of a message. Raises ConfigError for a text that its type cannot have."""
    try:
        return _READ[message.type](message.value)
    except (ValueError, KeyError, InvalidOperation) as error:
        raise ConfigError(
            f"{message.value[:100]!r} is no literal of type {message.type}", do_next="correct the literal"
        ) from error
