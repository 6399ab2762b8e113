"""Table schemas: Arrow <-> the Avro JSON that Hudi keeps in commits and log blocks."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

import pyarrow as pa

from hudilake.errors import UnsupportedError

META_FIELDS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
COMMIT_TIME_FIELD = "_hoodie_commit_time"
RECORD_KEY_FIELD = "_hoodie_record_key"

_AVRO_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_PLAIN: dict[pa.DataType, str | dict[str, str]] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
    pa.timestamp("us", tz="UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("ms", tz="UTC"): {"type": "long", "logicalType": "timestamp-millis"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}
_FROM_AVRO: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_FROM_LOGICAL: dict[str, pa.DataType] = {
    "date": pa.date32(),
    "time-micros": pa.time64("us"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "timestamp-millis": pa.timestamp("ms", tz="UTC"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
}


def sanitize_name(name: str) -> str:
    """A table name as an Avro name: characters Avro refuses become ``__`` (``HoodieSchemaUtils.sanitizeName``)."""
    if re.match(r"[^A-Za-z_]", name):
        name = re.sub(r"[^A-Za-z_]", "__", name, count=1)
    return re.sub(r"[^A-Za-z0-9_]", "__", name)


@lru_cache(maxsize=512)
def avro_schema(arrow_schema: pa.Schema, table_name: str, with_meta: bool) -> str:
    """The Avro JSON of a table's records.

    Args:
        arrow_schema: the table's own columns, without the meta fields.
        table_name: gives the record its name, ``hoodie.<name>.<name>_record``.
        with_meta: put the five meta fields in front (log blocks and base files have them, commit metadata does not).

    Raises UnsupportedError for a column type Hudi's readers cannot take.
    """
    table = sanitize_name(table_name)
    record, namespace = f"{table}_record", f"hoodie.{table}"
    meta: list[dict[str, Any]] = [
        {"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_FIELDS if with_meta
    ]
    own = [_avro_field(f, f"{namespace}.{record}.{f.name}") for f in arrow_schema]
    schema = {"type": "record", "name": record, "namespace": namespace, "fields": meta + own}
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def _avro_field(field: pa.Field, namespace: str) -> dict[str, Any]:
    if not _AVRO_NAME.match(field.name):
        raise UnsupportedError(
            f"column name {field.name!r} is not a valid Avro name", do_next="map the column to another name"
        )
    kind = _avro_type(field, namespace)
    if not field.nullable:
        return {"name": field.name, "type": kind}
    return {"name": field.name, "type": ["null", kind], "default": None}


def _avro_type(field: pa.Field, namespace: str) -> str | dict[str, Any]:
    plain = _PLAIN.get(field.type)
    if plain is not None:
        return plain
    if pa.types.is_decimal128(field.type):
        precision, scale = field.type.precision, field.type.scale
        return {
            "type": "fixed",
            "name": "fixed",
            "namespace": namespace,
            "size": decimal_bytes(precision),
            "logicalType": "decimal",
            "precision": precision,
            "scale": scale,
        }
    if (
        pa.types.is_map(field.type)
        and field.type.key_type == pa.string()
        and not pa.types.is_nested(field.type.item_type)
    ):
        values = _avro_type(field.type.item_field.with_name(field.name), namespace)
        return {"type": "map", "values": ["null", values]}
    raise UnsupportedError(
        f"column {field.name} has type {field.type}, which the table cannot hold", do_next="map the column's type"
    )


def decimal_bytes(precision: int) -> int:
    """The least number of bytes whose two's complement holds every decimal of that precision."""
    return (int(10**precision).bit_length() + 8) // 8


@lru_cache(maxsize=512)
def arrow_schema(avro_json: str) -> pa.Schema:
    """The Arrow schema of an Avro record schema, meta fields included if it has them.

    Raises UnsupportedError for nested and other types that a table of binlake never holds.
    """
    fields = json.loads(avro_json)["fields"]
    return pa.schema([_arrow_field(f["name"], f["type"]) for f in fields])


def _arrow_field(name: str, kind: Any) -> pa.Field:  # noqa: ANN401 - Avro JSON
    if isinstance(kind, list):
        branches = [branch for branch in kind if branch != "null"]
        if len(branches) != 1:
            raise UnsupportedError(f"column {name} has the Avro type {kind}", do_next="read the table with Hudi")
        return pa.field(name, _arrow_type(name, branches[0]), nullable="null" in kind)
    return pa.field(name, _arrow_type(name, kind), nullable=False)


def _arrow_type(name: str, kind: Any) -> pa.DataType:  # noqa: ANN401 - Avro JSON
    if isinstance(kind, dict):
        logical = kind.get("logicalType")
        if logical == "decimal":
            return pa.decimal128(kind["precision"], kind.get("scale", 0))
        if logical in _FROM_LOGICAL:
            return _FROM_LOGICAL[logical]
        if kind["type"] == "map":
            return _arrow_map(name, kind["values"])
        kind = kind["type"]
    if isinstance(kind, str) and kind in _FROM_AVRO:
        return _FROM_AVRO[kind]
    raise UnsupportedError(f"column {name} has the Avro type {kind}", do_next="read the table with Hudi")


def _arrow_map(name: str, values: Any) -> pa.DataType:  # noqa: ANN401 - Avro JSON
    item = _arrow_field(name, values).type
    if isinstance(item, pa.MapType):
        raise UnsupportedError(f"column {name} is a map of maps", do_next="read the table with Hudi")
    return pa.map_(pa.string(), item)


def value_schema(schema: pa.Schema) -> pa.Schema:
    """The schema without the meta fields."""
    return pa.schema([f for f in schema if f.name not in META_FIELDS])


def check_evolution(old: pa.Schema, new: pa.Schema) -> None:
    """Raise UnsupportedError unless files written under ``old`` can be read correctly under ``new``.

    Allowed: columns added as nullable, columns dropped, reordering, int to long, float to double, whole numbers to
    string, wider decimals. Hudi Spark reads all of these; hudi-rs 0.5.0 fails on a file group that holds, in log files
    alone, a decimal in two widths, or a widened column together with a new one: compact such tables first. Not checked:
    a dropped column name that is used again.
    """
    before = {f.name: f for f in old}
    for item in new:
        previous = before.get(item.name)
        if previous is None and not item.nullable:
            raise UnsupportedError(f"column {item.name} is new and not nullable", do_next="add it as nullable")
        if previous is not None and not _widens(previous.type, item.type):
            raise UnsupportedError(
                f"column {item.name} cannot change from {previous.type} to {item.type}",
                do_next="keep the type, widen it, or load the table again under a new path",
            )


def _widens(old: pa.DataType, new: pa.DataType) -> bool:
    if old == new or avro_type(old) == avro_type(new):
        return True
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        return bool(new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale)
    if pa.types.is_signed_integer(old):
        return bool(pa.types.is_string(new) or (pa.types.is_signed_integer(new) and new.bit_width > old.bit_width))
    return bool(old == pa.float32() and new == pa.float64())


def avro_type(kind: pa.DataType) -> str | dict[str, Any]:
    """The Avro type that stores values of an Arrow type."""
    return _avro_type(pa.field("x", kind), "x")
