"""Avro schemas of Kafka Connect's converter -> the Connect schemas that they were made from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import fastavro

from binlake.decode.templates.avro_check import AvroCheck, avro_check
from binlake.decode.types.columns import ConnectField

_PRIMITIVES = {
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
    "fixed": "bytes",
    "enum": "string",
    "array": "array",
    "map": "map",
    "record": "struct",
}


@dataclass(frozen=True, eq=False)
class WriterSchema:
    """A parsed schema that is ready for reading, its Connect schema, and the check of its records."""

    parsed: Any
    connect: ConnectField
    check: AvroCheck


@lru_cache(maxsize=512)
def writer_schema(text: str) -> WriterSchema:
    """Parse the registry's schema text, once for each text. Raises ValueError if it is not an Avro schema."""
    try:
        document = json.loads(text)
        connect = _field(document, "", {}, "")
        check_bounded(document)
        parsed = fastavro.parse_schema(without_logical_types(document))
        return WriterSchema(parsed, connect, avro_check(parsed))
    except (ValueError, KeyError, TypeError, RecursionError, fastavro.schema.SchemaParseException) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def without_logical_types(node: Any) -> Any:  # noqa: ANN401 - JSON
    """The schema with wire values only: the Avro reader would turn logical types into dates and Decimals."""
    if isinstance(node, dict):
        return {k: without_logical_types(v) for k, v in node.items() if k not in ("logicalType", "default")}
    return [without_logical_types(part) for part in node] if isinstance(node, list) else node


def check_bounded(node: Any, around: frozenset[str] = frozenset()) -> None:  # noqa: ANN401 - JSON
    """Raise ValueError for a schema by which a few bytes become a value without bounds.

    Such are an array whose items may take no bytes (``null``, an empty record), because a message could then have
    2**62 of them, and a record inside itself, because it could then be nested deeper than the reader's stack. Kafka
    Connect writes neither. ``around``: names of the records that the node is in, without namespace.
    """
    if isinstance(node, list):
        for part in node:
            check_bounded(part, around)
    elif isinstance(node, str):
        if node.rpartition(".")[2] in around:
            raise ValueError("a record inside itself")
    elif isinstance(node, dict):
        kind = node.get("type")
        if kind == "array" and not _takes_bytes(node.get("items")):
            raise ValueError("an array of items without bytes")
        if kind in ("record", "error"):
            inside = around | {str(node.get("name")).rpartition(".")[2]}
            for field in node.get("fields", ()):
                check_bounded(field["type"], inside)
        else:
            for part in (kind, node.get("items"), node.get("values")):
                check_bounded(part, around)


def _takes_bytes(items: Any) -> bool:  # noqa: ANN401 - JSON
    if isinstance(items, list):
        return True  # a union begins with the number of its branch
    if isinstance(items, str):
        return items in _PRIMITIVES
    kind = items["type"]
    if kind == "record":
        return any(_takes_bytes(field["type"]) for field in items["fields"])
    return items["size"] > 0 if kind == "fixed" else _takes_bytes(kind)


def _field(node: Any, name: str, named: dict[str, ConnectField], space: str) -> ConnectField:  # noqa: ANN401 - JSON
    """One schema node as the field ``name``. ``named``: records read so far, by full name."""
    if isinstance(node, list):
        (only,) = [branch for branch in node if branch != "null"]
        return _field(only, name, named, space)
    if isinstance(node, str):
        known = named.get(_full_name(node, space))
        if known is not None:
            return ConnectField(known.type, known.name, name, known.parameters, known.fields)
        return ConnectField(_PRIMITIVES[node], None, name)
    kind = node["type"]
    if not isinstance(kind, str) or kind not in _PRIMITIVES:
        return _field(kind, name, named, space)
    parameters = {str(k): str(v) for k, v in node.get("connect.parameters", {}).items()}
    connect_type = node.get("connect.type") or _PRIMITIVES[kind]
    if kind == "bytes" and node.get("logicalType") == "decimal":
        parameters = {**_decimal_parameters(node), **parameters}
    logical = node.get("connect.name") or _LOGICAL.get(node.get("logicalType", ""))
    if kind != "record":
        return ConnectField(connect_type, logical, name, parameters)
    space = node.get("namespace", space)
    full = _full_name(node["name"], space)
    fields = tuple(_field(f["type"], f["name"], named, full.rpartition(".")[0]) for f in node["fields"])
    struct_field = ConnectField("struct", logical, name, parameters, fields)
    named[full] = struct_field
    return struct_field


#: Avro's own logical types, used where the schema names no Connect type.
_LOGICAL = {
    "decimal": "org.apache.kafka.connect.data.Decimal",
    "date": "org.apache.kafka.connect.data.Date",
    "time-millis": "org.apache.kafka.connect.data.Time",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "time-micros": "io.debezium.time.MicroTime",
    "timestamp-micros": "io.debezium.time.MicroTimestamp",
}


def _decimal_parameters(node: Mapping[str, Any]) -> dict[str, str]:
    return {"scale": str(node.get("scale", 0)), "connect.decimal.precision": str(node.get("precision", 64))}


def _full_name(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"
