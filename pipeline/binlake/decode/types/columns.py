"""A column's wire and lake type: from MySQL's type, or from a Connect schema with MySQL's type as a hint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

import msgspec
import pyarrow as pa

from binlake.decode.changes import Column
from binlake.decode.options import (
    BigintUnsignedHandlingMode,
    BinaryHandlingMode,
    DecimalHandlingMode,
    JsonForm,
    TimePrecisionMode,
)
from binlake.decode.types.mysql_types import (
    INTEGER_BASES,
    MAX_LAKE_DECIMAL_DIGITS,
    UTC_MICROSECONDS,
    MysqlType,
    decimal_lake_type,
    parse_type,
)
from hudilake.errors import UnsupportedError

# Kafka Connect's JSON schemas (``schemas.enable=true``): the ``schema`` beside a ``payload``.


class ConnectField(msgspec.Struct, frozen=True, eq=False):
    """One schema node: a Connect type, its logical name, and the fields when it is a struct. Compared by identity."""

    type: str
    name: str | None = None
    field: str = ""
    parameters: dict[str, str] = msgspec.field(default_factory=dict)
    fields: tuple[ConnectField, ...] = ()

    def child(self, name: str) -> ConnectField | None:
        """The struct's field of that name."""
        return next((f for f in self.fields if f.field == name), None)

    def row_fields(self, flat_prefix: str | None) -> tuple[ConnectField, ...]:
        """The columns: the fields of ``after`` in an envelope, else (flat) the fields without the prefix."""
        if flat_prefix is None:
            image = self.child("after")
            return image.fields if image is not None else ()
        return tuple(f for f in self.fields if not f.field.startswith(flat_prefix))


_DECODER = msgspec.json.Decoder(ConnectField)


@lru_cache(maxsize=512)
def parse_connect_schema(text: bytes) -> ConnectField:
    """The schema's JSON text -> its root. Raises msgspec.MsgspecError or RecursionError if it is not a schema."""
    return _DECODER.decode(text)


_BINARIES = frozenset({"binary", "varbinary", "blob"})
_MILLISECOND_DIGITS = 3

_DECIMAL_WIRES = {
    DecimalHandlingMode.PRECISE: "decimal_base64",
    DecimalHandlingMode.STRING: "decimal_text",
    DecimalHandlingMode.DOUBLE: "decimal_number",
}
_BINARY_WIRES = {
    BinaryHandlingMode.BYTES: "base64",
    BinaryHandlingMode.BASE64: "base64",
    BinaryHandlingMode.BASE64_URL_SAFE: "base64_url_safe",
    BinaryHandlingMode.HEX: "hex",
}
#: time.precision.mode -> unit of TIME(0-3), of TIME(4-6), of DATETIME(0-3), of DATETIME(4-6)
_TIME_UNITS = {
    TimePrecisionMode.ADAPTIVE_TIME_MICROSECONDS: ("us", "us", "ms", "us"),
    TimePrecisionMode.ADAPTIVE: ("ms", "us", "ms", "us"),
    TimePrecisionMode.CONNECT: ("ms", "ms", "ms", "ms"),
    TimePrecisionMode.MICROSECONDS: ("us", "us", "us", "us"),
    TimePrecisionMode.NANOSECONDS: ("ns", "ns", "ns", "ns"),
}


def column_from_mysql(name: str, kind: MysqlType, form: JsonForm) -> Column:
    """The column as the connector writes it under ``form``."""
    wire, length, scale = _wire(kind, form)
    return Column(name, wire, kind.lake_type, kind.text or kind.base, scale, length)


def _wire(kind: MysqlType, form: JsonForm) -> tuple[str, int, int]:
    base = kind.base
    if base == "bigint" and kind.unsigned:
        precise = form.bigint_unsigned is BigintUnsignedHandlingMode.PRECISE
        return ("decimal_base64" if precise else "uint64_wrapped"), 20, 0
    if base == "decimal":
        return _DECIMAL_WIRES[form.decimals], kind.precision, kind.scale or 0
    if base == "bit":
        return ("bool", 1, 0) if (kind.length or 1) == 1 else ("bits", kind.length or 1, 0)
    if base in ("date", "time", "datetime"):
        return _temporal_wire(base, kind.length or 0, form.time_precision), 0, 0
    if base in _BINARIES:
        return _BINARY_WIRES[form.binary], 0, 0
    return _simple_wire(kind), 0, 0


def _simple_wire(kind: MysqlType) -> str:
    if kind.base == "bool":
        return "bool"
    if kind.base in INTEGER_BASES:
        return "int"
    if kind.base in ("float", "double"):
        return "float32" if kind.base == "float" else "float64"
    if kind.base == "timestamp":
        return "instant_iso"
    if kind.base == "geometry":
        return "geometry"
    return "options" if kind.options != kind.streamed else "string"


