"""A column's wire and lake type as Canal or Maxwell write it. Lake types are the same in every format."""

from __future__ import annotations

from binlake.decode.changes import Column
from binlake.decode.options import CanalForm, Form, MaxwellForm
from binlake.decode.types.columns import column_from_mysql
from binlake.decode.types.mysql_types import INTEGER_BASES, MysqlType
from binlake.decode.types.wires import JSON_TEXT

_TEMPORAL = {"date": "date_text", "time": "time_text", "datetime": "datetime_text", "timestamp": "timestamp_text"}
_BINARIES = frozenset({"binary", "varbinary", "blob"})
_CANAL = {"float": "float_text", "double": "float_text", "enum": "enum_place", "set": "set_bits", "geometry": "latin1"}
_MAXWELL = {"float": "float32", "double": "float64", "set": "set_list", "geometry": "wkt", "json": JSON_TEXT}


def column_of(name: str, kind: MysqlType, form: Form) -> Column:
    """The column in the source's form ``form``."""
    if isinstance(form, CanalForm):
        return _column(name, kind, _canal_wire(kind), form.zone)
    if isinstance(form, MaxwellForm):
        return _column(name, kind, _maxwell_wire(kind), form.zone)
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


def _maxwell_wire(kind: MysqlType) -> str:
    if kind.base in INTEGER_BASES:
        return "uint64_number" if kind.base == "bigint" and kind.unsigned else "int"
    if kind.base == "decimal":
        return "decimal_exact"
    if kind.base == "bit":
        return "bits_number"
    if kind.base in _BINARIES:
        return "base64_filled"
    return _TEMPORAL.get(kind.base) or _MAXWELL.get(kind.base, "string")
