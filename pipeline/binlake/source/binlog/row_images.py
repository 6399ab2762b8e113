"""Row images of the binlog as JSON text: one function a column, made once for each definition of a table.

Values stand in the JSON as ``decode/formats/binlog.py`` reads them: integers, BIT and DECIMAL as numbers with all their
digits, dates and times as the text that MySQL prints (also those that no calendar has), TIMESTAMP in UTC, bytes as
base64, ENUM and SET by their members. The layout of the bytes: MySQL's manual, "Rows_event", and its storage formats
of DECIMAL, TIME, DATETIME and TIMESTAMP. A row is read cell by cell, since each cell's place depends on the one before.
"""

from __future__ import annotations

import itertools
import struct
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from json.encoder import encode_basestring
from typing import Literal

from binlake.source.binlog.json_values import ReadCell, decimal_cell, json_text
from binlake.source.binlog.table_map import FieldType, LoggedColumn, LoggedTable

_QUOTED: Callable[[str], str] = encode_basestring
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FRACTION_BYTES = (0, 1, 1, 2, 2, 3, 3)


class RowImages:
    """Reads the images of rows of one definition of a table."""

    def __init__(self, table: LoggedTable) -> None:
        self.width = len(table.columns)
        self._null_bytes = (self.width + 7) // 8
        self._cells = [
            (number >> 3, 1 << (number & 7), f"{_QUOTED(column.name)}:", cell_of(column))
            for number, column in enumerate(table.columns)
        ]
        shown = [not column.hidden for column in table.columns]
        self._shown = None if all(shown) else shown

    def read(self, data: bytes, start: int) -> tuple[str, int]:
        """The JSON object of the image that begins at ``start``, and the place after it.

        Raises struct.error, IndexError, ValueError for bytes that are no such image.
        """
        nulls = data[start : start + self._null_bytes]
        place = start + self._null_bytes
        parts = []
        for byte, bit, name, read in self._cells:
            if nulls[byte] & bit:
                parts.append(name + "null")
            else:
                text, place = read(data, place)
                parts.append(name + text)
        if self._shown is not None:
            parts = list(itertools.compress(parts, self._shown))
        return "{" + ",".join(parts) + "}", place


