"""Types: Arrow <-> Avro, as Hudi's schemas spell them. The one home of what a column may hold.

Nested types are lists (Avro arrays), structs (records), maps with text as keys, and bytes of one length (fixed). Named
Avro types get the names that Hudi's Spark writer gives them: a record that of its field, in the name of what is around
it (``HoodieSchemaConverters``). Avro's logical types ``variant`` and ``vector`` are read as what they are stored as: a
struct of two binaries, bytes of one length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from hudilake.errors import UnsupportedError

#: A type as Avro's JSON has it.
AvroJson: TypeAlias = Any

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
#: What stores the values of a logical type.
_STORED_AS: dict[str, str] = {"date": "int", "uuid": "string"}
#: Logical types that are read as what stores them. A commit of binlake would not keep what they mean.
_AS_STORED = frozenset({"variant", "vector"})
#: Logical types of numbers that binlake has no type for: their numbers alone say something else.
_UNKNOWN_TIMES = ("time-millis", "local-timestamp-millis", "timestamp-nanos", "local-timestamp-nanos")


def avro_field(field: pa.Field, around: str) -> dict[str, AvroJson]:
    """A field of a record. ``around``: the full name of the record.

    Raises UnsupportedError for a name or a type that Hudi's readers cannot take.
    """
    if not _AVRO_NAME.match(field.name):
        raise UnsupportedError(
            f"column name {field.name!r} is not a valid Avro name", do_next="map the column to another name"
        )
    kind = _nullable(field, field.name, around)
    return {"name": field.name, "type": kind, "default": None} if field.nullable else {"name": field.name, "type": kind}


def avro_type(kind: pa.DataType) -> AvroJson:
    """The Avro type that stores values of an Arrow type. Raises UnsupportedError if there is none."""
    return _avro_type(kind, "x", "x")


def _nullable(field: pa.Field, name: str, around: str) -> AvroJson:
    kind = _avro_type(field.type, name, around)
    return ["null", kind] if field.nullable else kind


def _avro_type(kind: pa.DataType, name: str, around: str) -> AvroJson:
    """``name``: of the column or the nested field that has the type; ``around``: the full name of its record."""
    plain = _PLAIN.get(kind)
    if plain is not None:
        return plain
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        size = decimal_bytes(kind.precision)
        return _fixed(name, around, size) | {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_fixed_size_binary(kind):
        return _fixed(name, around, kind.byte_width)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": _nullable(kind.value_field, name, around)}
    if pa.types.is_map(kind) and kind.key_type == pa.string():
        return {"type": "map", "values": _nullable(kind.item_field, name, around)}
    if pa.types.is_struct(kind) and kind.num_fields:
        _check_names(name, kind)
        fields = [avro_field(field, f"{around}.{name}") for field in kind]
        return {"type": "record", "name": name, "namespace": around, "fields": fields}
    raise UnsupportedError(
        f"column {name} has type {kind}, which the table cannot hold", do_next="map the column's type"
    )


def _fixed(name: str, around: str, size: int) -> dict[str, AvroJson]:
    return {"type": "fixed", "name": "fixed", "namespace": f"{around}.{name}", "size": size}


def _check_names(name: str, kind: pa.StructType) -> None:
    if len({field.name.lower() for field in kind}) != kind.num_fields:
        raise UnsupportedError(
            f"column {name} has two fields whose names are equal, or differ only in case",
            do_next="give one of the fields another name",
        )


def decimal_bytes(precision: int) -> int:
    """The least number of bytes whose two's complement holds every decimal of that precision."""
    return (int(10**precision).bit_length() + 8) // 8


def arrow_fields(record: Mapping[str, AvroJson]) -> list[pa.Field]:
    """The fields of an Avro record. Raises UnsupportedError for a type that is not known."""
    return _ArrowTypes().fields(record, "")


