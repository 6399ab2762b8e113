"""Derives the next schema of a lake table from the present schema and from the incoming columns.

Columns are added (old rows read as null). Columns are widened if both judges read old files under the new type
(measured). A column that no longer comes stays in the table and is null in new rows.
"""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa

from binlake.settings.schema_changes import SchemaChangeSettings
from hudilake.errors import UnsupportedError

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_FLOATS = (pa.float32(), pa.float64())
_DEFAULT = SchemaChangeSettings()
_MAX_DIGITS = 38
_FOR_TYPES = (
    "load the table again under a new path, or map the column's type in source.schemas; "
    "a column of a wide table (tables.cells) needs another name"
)
_FOR_DATES = (
    "if source.zero_dates was changed to text, change it back, or load the table again under a new path; "
    "else map the column's type in source.schemas"
)


class TypeChange(StrEnum):
    """The relation of a column's new type to its type in the lake."""

    SAME = "same"
    WIDER = "wider"
    NARROWER = "narrower"
    OTHER = "other"


def evolved(current: pa.Schema, incoming: pa.Schema, rule: SchemaChangeSettings = _DEFAULT) -> pa.Schema:
    """``current`` with the new columns and wider types of ``incoming``; ``current`` itself if it holds them already.

    Raises UnsupportedError if a column's types have no common type, or the rule refuses the change. A narrower type is
    never refused here: rows from before a change may come late.
    """
    fields = {f.name: f for f in current}
    for field in incoming:
        known = fields.get(field.name)
        if known is None:
            if rule.add == "refuse":
                raise _refused(f"column {field.name!r} is new, and schema_changes.add is refuse")
            fields[field.name] = field.with_nullable(True)
        elif known.type != field.type:
            common, change = common_type(known.type, field.type, rule)
            if common is None:
                raise UnsupportedError(
                    f"column {field.name!r} was {known.type} and now comes as {field.type}",
                    do_next=_FOR_DATES if pa.types.is_temporal(known.type) else _FOR_TYPES,
                )
            if change is TypeChange.WIDER and rule.widen == "refuse":
                raise _refused(f"column {field.name!r} comes as {field.type}, and schema_changes.widen is refuse")
            fields[field.name] = known.with_type(common)
    result = pa.schema(list(fields.values()))
    return current if result == current else result


def _refused(what: str) -> UnsupportedError:
    return UnsupportedError(what, do_next="allow it in tables.overrides, then run `binlake quarantine replay`")


def common_type(
    known: pa.DataType, incoming: pa.DataType, rule: SchemaChangeSettings = _DEFAULT
) -> tuple[pa.DataType | None, TypeChange]:
    """The type that holds the values of both types (None if there is none), and the kind of the change."""
    if known == incoming:
        return known, TypeChange.SAME
    for ladder in (_INTEGERS, _FLOATS):
        if known in ladder and incoming in ladder:
            wider = ladder.index(incoming) > ladder.index(known)
            return (incoming, TypeChange.WIDER) if wider else (known, TypeChange.NARROWER)
    if pa.types.is_decimal(known) and pa.types.is_decimal(incoming):
        return _common_decimal(known, incoming)
    if rule.convert == "string" and {True} == {k in _INTEGERS or k == pa.string() for k in (known, incoming)}:
        return pa.string(), TypeChange.OTHER
    return None, TypeChange.OTHER


def _common_decimal(known: pa.DataType, incoming: pa.DataType) -> tuple[pa.DataType | None, TypeChange]:
    scale = max(known.scale, incoming.scale)
    precision = scale + max(known.precision - known.scale, incoming.precision - incoming.scale)
    if precision > _MAX_DIGITS:
        return None, TypeChange.OTHER
    common = pa.decimal128(precision, scale)
    return common, TypeChange.NARROWER if common == known else TypeChange.WIDER


def retyped(current: pa.Schema, new: pa.Schema) -> list[str]:
    """The columns that both schemas have with different types."""
    if new is current:
        return []
    known = dict(zip(current.names, current.types, strict=True))
    return [f.name for f in new if f.name in known and known[f.name] != f.type]