def cell_of(column: LoggedColumn) -> ReadCell:
    """What reads the cells of a column. Of a column that ``definitions.type_text`` does not name, the bytes."""
    if column.kind in _INTEGERS:
        signed, unsigned = _INTEGERS[column.kind]
        return _number(struct.Struct(unsigned if column.unsigned else signed))
    if column.kind is FieldType.INT24:
        return _medium(signed=not column.unsigned)
    if column.kind in _FLOATS:
        return _number(struct.Struct(_FLOATS[column.kind]))
    if column.kind in _STRINGS:
        return _text(1 if column.size < 256 else 2, column)
    if column.kind in _LONG_STRINGS:
        return _text(column.size, column)
    if column.kind is FieldType.JSON:
        return _json(column.size)
    if column.kind is FieldType.DECIMAL:
        return decimal_cell(column.size, column.scale)
    if column.kind is FieldType.ENUM:
        return _enum(column)
    if column.kind is FieldType.SET:
        return _set(column)
    if column.kind is FieldType.BIT:
        return _bits((column.size + 7) // 8)
    if column.kind in _FRACTIONAL:
        return _FRACTIONAL[column.kind](column.size)
    return _PLAIN[column.kind]


_INTEGERS = {
    FieldType.TINY: ("<b", "<B"),
    FieldType.SHORT: ("<h", "<H"),
    FieldType.LONG: ("<i", "<I"),
    FieldType.LONGLONG: ("<q", "<Q"),
}
_STRINGS = frozenset({FieldType.VARCHAR, FieldType.VAR_STRING, FieldType.STRING, FieldType.VARCHAR_COMPRESSED})
_LONG_STRINGS = frozenset({FieldType.BLOB, FieldType.BLOB_COMPRESSED, FieldType.GEOMETRY})
_FLOATS = {FieldType.FLOAT: "<f", FieldType.DOUBLE: "<d"}


def _number(form: struct.Struct) -> ReadCell:
    unpack, size = form.unpack_from, form.size

    def read(data: bytes, start: int) -> tuple[str, int]:
        return repr(unpack(data, start)[0]), start + size

    return read


def _medium(*, signed: bool) -> ReadCell:
    def read(data: bytes, start: int) -> tuple[str, int]:
        return repr(int.from_bytes(data[start : start + 3], "little", signed=signed)), start + 3

    return read


def _text(length_bytes: int, column: LoggedColumn) -> ReadCell:
    """Text, or bytes where the column has no character set."""
    codec = column.charset.codec if column.charset is not None and not _is_compressed(column) else ""

    def read_text(data: bytes, start: int) -> tuple[str, int]:
        first = start + length_bytes
        end = first + int.from_bytes(data[start:first], "little")
        try:
            return _QUOTED(data[first:end].decode(codec)), end
        except UnicodeDecodeError:  # no text of its character set: the object makes the row one that cannot be applied
            return f'{{"bytes":"{data[first:end].hex()}"}}', end

    def read_bytes(data: bytes, start: int) -> tuple[str, int]:
        first = start + length_bytes
        end = first + int.from_bytes(data[start:first], "little")
        return f'"{b64encode(data[first:end]).decode()}"', end

    return read_text if codec else read_bytes


def _is_compressed(column: LoggedColumn) -> bool:
    return column.kind in (FieldType.VARCHAR_COMPRESSED, FieldType.BLOB_COMPRESSED)


def _json(length_bytes: int) -> ReadCell:
    def read(data: bytes, start: int) -> tuple[str, int]:
        first = start + length_bytes
        end = first + int.from_bytes(data[start:first], "little")
        return _QUOTED(json_text(data[first:end])), end

    return read


def _enum(column: LoggedColumn) -> ReadCell:
    size, members = column.size, [_QUOTED(one) for one in ("", *column.members)]

    def read(data: bytes, start: int) -> tuple[str, int]:
        return members[int.from_bytes(data[start : start + size], "little")], start + size

    return read


def _set(column: LoggedColumn) -> ReadCell:
    size, members = column.size, column.members

    def read(data: bytes, start: int) -> tuple[str, int]:
        bits = int.from_bytes(data[start : start + size], "little")
        if bits >> len(members):
            raise ValueError("a SET with more bits than members")
        return _QUOTED(",".join(one for place, one in enumerate(members) if bits >> place & 1)), start + size

    return read


def _bits(size: int) -> ReadCell:
    def read(data: bytes, start: int) -> tuple[str, int]:
        return repr(int.from_bytes(data[start : start + size], "big")), start + size

    return read


def _year(data: bytes, start: int) -> tuple[str, int]:
    return repr(data[start] + 1900 if data[start] else 0), start + 1


def _date(data: bytes, start: int) -> tuple[str, int]:
    packed = int.from_bytes(data[start : start + 3], "little")
    return f'"{packed >> 9:04d}-{packed >> 5 & 15:02d}-{packed & 31:02d}"', start + 3


def _old_time(data: bytes, start: int) -> tuple[str, int]:
    """TIME as servers before 5.6 store it: digits of hours, minutes and seconds."""
    packed = int.from_bytes(data[start : start + 3], "little", signed=True)
    size = abs(packed)
    sign = "-" if packed < 0 else ""
    return f'"{sign}{size // 10_000:02d}:{size // 100 % 100:02d}:{size % 100:02d}"', start + 3


def _old_datetime(data: bytes, start: int) -> tuple[str, int]:
    text = f"{int.from_bytes(data[start : start + 8], 'little'):014d}"
    return f'"{text[:4]}-{text[4:6]}-{text[6:8]} {text[8:10]}:{text[10:12]}:{text[12:]}"', start + 8


def _time(digits: int) -> ReadCell:
    """A number of 24 bits and the fraction's, with the sign as the offset of all of it."""
    fraction_bytes = _FRACTION_BYTES[digits]
    size, bits = 3 + fraction_bytes, 8 * fraction_bytes
    zero = 1 << (23 + bits)

    def read(data: bytes, start: int) -> tuple[str, int]:
        packed = int.from_bytes(data[start : start + size], "big") - zero
        amount = abs(packed)
        clock = amount >> bits
        tail = _fraction(amount & ((1 << bits) - 1), fraction_bytes) if bits else ""
        sign = "-" if packed < 0 else ""
        return f'"{sign}{clock >> 12:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}{tail}"', start + size

    return read


def _datetime(digits: int) -> ReadCell:
    fraction_bytes = _FRACTION_BYTES[digits]
    size = 5 + fraction_bytes

    def read(data: bytes, start: int) -> tuple[str, int]:
        packed = int.from_bytes(data[start : start + 5], "big") - 0x8000000000
        year, month = divmod(packed >> 22, 13)
        text = (
            f'"{year:04d}-{month:02d}-{packed >> 17 & 31:02d} '
            f"{packed >> 12 & 31:02d}:{packed >> 6 & 63:02d}:{packed & 63:02d}"
        )
        if fraction_bytes:
            text += _fraction(int.from_bytes(data[start + 5 : start + size], "big"), fraction_bytes)
        return text + '"', start + size

    return read


def _timestamp(digits: int, order: Literal["big", "little"] = "big") -> ReadCell:
    """Seconds since the Unix epoch; 0 is MySQL's zero date."""
    fraction_bytes = _FRACTION_BYTES[digits]
    size = 4 + fraction_bytes

    def read(data: bytes, start: int) -> tuple[str, int]:
        seconds = int.from_bytes(data[start : start + 4], order)
        tail = (
            _fraction(int.from_bytes(data[start + 4 : start + size], "big"), fraction_bytes) if fraction_bytes else ""
        )
        if not seconds and not tail.strip(".0"):
            return f'"0000-00-00 00:00:00{tail}"', start + size
        return f'"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}{tail}"', start + size

    return read


def _fraction(stored: int, fraction_bytes: int) -> str:
    """A fraction of a second, stored as hundredths, ten-thousandths or millionths by its bytes."""
    return f".{stored:0{2 * fraction_bytes}d}"


_PLAIN: dict[FieldType, ReadCell] = {
    FieldType.YEAR: _year,
    FieldType.DATE: _date,
    FieldType.TIME: _old_time,
    FieldType.DATETIME: _old_datetime,
    FieldType.TIMESTAMP: _timestamp(0, "little"),
}
_FRACTIONAL: dict[FieldType, Callable[[int], ReadCell]] = {
    FieldType.TIME2: _time,
    FieldType.DATETIME2: _datetime,
    FieldType.TIMESTAMP2: _timestamp,
}