class _ArrowTypes:
    """Arrow types of one Avro schema, which names a type where it is defined and refers to it by that name."""

    def __init__(self) -> None:
        self._named: dict[str, pa.DataType] = {}

    def fields(self, record: Mapping[str, AvroJson], space: str) -> list[pa.Field]:
        """``space``: the namespace around the record."""
        inner = _space(record, space)
        return [self._field(str(field["name"]), field["type"], inner) for field in record["fields"]]

    def _field(self, name: str, kind: AvroJson, space: str) -> pa.Field:
        if not isinstance(kind, list):
            return pa.field(name, self._type(name, kind, space), nullable=False)
        branches = [branch for branch in kind if branch != "null"]
        if len(branches) != 1:
            raise _unknown(name, kind)
        return pa.field(name, self._type(name, branches[0], space), nullable="null" in kind)

    def _type(self, name: str, kind: AvroJson, space: str) -> pa.DataType:
        if isinstance(kind, str):
            known = _FROM_AVRO.get(kind) or self._named.get(kind) or self._named.get(f"{space}.{kind}")
            if known is None:
                raise _unknown(name, kind)
            return known
        made = self._of_definition(name, kind, space)
        if kind["type"] in ("record", "fixed"):
            self._named[".".join(filter(None, (_space(kind, space), kind["name"].rpartition(".")[2])))] = made
        return made

    def _of_definition(self, name: str, kind: Mapping[str, AvroJson], space: str) -> pa.DataType:
        logical, base = kind.get("logicalType"), kind["type"]
        if logical == "decimal":
            return pa.decimal128(kind["precision"], kind.get("scale", 0))
        if logical in _FROM_LOGICAL and base == _STORED_AS.get(logical, "long"):
            return _FROM_LOGICAL[logical]
        if base == "map":
            return pa.map_(pa.string(), self._field("value", kind["values"], space))
        if base == "array":
            return pa.list_(self._field("element", kind["items"], space))
        if base == "record" and kind["fields"] and logical in (None, *_AS_STORED):
            return pa.struct(self.fields(kind, space))
        if base == "fixed" and logical in (None, *_AS_STORED):
            return pa.binary(kind["size"])
        if isinstance(base, str) and base in _FROM_AVRO and logical not in _UNKNOWN_TIMES:
            return _FROM_AVRO[base]
        raise _unknown(name, dict(kind))


def read_only_type(schema: AvroJson) -> str | None:
    """The logical type in an Avro schema whose meaning a commit of binlake would not keep; None if there is none."""
    if isinstance(schema, dict) and schema.get("logicalType") in _AS_STORED:
        return str(schema["logicalType"])
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return next(filter(None, map(read_only_type, parts)), None)


def _space(named: Mapping[str, AvroJson], around: str) -> str:
    space: str | None = named.get("namespace")
    return str(named["name"]).rpartition(".")[0] or (around if space is None else space)


def _unknown(name: str, kind: AvroJson) -> UnsupportedError:
    text = f"{kind['type']} {kind.get('logicalType', '')}".strip() if isinstance(kind, dict) else kind
    return UnsupportedError(f"column {name} has the Avro type {text}", do_next="read the table with Hudi")


def widens(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether files with the old type are read correctly as the new one: int to long, float to double, whole numbers to
    string, wider decimals; inside of nested types int to long, float to double, and new fields that may be null."""
    if pa.types.is_nested(old) or pa.types.is_nested(new):
        return _nested_widens(old, new)
    if old == new or avro_type(old) == avro_type(new):
        return True
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        return bool(new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale)
    if pa.types.is_signed_integer(old):
        return bool(pa.types.is_string(new) or (pa.types.is_signed_integer(new) and new.bit_width > old.bit_width))
    return bool(old == pa.float32() and new == pa.float64())


def _nested_widens(old: pa.DataType, new: pa.DataType) -> bool:
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        before, after = {field.name: field for field in old}, {field.name: field for field in new}
        return before.keys() <= after.keys() and all(
            _field_widens(before[name], field) if name in before else field.nullable for name, field in after.items()
        )
    if pa.types.is_map(old) and pa.types.is_map(new):
        return bool(old.key_type == new.key_type) and _field_widens(old.item_field, new.item_field)
    lists = (pa.types.is_list, pa.types.is_large_list)
    if any(kind(old) for kind in lists) and any(kind(new) for kind in lists):
        return _field_widens(old.value_field, new.value_field)
    return False


def _field_widens(old: pa.Field, new: pa.Field) -> bool:
    if old.nullable and not new.nullable:
        return False
    if pa.types.is_nested(old.type) or pa.types.is_nested(new.type):
        return _nested_widens(old.type, new.type)
    numbers = ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))
    return avro_type(old.type) == avro_type(new.type) or (old.type, new.type) in numbers


def lost_field(held: pa.DataType, declared: pa.DataType, path: str = "") -> str | None:
    """The path of a field in nested values of ``held`` that values of ``declared`` have no place for (``a.b``); None if
    there is none. Arrow's casts drop such fields without an error."""
    if not (pa.types.is_nested(held) and pa.types.is_nested(declared)):
        return None
    if pa.types.is_struct(held) and pa.types.is_struct(declared):
        places = {field.name: field for field in declared}
        for field in held:
            inner = f"{path}.{field.name}" if path else field.name
            place = places.get(field.name)
            lost = inner if place is None else lost_field(field.type, place.type, inner)
            if lost is not None:
                return lost
        return None
    if pa.types.is_map(held) and pa.types.is_map(declared):
        return lost_field(held.item_type, declared.item_type, path)
    if any(pa.types.is_struct(kind) or pa.types.is_map(kind) for kind in (held, declared)):
        return None  # the cast is refused
    return lost_field(held.value_type, declared.value_type, path)
