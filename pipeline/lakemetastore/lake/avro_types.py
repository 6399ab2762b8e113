"""Column types of a table's Avro schema, in Hive's syntax and in Spark's, as Hudi's HiveSync 1.2.0 writes them.

Measured beside Hive Metastore 3.1.3: ``tests/data/golden/hive_sync.json``. Nested types are by Hive's and Spark's own
syntax.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from hudilake.errors import CorruptDataError
from hudilake.format.definition.schema import META_FIELDS

#: A type in Avro's JSON: a name, a union, or a type with parts.
AvroType: TypeAlias = str | Sequence["AvroType"] | Mapping[str, object]
#: A type in the JSON of Spark's schemas.
SparkType: TypeAlias = str | dict[str, object]

_HIVE = {"boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double", "null": "void"}
_HIVE |= {"string": "string", "enum": "string", "bytes": "binary", "fixed": "binary"}
_SPARK = {"boolean": "boolean", "int": "integer", "long": "long", "float": "float", "double": "double", "null": "void"}
_SPARK |= {"string": "string", "enum": "string", "bytes": "binary", "fixed": "binary"}
_LOCAL = ("local-timestamp-millis", "local-timestamp-micros")
_TIMESTAMPS = ("timestamp-millis", "timestamp-micros", *_LOCAL)


@dataclass(frozen=True, slots=True)
class AvroColumn:
    """A column of a table: its name as the table spells it, its type without null, and whether it may be null."""

    name: str
    type: AvroType
    nullable: bool

    def hive_type(self, *, timestamps: bool) -> str:
        """In Hive's syntax. ``timestamps``: whether timestamps are such; else they are ``bigint``, the default of
        HiveSync."""
        return _hive(self.type, timestamps)

    def spark_field(self) -> dict[str, object]:
        """The column in the JSON of Spark's schemas."""
        return {"name": self.name, "type": _spark(self.type), "nullable": self.nullable, "metadata": {}}


def table_columns(avro_json: str, *, with_meta: bool) -> tuple[AvroColumn, ...]:
    """The columns of a table's Avro schema. ``with_meta``: put Hudi's five meta fields first.

    Raises CorruptDataError for a text that is no record schema.
    """
    try:
        record = msgspec.json.decode(avro_json)
        own = [_column(str(field["name"]), field["type"]) for field in record["fields"]]
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise CorruptDataError(
            f"a commit's schema is no Avro record: {error}", do_next="restore the commit's file from a copy"
        ) from error
    meta = [AvroColumn(name, "string", nullable=True) for name in META_FIELDS] if with_meta else []
    return (*meta, *(column for column in own if column.name not in META_FIELDS))


def _column(name: str, kind: AvroType) -> AvroColumn:
    branches, nullable = _branches(kind)
    return AvroColumn(name, branches[0] if len(branches) == 1 else branches, nullable)


def _branches(kind: AvroType) -> tuple[list[AvroType], bool]:
    if isinstance(kind, str | Mapping):
        return [kind], False
    return [branch for branch in kind if branch != "null"], "null" in kind


def _hive(kind: AvroType, timestamps: bool) -> str:
    if isinstance(kind, str):
        return _HIVE.get(kind, "binary")
    if not isinstance(kind, Mapping):
        branches, _ = _branches(kind)
        if len(branches) == 1:
            return _hive(branches[0], timestamps)
        return f"uniontype<{','.join(_hive(branch, timestamps) for branch in branches)}>"
    if (exact := _decimal_or_date(kind)) is not None:
        return exact
    logical, name = kind.get("logicalType"), kind.get("type")
    if logical in _TIMESTAMPS:
        return "timestamp" if timestamps else "bigint"
    match name:
        case "array":
            return f"array<{_hive(_part(kind, 'items'), timestamps)}>"
        case "map":
            return f"map<string,{_hive(_part(kind, 'values'), timestamps)}>"
        case "record":
            fields = (f"{c.name.lower()}:{c.hive_type(timestamps=timestamps)}" for c in _fields(kind))
            return f"struct<{','.join(fields)}>"
        case _:
            return _hive(_part(kind, "type"), timestamps)


def _spark(kind: AvroType) -> SparkType:
    if isinstance(kind, str):
        return _SPARK.get(kind, "binary")
    if not isinstance(kind, Mapping):
        branches, _ = _branches(kind)
        return _spark(branches[0]) if len(branches) == 1 else _union(branches)
    if (exact := _decimal_or_date(kind)) is not None:
        return exact
    logical, name = kind.get("logicalType"), kind.get("type")
    if logical in _TIMESTAMPS:
        return "timestamp_ntz" if logical in _LOCAL else "timestamp"
    match name:
        case "array":
            items = _part(kind, "items")
            return {"type": "array", "elementType": _spark(items), "containsNull": _branches(items)[1]}
        case "map":
            values = _part(kind, "values")
            with_null = _branches(values)[1]
            return {"type": "map", "keyType": "string", "valueType": _spark(values), "valueContainsNull": with_null}
        case "record":
            return {"type": "struct", "fields": [column.spark_field() for column in _fields(kind)]}
        case _:
            return _spark(_part(kind, "type"))


def _decimal_or_date(kind: Mapping[str, object]) -> str | None:
    """A type that Hive and Spark write alike; None for any other."""
    if kind.get("logicalType") == "decimal":
        return f"decimal({kind['precision']},{kind.get('scale', 0)})"
    return "date" if kind.get("logicalType") == "date" else None


def _union(branches: Sequence[AvroType]) -> SparkType:
    """A union of several types is a struct of ``member0``, ``member1``..., as Spark's Avro reader has it."""
    fields = [AvroColumn(f"member{i}", branch, nullable=True).spark_field() for i, branch in enumerate(branches)]
    return {"type": "struct", "fields": fields}


def _fields(record: Mapping[str, object]) -> list[AvroColumn]:
    fields = record["fields"]
    assert isinstance(fields, list)
    return [_column(str(field["name"]), field["type"]) for field in fields]


def _part(kind: Mapping[str, object], name: str) -> AvroType:
    part = kind[name]
    assert isinstance(part, str | list | Mapping)
    return part
