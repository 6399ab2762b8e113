"""Avro schemas of records that are no change events -> the columns of their fields.

Primitive and logical types become the lake's types (Avro specification 1.12, "Logical Types"). A field that holds
records, arrays, maps, or values of several types is kept as JSON text. Its logical types are left as they are stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa

from binlake.decode.changes import Column
from binlake.decode.formats.avro_schema import check_bounded, without_logical_types
from binlake.decode.templates.avro_check import AvroCheck, avro_check
from binlake.decode.types.mysql_types import UTC_MICROSECONDS, decimal_lake_type
from binlake.decode.types.wires import JSON_TEXT

_PRIMITIVES: Mapping[str, tuple[str, pa.DataType]] = {
    "boolean": ("bool", pa.bool_()),
    "int": ("int", pa.int32()),
    "long": ("int", pa.int64()),
    "float": ("float32", pa.float32()),
    "double": ("float64", pa.float64()),
    "string": ("string", pa.string()),
    "enum": ("string", pa.string()),
    "bytes": ("base64", pa.binary()),
    "fixed": ("base64", pa.binary()),
}
_LOGICAL: Mapping[tuple[str, str], tuple[str, pa.DataType]] = {
    ("int", "date"): ("date_days", pa.date32()),
    ("int", "time-millis"): ("time_ms", pa.int64()),
    ("long", "time-micros"): ("time_us", pa.int64()),
    **{
        ("long", f"{prefix}timestamp-{unit}"): (wire, UTC_MICROSECONDS)
        for prefix in ("", "local-")
        for unit, wire in (("millis", "epoch_ms"), ("micros", "epoch_us"), ("nanos", "epoch_ns"))
    },
}


@dataclass(frozen=True, eq=False)
class PlainSchema:
    """A parsed schema that is ready for reading, the columns of its fields, and the check of its records.

    ``columns``: for a schema that is no record, one column without a name.
    """

    parsed: Any
    columns: tuple[Column, ...]
    check: AvroCheck
    record: bool


@lru_cache(maxsize=512)
def plain_schema(text: str) -> PlainSchema:
    """Parse a schema's text, once for each text. Raises ValueError if it is not an Avro schema."""
    try:
        document = json.loads(text)
        parsed = fastavro.parse_schema(without_logical_types(document))
        check_bounded(document)
        named: dict[str, Any] = {}
        full: Any = fastavro.parse_schema(document, named)  # references become full names
        record = isinstance(full, dict) and full.get("type") == "record"
        fields = full["fields"] if record else [{"name": "", "type": full}]
        columns = tuple(_column(field["name"], field["type"], named) for field in fields)
        return PlainSchema(parsed, columns, avro_check(parsed), record)
    except (ValueError, KeyError, TypeError, RecursionError, fastavro.schema.SchemaParseException) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _column(name: str, node: Any, named: dict[str, Any]) -> Column:  # noqa: ANN401 - JSON
    """``named``: the schema's named types, by full name."""
    if isinstance(node, list):
        branches = [branch for branch in node if branch != "null"]
        return _column(name, branches[0], named) if len(branches) == 1 else _document(name)
    if isinstance(node, str):
        return _typed(name, named.get(node, {"type": node}))
    kind = node["type"]
    return _typed(name, node) if isinstance(kind, str) else _column(name, kind, named)


def _typed(name: str, node: Mapping[str, Any]) -> Column:
    kind, logical = node["type"], str(node.get("logicalType", ""))
    if logical == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = int(node["precision"]), int(node.get("scale", 0))
        text = f"decimal({precision},{scale})"
        return Column(name, "decimal_base64", decimal_lake_type(precision, scale), text, scale, precision)
    wire, lake_type = _LOGICAL.get((kind, logical)) or _PRIMITIVES.get(kind) or (JSON_TEXT, pa.string())
    return Column(name, wire, lake_type, logical or kind)


def _document(name: str) -> Column:
    return Column(name, JSON_TEXT, pa.string(), "union")
