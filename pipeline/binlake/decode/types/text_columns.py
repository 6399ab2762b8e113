"""A column's wire and lake type as Canal, Maxwell, or binlake's own reader of the binlog writes it. Lake types are the
same in every format."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from binlake.decode.changes import Column
from binlake.decode.inferred import InferredType
from binlake.decode.options import BinlogForm, CanalForm, Form, MaxwellForm
from binlake.decode.types.columns import column_from_mysql
from binlake.decode.types.mysql_types import INTEGER_BASES, NULL_BASE, MysqlType, parse_type
from binlake.decode.types.wires import DECIMAL_PLAIN, JSON_TEXT, NULL_ALONE, TEXT_OR_JSON

_TEMPORAL = {"date": "date_text", "time": "time_text", "datetime": "datetime_text", "timestamp": "timestamp_text"}
_BINARIES = frozenset({"binary", "varbinary", "blob"})
_CANAL = {"float": "float_text", "double": "float_text", "enum": "enum_place", "set": "set_bits", "geometry": "latin1"}
_BINLOG = {"float": "float32", "double": "float64", "geometry": "base64"}
_MAXWELL = {"float": "float32", "double": "float64", "set": "set_list", "geometry": "wkt", "json": JSON_TEXT}


def column_of(name: str, kind: MysqlType, form: Form) -> Column:
    """The column in the source's form ``form``."""
    if isinstance(form, CanalForm):
        return _column(name, kind, _canal_wire(kind), form.zone)
    if isinstance(form, MaxwellForm):
        return _column(name, kind, _maxwell_wire(kind), form.zone)
    if isinstance(form, BinlogForm):
        return _column(name, kind, _maxwell_wire(kind, _BINLOG), "UTC")
    return column_from_mysql(name, kind, form)


def _column(name: str, kind: MysqlType, wire: str, zone: str) -> Column:
    length, scale = 0, 0
    if kind.base == "decimal":
        length, scale = kind.precision, kind.scale or 0
    elif kind.base in ("bit", "binary"):
        length = kind.length or 1
    stated = zone if kind.base == "timestamp" else ""
    return Column(name, wire, kind.lake_type, kind.text or kind.base, scale, length, stated)


def _canal_wire(kind: MysqlType) -> str:
    if kind.base in INTEGER_BASES:
        return "uint64_text" if kind.base == "bigint" and kind.unsigned else "int_text"
    if kind.base == "decimal":
        return "decimal_text"
    if kind.base == "bit":
        return "bits_text"
    if kind.base in _BINARIES:
        return "latin1"
    return _TEMPORAL.get(kind.base) or _CANAL.get(kind.base, "string")


def _maxwell_wire(kind: MysqlType, others: Mapping[str, str] = _MAXWELL) -> str:
    if kind.base in INTEGER_BASES:
        return "uint64_number" if kind.base == "bigint" and kind.unsigned else "int"
    if kind.base == "decimal":
        return "decimal_exact"
    if kind.base == "bit":
        return "bits_number"
    if kind.base in _BINARIES:
        return "base64_filled"
    return _TEMPORAL.get(kind.base) or others.get(kind.base, "string")


# A column's wire and lake type in messages that are no change events. Lake types are those of the change events.

_WIRES = {
    "decimal": DECIMAL_PLAIN,
    "float": "float32",
    "double": "float64",
    "date": "date_text",
    "time": "time_text",
    "datetime": "moment_iso",
    "timestamp": "moment_iso",
    "json": JSON_TEXT,
    "binary": "base64_filled",
    "varbinary": "base64",
    "blob": "base64",
    "geometry": "wkt",
}


def inferred_type(text: str) -> MysqlType:
    """The type of a learned column. Raises UnsupportedError for an unknown type."""
    return MysqlType(NULL_BASE) if text == InferredType.NULL else parse_type(text)


def plain_column(name: str, kind: MysqlType, zone: str, *, inferred: bool) -> Column:
    """The column as JSON that anyone may have written carries it.

    ``zone``: the time zone of a TIMESTAMP whose text has none. ``inferred``: a column of type json holds text as it is;
    only objects and arrays are kept as JSON text.
    """
    if kind.base == NULL_BASE:
        return Column(name, NULL_ALONE, pa.null())
    length, scale = 0, 0
    if kind.base == "decimal":
        length, scale = kind.precision, kind.scale or 0
    elif kind.base in ("bit", "binary"):
        length = kind.length or 1
    wire = TEXT_OR_JSON if inferred and kind.base == "json" else _wire(kind)
    stated = zone if kind.base == "timestamp" else "UTC"
    return Column(name, wire, kind.lake_type, kind.text or kind.base, scale, length, stated)


def _wire(kind: MysqlType) -> str:
    if kind.base in INTEGER_BASES:
        return "uint64_number" if kind.base == "bigint" and kind.unsigned else "int"
    if kind.base == "bit":
        return "bool" if (kind.length or 1) == 1 else "bits_number"
    return _WIRES.get(kind.base, "string")
