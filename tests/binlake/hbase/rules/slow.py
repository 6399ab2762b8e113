"""Values and wide rows, slow and plain, one at a time: what the arrays of ``binlake.hbase.rules`` are compared with."""

from __future__ import annotations

import decimal
import random
import re
import struct
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from binlake.decode.cells import CELL_SCHEMA, CellKind
from binlake.hbase.settings.declared import WideColumn
from tests.binlake.hbase.recordings import CellPlace

EXACT: Final = decimal.Context(prec=400)
_STORED: Final = {"long": ">q", "int": ">i", "short": ">h", "double": ">d", "float": ">f"}
_WHOLE: Final = {"long": 63, "int": 31, "short": 15}


class Undecodable(Exception):
    """A value that is none of its column's type."""


class Pivoted(NamedTuple):
    """Wide rows by row key, and the (row, family, qualifier) of the cells that have faults."""

    rows: dict[bytes, dict[str, Any]]
    faults: set[tuple[bytes, bytes, bytes]]


def text_form(data: bytes) -> str:
    """The text of a row key or qualifier."""
    text = "".join(chr(b) if 0x20 <= b <= 0x7E and b not in b"\\," else f"\\x{b:02X}" for b in data)
    return "\\x5F" + text[1:] if text in ("__empty__", "__null__") else text


def stored_decimal(number: decimal.Decimal) -> bytes:
    """``Bytes.toBytes(BigDecimal)``: the scale, then ``BigInteger.toByteArray``."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    unscaled = int(number.scaleb(-exponent, EXACT))
    size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return struct.pack(">i", -exponent) + unscaled.to_bytes(size, "big", signed=True)


def encode(type_: str, value: Any) -> bytes:  # noqa: ANN401 - a value of any column
    """A value as ``Bytes.toBytes`` writes it."""
    if type_ in _STORED:
        return struct.pack(_STORED[type_], value)
    if type_ == "boolean":
        return b"\xff" if value else b"\x00"
    if type_ == "decimal":
        return stored_decimal(value)
    return value.encode() if type_ == "utf8" else bytes(value)


def decode(column: WideColumn, data: bytes) -> Any:  # noqa: ANN401 - a value of any column
    """A stored value. Raises Undecodable."""
    try:
        return _from_text(column, data.decode()) if column.as_text else _from_bytes(column, data)
    except (ValueError, struct.error, ArithmeticError) as error:
        raise Undecodable from error


def _from_bytes(column: WideColumn, data: bytes) -> Any:  # noqa: ANN401
    if column.type in _STORED:
        return struct.unpack(_STORED[column.type], data)[0]
    if column.type == "boolean":
        return struct.unpack("B", data)[0] != 0
    if column.type == "decimal":
        if len(data) < 5:
            raise ValueError("short")
        unscaled, scale = int.from_bytes(data[4:], "big", signed=True), struct.unpack(">i", data[:4])[0]
        if unscaled and abs(scale) > 200:
            raise ValueError("far")
        return _fitting(decimal.Decimal(unscaled).scaleb(-scale if unscaled else 0, EXACT), column)
    return data.decode() if column.type == "utf8" else data


def _fitting(number: decimal.Decimal, column: WideColumn) -> decimal.Decimal:
    scaled = number.quantize(decimal.Decimal(1).scaleb(-column.scale), context=EXACT)
    if scaled != number or abs(scaled.scaleb(column.scale, EXACT)) >= 10**column.precision:
        raise ValueError("does not fit")
    return scaled


def _from_text(column: WideColumn, text: str) -> Any:  # noqa: ANN401
    if column.type == "utf8":
        return text
    if column.type == "boolean":
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    if column.type in _WHOLE:
        if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
            raise ValueError(text)
        if not -(1 << _WHOLE[column.type]) <= int(text) < 1 << _WHOLE[column.type]:
            raise ValueError(text)
        return int(text)
    if column.type != "decimal" and re.fullmatch(r"NaN|[+-]?Infinity", text):
        return float(text)
    if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", text, re.ASCII):
        raise ValueError(text)
    if column.type == "decimal":
        return _fitting(decimal.Decimal(text, EXACT), column)
    number = float(text)
    stored = struct.unpack(">f", struct.pack(">f", number))[0] if column.type == "float" else number
    if stored in (float("inf"), float("-inf")):
        raise ValueError(text)
    return stored


def cells_table(cells: Mapping[CellPlace, bytes], seed: int = 1) -> pa.Table:
    """Visible cells as a table, in a random order."""
    rows = [
        {
            "row": text_form(place.row),
            "family": place.family.decode(),
            "qualifier": text_form(place.qualifier),
            "timestamp": place.timestamp_ms,
            "kind": CellKind.PUT,
            "value": value,
        }
        for place, value in cells.items()
    ]
    random.Random(seed).shuffle(rows)
    return pa.Table.from_pylist(rows, schema=CELL_SCHEMA)


def pivot(cells: Mapping[CellPlace, bytes], columns: Iterable[WideColumn]) -> Pivoted:
    """Wide rows of visible cells."""
    key, *others = columns
    newest: dict[tuple[bytes, bytes, bytes], tuple[int, bytes]] = {}
    for place, value in cells.items():
        newest[place[:3]] = max(newest.get(place[:3], (-1, b"")), (place.timestamp_ms, value))
    rows: dict[bytes, dict[str, Any]] = {}
    faults = set()
    for (row, family, qualifier), (at, value) in newest.items():
        wide = rows.setdefault(row, {key.name: decode(key, row), **dict.fromkeys(c.name for c in others)})
        for column in others:
            if column.is_timestamp:
                wide[column.name] = max(at, wide[column.name] or 0)
        place_of = _column_of(others, family.decode(), qualifier)
        try:
            found = decode(place_of, value) if place_of is not None else None
        except Undecodable:
            found = None
            faults.add((row, family, qualifier))
        if place_of is None:
            faults.add((row, family, qualifier))
        elif place_of.is_map:
            wide[place_of.name] = sorted([*(wide[place_of.name] or []), (text_form(qualifier), found)])
        else:
            wide[place_of.name] = found
    return Pivoted(rows, faults)


def _column_of(columns: Iterable[WideColumn], family: str, qualifier: bytes) -> WideColumn | None:
    mine = [column for column in columns if column.family == family]
    exact = [column for column in mine if column.qualifier == text_form(qualifier)]
    maps = [column for column in mine if column.is_map and qualifier.startswith(column.prefix)]
    return next(iter(exact or sorted(maps, key=lambda column: -len(column.prefix))), None)
