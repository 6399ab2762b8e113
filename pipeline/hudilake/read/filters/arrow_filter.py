"""Filters of pyarrow's compute expressions.

An expression shows its parts only in its pickled form: a list of calls, fields, literals and options in the metadata of
an IPC schema, with the literals as columns of one row. pyarrow returns metadata as a dictionary, which loses repeated
keys, so it is read through the Arrow C data interface.

Arrow's own rules differ from SQL's in places: comparisons with NaN are false, ``is_in`` is never null. Such a leaf is
joined with ``Unknown``, so that it skips only without a negation.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

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
from hudilake.read.filters.sql_literals import zone

_OPS = {
    "equal": Op.EQ,
    "not_equal": Op.NE,
    "less": Op.LT,
    "less_equal": Op.LE,
    "greater": Op.GT,
    "greater_equal": Op.GE,
}
_JUNCTIONS: dict[str, type[And | Or]] = {"and": And, "and_kleene": And, "or": Or, "or_kleene": Or}


def from_arrow(expression: pc.Expression, schema: pa.Schema) -> Filter:
    """The filter of a pyarrow expression over columns of ``schema``. Unsupported parts become ``Unknown``."""
    try:
        steps = _steps(expression)
        return _Translation(schema).condition(_tree(steps))
    except (pa.ArrowException, LookupError, TypeError, ValueError, StopIteration, AttributeError):
        return Unknown(_text(expression))


def _text(expression: pc.Expression) -> str:
    """The text of an expression. pyarrow cuts long values at any byte, and may then fail to decode its own text."""
    try:
        return str(expression)
    except UnicodeDecodeError as error:
        return bytes(error.object).decode(errors="replace")


@dataclass(frozen=True)
class _Call:
    """A function call: its arguments, and its options as a dictionary if it has any."""

    name: str
    arguments: tuple[_Node, ...]
    options: dict[str, Any]


@dataclass(frozen=True)
class _Field:
    name: str


@dataclass(frozen=True)
class _Literal:
    value: pa.Scalar


_Node: TypeAlias = _Call | _Field | _Literal


@dataclass(frozen=True)
class _Steps:
    """The pickled form: (kind, text) pairs in depth-first order, and the row of literals and options."""

    pairs: list[tuple[str, str]]
    row: pa.RecordBatch


def _steps(expression: pc.Expression) -> _Steps:
    _, (buffer, *_) = expression.__reduce__()
    with pa.ipc.open_file(buffer) as file:
        return _Steps(_metadata(file.schema), file.get_batch(0))


class _CSchema(ctypes.Structure):
    """The head of Arrow's C schema structure."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


