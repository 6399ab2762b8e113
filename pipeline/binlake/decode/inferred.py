"""Columns learned from JSON messages. A column's type is that of the first value; only numbers and texts widen.

The types are texts of MySQL's types, as the settings declare them. Times stay text: their format is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from enum import StrEnum

import msgspec

_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_ANY = msgspec.json.Decoder().decode


class InferredType(StrEnum):
    """The type of a learned column, as the text of MySQL's type."""

    NULL = "null"
    BOOLEAN = "bit(1)"
    INTEGER = "bigint"
    NUMBER = "double"
    TEXT = "longtext"
    #: Text, objects and arrays; the latter two as JSON text.
    DOCUMENT = "json"


_OF_PYTHON: Mapping[type, InferredType] = {
    bool: InferredType.BOOLEAN,
    int: InferredType.INTEGER,
    float: InferredType.NUMBER,
    str: InferredType.TEXT,
    dict: InferredType.DOCUMENT,
    list: InferredType.DOCUMENT,
    type(None): InferredType.NULL,
}
_WIDER = {
    frozenset({InferredType.INTEGER, InferredType.NUMBER}): InferredType.NUMBER,
    frozenset({InferredType.TEXT, InferredType.DOCUMENT}): InferredType.DOCUMENT,
}

#: Column -> type, in the order in which the columns were met.
InferredColumns = Mapping[str, InferredType]


def inferred_columns(images: Iterable[bytes | memoryview]) -> dict[str, InferredType]:
    """The columns of messages that are JSON objects; other messages have none."""
    column_types: dict[str, InferredType] = {}
    for image in images:
        try:
            row = _ANY(image)
        except _BAD:
            continue
        if isinstance(row, dict):
            add_inferred(column_types, {name: _OF_PYTHON[type(value)] for name, value in row.items()})
    return column_types


def add_inferred(known: MutableMapping[str, InferredType], found: InferredColumns) -> None:
    """Add columns to those of earlier messages of one batch."""
    for name, kind in found.items():
        known[name] = widened(known[name], kind) if name in known else kind


def widened(known: InferredType, found: InferredType) -> InferredType:
    """The type that holds values of both; the known one if no type does."""
    if InferredType.NULL in (known, found):
        return found if known is InferredType.NULL else known
    return _WIDER.get(frozenset({known, found}), known)