def _temporal_wire(base: str, digits: int, mode: TimePrecisionMode) -> str:
    if mode is TimePrecisionMode.ISOSTRING:
        return {"date": "date_iso", "time": "time_iso", "datetime": "instant_iso"}[base]
    if base == "date":
        return "date_days"
    fine = digits > _MILLISECOND_DIGITS
    unit = _TIME_UNITS[mode][(0 if base == "time" else 2) + fine]
    return f"{'time' if base == 'time' else 'epoch'}_{unit}"


@lru_cache(maxsize=4096)
def forms_of(column: Column) -> tuple[Column, ...]:
    """The column, followed by its other forms: other JSON representations with an unambiguous meaning.

    Converters turn TINYINT(1) into booleans; a BOOL in a statement is a boolean while SHOW CREATE TABLE has tinyint(1);
    SERIAL stays a wrapped integer in every mode. The forms of a column have different JSON types.
    """
    other = None
    if pa.types.is_int32(column.lake_type) and column.wire in ("int", "bool"):
        other = "bool" if column.wire == "int" else "int"
    elif column.wire == "bits_number" and column.length == 1:
        other = "bool"
    elif column.wire == "decimal_base64" and column.mysql_type.lower().startswith(("bigint", "int8", "serial")):
        other = "uint64_wrapped"
    return (column,) if other is None else (column, replace(column, wire=other))


def column_from_connect(field: ConnectField, hint: MysqlType | None, form: JsonForm) -> Column:
    """The column as its Connect schema describes it.

    ``hint`` is MySQL's type where it is known (from the DDL topic or the settings); otherwise the field's own
    ``__debezium.source.column.*`` parameters are used. Without a hint the lake type is the one that holds all values of
    the Connect type: a BIGINT UNSIGNED sent as ``long`` then looks like BIGINT, and a DECIMAL sent as text like text.
    """
    hint = hint or _propagated(field)
    plain = _LOGICAL.get(field.name or "", _PRIMITIVE.get(field.type, _unsupported))(field)
    return _refined(plain, hint, form) if hint is not None else plain


def _refined(plain: Column, hint: MysqlType, form: JsonForm) -> Column:
    """MySQL's type decides the lake type where the wire supports it; if the two disagree, the message's type holds."""
    lake_type, text = hint.lake_type, hint.text or hint.base
    if plain.wire in ("int", "bool") and hint.base in INTEGER_BASES:
        wrapped = plain.wire == "int" and hint.base == "bigint" and hint.unsigned
        stale = pa.types.is_int64(plain.lake_type) and pa.types.is_int32(lake_type)
        return plain if stale else Column(plain.name, "uint64_wrapped" if wrapped else plain.wire, lake_type, text)
    if plain.wire == "decimal_base64":
        return _refined_decimal(plain, hint)
    if hint.base == "decimal" and plain.wire in ("string", "float64", "decimal_variable"):
        wire = {"string": "decimal_text", "float64": "decimal_number"}.get(plain.wire, plain.wire)
        return Column(plain.name, wire, lake_type, text, hint.scale or 0, hint.precision)
    if hint.base == "float" and plain.wire in ("float32", "float64"):
        return Column(plain.name, "float32", lake_type, text)
    if hint.base in _BINARIES and plain.wire == "string":
        return Column(plain.name, _BINARY_WIRES[form.binary], lake_type, text)
    if hint.base in ("enum", "set") and plain.wire in ("string", "options"):
        return column_from_mysql(plain.name, hint, form)
    return plain


def _refined_decimal(plain: Column, hint: MysqlType) -> Column:
    """A Decimal of old connectors has only its scale; its digits come from MySQL's type."""
    scale, precision = (0, 20) if hint.base == "bigint" else (hint.scale or 0, hint.precision)
    known = hint.base == "decimal" or (hint.base == "bigint" and hint.unsigned)
    if not known or plain.scale != scale or plain.length not in (precision, MAX_LAKE_DECIMAL_DIGITS):
        return plain
    return Column(plain.name, plain.wire, hint.lake_type, hint.text or hint.base, scale, precision)


def _propagated(field: ConnectField) -> MysqlType | None:
    """The MySQL type that ``column.propagate.source.type`` adds to the field."""
    name = field.parameters.get("__debezium.source.column.type")
    if name is None:
        return None
    length = field.parameters.get("__debezium.source.column.length")
    scale = field.parameters.get("__debezium.source.column.scale")
    first, *rest = name.split() or [""]
    arguments = ",".join(part for part in (length, scale) if part is not None)
    kind = parse_type(" ".join([f"{first}({arguments})" if arguments else first, *rest]))
    return None if kind.base in ("enum", "set") else kind