def _metadata(schema: pa.Schema) -> list[tuple[str, str]]:
    """Key-value metadata, repeated keys included: a count, then length and bytes of every key and value."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = _CSchema.from_address(pointer(capsule, b"arrow_schema")).metadata
    if not address:
        return []
    texts = []
    count, address = ctypes.c_int32.from_address(address).value, address + 4
    for _ in range(2 * count):
        size = ctypes.c_int32.from_address(address).value
        texts.append(ctypes.string_at(address + 4, size).decode())
        address += 4 + size
    return list(zip(texts[::2], texts[1::2], strict=True))


def _tree(steps: _Steps) -> _Node:
    pairs = iter(steps.pairs)
    return _node(steps, pairs, next(pairs))


def _node(steps: _Steps, pairs: Iterator[tuple[str, str]], step: tuple[str, str]) -> _Node:
    kind, text = step
    if kind == "literal":
        return _Literal(steps.row.column(int(text))[0])
    if kind == "field_ref":
        return _Field(text)
    if kind != "call":
        raise ValueError(f"step {kind}")
    arguments: list[_Node] = []
    options: dict[str, Any] = {}
    for step in pairs:
        if step[0] == "end":
            return _Call(text, tuple(arguments), options)
        if step[0] == "options":
            options = dict(steps.row.column(int(step[1]))[0].items())
        else:
            arguments.append(_node(steps, pairs, step))
    raise ValueError("a call without an end")


@dataclass(frozen=True)
class _Translation:
    schema: pa.Schema

    def condition(self, node: _Node) -> Filter:
        """The filter of a node that gives true or false."""
        if isinstance(node, _Field):
            field = self._field(node)
            is_boolean_field = field is not None and pa.types.is_boolean(field.type)
            return Compare(node.name, Op.EQ, True) if is_boolean_field else Unknown(node.name)
        if isinstance(node, _Literal):
            value = node.value
            return Constant(value.as_py()) if pa.types.is_boolean(value.type) else Unknown(str(value))
        return self._call(node) or Unknown(_shown(node))

    def _call(self, node: _Call) -> Filter | None:
        if node.name in _JUNCTIONS:
            return _JUNCTIONS[node.name](tuple(self.condition(part) for part in node.arguments))
        if node.name == "invert":
            return Not(self.condition(node.arguments[0]))
        if node.name in _OPS:
            return self._compare(node)
        field = self._field(node.arguments[0]) if len(node.arguments) == 1 else None
        if field is None:
            return None
        if node.name in ("is_null", "is_valid"):
            plain = not pa.types.is_floating(field.type)
            return IsNull(field.name, negated=node.name == "is_valid") if plain else None
        if node.name == "is_in":
            return self._is_in(node, field)
        return _starts_with(node, field)

    def _field(self, node: _Node) -> pa.Field | None:
        if not isinstance(node, _Field) or self.schema.get_field_index(node.name) < 0:
            return None
        return self.schema.field(node.name)

    def _compare(self, node: _Call) -> Filter | None:
        op, (left, right) = _OPS[node.name], node.arguments
        if not isinstance(left, _Field):
            op, left, right = op.flipped, right, left
        field = self._field(left)
        if field is None or not isinstance(right, _Literal):
            return None
        if not right.value.is_valid:
            return Constant(None)
        return _compared(field, op, right.value, _shown(node))

    def _is_in(self, node: _Call, field: pa.Field) -> Filter | None:
        values = node.options["value_set"].values
        integers = pa.types.is_integer(values.type) and pa.types.is_integer(field.type)
        if not (integers or values.type == field.type) or pa.types.is_floating(field.type) or values.null_count:
            return None
        members = [_python(item) for item in values]
        return And((In(field.name, tuple(members)), Unknown(_shown(node))))


def _compared(field: pa.Field, op: Op, literal: pa.Scalar, text: str) -> Filter | None:
    """Exact if Arrow compares without a cast that rounds."""
    value, kind = _python(literal), literal.type
    numbers = (pa.types.is_integer, pa.types.is_decimal)
    same = field.type == kind or any(check(field.type) and check(kind) for check in numbers)
    if same and not pa.types.is_floating(kind):
        return Compare(field.name, op, value)
    number = any(check(field.type) for check in (*numbers, pa.types.is_floating))
    if number and isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return zone(field, op, value, text)
    return None


def _python(literal: pa.Scalar) -> Value:
    """The literal as a Python value. Raises TypeError for types that filters do not support, as nanoseconds."""
    if pa.types.is_timestamp(literal.type) and literal.type.unit == "ns":
        raise TypeError("nanoseconds")
    value: object = literal.as_py()
    if not isinstance(value, bool | int | float | Decimal | str | bytes | date | datetime):
        raise TypeError(f"a literal of type {literal.type}")
    return value


def _starts_with(node: _Call, field: pa.Field) -> Filter | None:
    text = pa.types.is_string(field.type)
    if node.name != "starts_with" or not text or node.options["ignore_case"].as_py():
        return None
    pattern = node.options["pattern"].as_py()
    return StartsWith(field.name, pattern.decode() if isinstance(pattern, bytes) else pattern)


def _shown(node: _Node) -> str:
    if isinstance(node, _Field):
        return node.name
    if isinstance(node, _Call):
        return f"{node.name}({', '.join(map(_shown, node.arguments))})"
    return str(node.value)
