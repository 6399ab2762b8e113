"""A common form for both sides: MySQL's text and the lake's Arrow values as comparable Python values.

Integers and decimals as numbers, temporal values as integers (days, or microseconds since the epoch as if UTC, or
microseconds of TIME), BIT(1) as bool, binary as bytes, text as str.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from demo.truth import Cell, TruthColumn, TruthTable

Value = int | float | bool | Decimal | bytes | str | None

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - DATETIME has no zone; its digits are taken as they stand
_MICROSECOND = timedelta(microseconds=1)
_TIME = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")

INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json", "uuid"})
BINARIES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
SPATIAL = frozenset(
    {
        "geometry",
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
    }
)


def truth_values(table: TruthTable, position: int) -> list[Value]:
    """The column at ``position`` as comparable values. Raises ValueError for text that is invalid for the type."""
    column = table.columns[position]
    cells = [row[position] for row in table.rows]
    if column.data_type == "float":
        return [_single(exact or text) for exact, text in zip(table.exact_floats[column.name], cells, strict=True)]
    read = _reader(column)
    return [None if c is None else read(c) for c in cells]


def _single(cell: Cell) -> float | None:
    """The nearest 4-byte float, as in the lake's float32."""
    if cell is None:
        return None
    single: float = struct.unpack("<f", struct.pack("<f", float(cell)))[0]
    return single


def _reader(column: TruthColumn) -> Callable[[str | bytes], Value]:
    kind = column.data_type
    if kind == "json":
        return _as_document
    if kind == "year" and column.length == 2:  # of MariaDB, which prints two digits and stores four
        return lambda text: int(text) + (1900 if int(text) >= 70 else 2000)
    if kind in INTEGERS:
        return int
    if kind in TEXTS:
        return _as_text
    if kind in BINARIES | SPATIAL:
        return _as_bytes
    if kind == "bit":
        return _as_bit if column.length == 1 else _as_bytes
    readers: dict[str, Callable[[str], Value]] = {
        "decimal": Decimal,
        "double": float,
        "date": _days,
        "datetime": _microseconds,
        "timestamp": _microseconds,
        "time": _time_microseconds,
    }
    if kind not in readers:
        raise ValueError(f"column {column.name}: type {column.type} is not known to the verdict")
    if kind in ("date", "datetime", "timestamp"):
        return lambda cell: _zero_date(column) if "-00" in _as_text(cell)[:10] else readers[kind](_as_text(cell))
    return lambda cell: readers[kind](_as_text(cell))


def _zero_date(column: TruthColumn) -> int | None:
    """Debezium's value for a date with month or day 0: null, or the epoch where NULL is not allowed."""
    return None if column.nullable else 0


def _as_document(cell: str | bytes) -> str:
    """A JSON text without regard to blanks and the order of members: MySQL keeps the document, not its text."""
    return json.dumps(json.loads(cell), sort_keys=True)


def _as_text(cell: str | bytes) -> str:
    return cell if isinstance(cell, str) else cell.decode("utf-8")


def _as_bytes(cell: str | bytes) -> bytes:
    return cell if isinstance(cell, bytes) else cell.encode("utf-8")


def _as_bit(cell: str | bytes) -> bool:
    return int.from_bytes(_as_bytes(cell), "big") != 0


def _days(text: str) -> int:
    return date.fromisoformat(text).toordinal() - _EPOCH.toordinal()


def _microseconds(text: str) -> int:
    whole, _, fraction = text.partition(".")
    moment = datetime.fromisoformat(whole)
    return (moment - _EPOCH) // _MICROSECOND + int(fraction.ljust(6, "0") or 0)


def _time_microseconds(text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"not a TIME: {text}")
    sign, hours, minutes, seconds, fraction = match.groups()
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    micros = whole * 1_000_000 + int((fraction or "").ljust(6, "0") or 0)
    return -micros if sign else micros


def lake_values(array: pa.ChunkedArray, column: TruthColumn) -> list[Value]:
    """A lake column as comparable values.

    Raises TypeError when the lake's Arrow type cannot represent the MySQL type (for example text for an integer).
    """
    allowed = _allowed(column)
    if not any(is_type(array.type) for is_type in allowed):
        raise TypeError(f"column {column.name}: {column.type} is {array.type} in the lake")
    values: list[Value] = _plain(array).to_pylist()
    if column.data_type == "json":
        return [None if v is None else _as_document(str(v)) for v in values]
    if column.data_type == "decimal" and not pa.types.is_decimal(array.type):
        return [None if v is None else Decimal(str(v)) for v in values]
    return values


def _allowed(column: TruthColumn) -> Sequence[Callable[[pa.DataType], bool]]:
    kind = column.data_type
    if kind in INTEGERS:
        return (pa.types.is_decimal,) if kind == "bigint" and column.unsigned else (_is_signed,)
    if kind in BINARIES | SPATIAL or (kind == "bit" and column.length > 1):
        return (pa.types.is_binary, pa.types.is_large_binary, _is_binary_view)
    texts = (pa.types.is_string, pa.types.is_large_string, _is_string_view)
    if kind == "decimal":
        return (pa.types.is_decimal,) if column.length <= 38 else texts
    others: dict[str, Sequence[Callable[[pa.DataType], bool]]] = {
        "bit": (pa.types.is_boolean,),
        "float": (pa.types.is_float32, pa.types.is_float64),
        "double": (pa.types.is_float64,),
        "date": (pa.types.is_date32,),
        "datetime": (pa.types.is_timestamp,),
        "timestamp": (pa.types.is_timestamp,),
        "time": (pa.types.is_int64,),
    }
    return others.get(kind, texts)


def _is_signed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind))


def _is_string_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind))


def _is_binary_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary_view(kind))


def _plain(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Temporal columns as their integers."""
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32())
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", tz=array.type.tz)).cast(pa.int64())
    return array