def _fixed(wire: str, lake_type: pa.DataType, text: str = "") -> Callable[[ConnectField], Column]:
    return lambda field: Column(field.field, wire, lake_type, text)


def _decimal(field: ConnectField) -> Column:
    scale = int(field.parameters.get("scale", "0"))
    precision = int(field.parameters.get("connect.decimal.precision", MAX_LAKE_DECIMAL_DIGITS))
    lake_type = decimal_lake_type(precision, scale)
    return Column(field.field, "decimal_base64", lake_type, f"decimal({precision},{scale})", scale, precision)


def _bits(field: ConnectField) -> Column:
    length = int(field.parameters["length"])
    return Column(field.field, "bits", pa.binary(), f"bit({length})", length=length)


def _enumerated(base: str) -> Callable[[ConnectField], Column]:
    def column(field: ConnectField) -> Column:
        sent = _split_options(field.parameters.get("allowed", ""))
        true = [option.replace("\\,", ",") for option in sent]
        quoted = ",".join("'" + option.replace("\\", "\\\\").replace("'", "''") + "'" for option in true)
        return Column(field.field, "string" if sent == true else "options", pa.string(), f"{base}({quoted})")

    return column


def _split_options(allowed: str) -> list[str]:
    """Options joined by commas; a comma inside an option is escaped by a backslash."""
    parts: list[str] = []
    for part in allowed.split(","):
        if parts and parts[-1].endswith("\\"):
            parts[-1] += "," + part
        else:
            parts.append(part)
    return parts


def _unsupported(field: ConnectField) -> Column:
    raise UnsupportedError(
        f"column {field.field!r} has the Connect type {field.name or field.type!r}, which is not known",
        do_next="leave the column out at the connector",
        column=field.field,
    )


_PRIMITIVE: Mapping[str, Callable[[ConnectField], Column]] = MappingProxyType(
    {
        "int8": _fixed("int", pa.int32()),
        "int16": _fixed("int", pa.int32()),
        "int32": _fixed("int", pa.int32()),
        "int64": _fixed("int", pa.int64()),
        "float": _fixed("float32", pa.float32()),
        "double": _fixed("float64", pa.float64()),
        "boolean": _fixed("bool", pa.bool_()),
        "string": _fixed("string", pa.string()),
        "bytes": _fixed("base64", pa.binary()),
    }
)
_LOGICAL: Mapping[str, Callable[[ConnectField], Column]] = MappingProxyType(
    {
        "org.apache.kafka.connect.data.Decimal": _decimal,
        "org.apache.kafka.connect.data.Date": _fixed("date_days", pa.date32(), "date"),
        "org.apache.kafka.connect.data.Time": _fixed("time_ms", pa.int64(), "time"),
        "org.apache.kafka.connect.data.Timestamp": _fixed("epoch_ms", UTC_MICROSECONDS, "datetime"),
        "io.debezium.data.VariableScaleDecimal": _fixed("decimal_variable", pa.string()),
        "io.debezium.data.Bits": _bits,
        "io.debezium.data.Enum": _enumerated("enum"),
        "io.debezium.data.EnumSet": _enumerated("set"),
        "io.debezium.data.Json": _fixed("string", pa.string(), "json"),
        "io.debezium.data.geometry.Geometry": _fixed("geometry", pa.binary(), "geometry"),
        "io.debezium.data.geometry.Point": _fixed("geometry", pa.binary(), "point"),
        "io.debezium.time.Date": _fixed("date_days", pa.date32(), "date"),
        "io.debezium.time.IsoDate": _fixed("date_iso", pa.date32(), "date"),
        "io.debezium.time.Time": _fixed("time_ms", pa.int64(), "time"),
        "io.debezium.time.MicroTime": _fixed("time_us", pa.int64(), "time"),
        "io.debezium.time.NanoTime": _fixed("time_ns", pa.int64(), "time"),
        "io.debezium.time.IsoTime": _fixed("time_iso", pa.int64(), "time"),
        "io.debezium.time.Timestamp": _fixed("epoch_ms", UTC_MICROSECONDS, "datetime"),
        "io.debezium.time.MicroTimestamp": _fixed("epoch_us", UTC_MICROSECONDS, "datetime(6)"),
        "io.debezium.time.NanoTimestamp": _fixed("epoch_ns", UTC_MICROSECONDS, "datetime(6)"),
        "io.debezium.time.IsoTimestamp": _fixed("instant_iso", UTC_MICROSECONDS, "datetime"),
        "io.debezium.time.ZonedTimestamp": _fixed("instant_iso", UTC_MICROSECONDS, "timestamp"),
        "io.debezium.time.Year": _fixed("int", pa.int32(), "year"),
    }
)
