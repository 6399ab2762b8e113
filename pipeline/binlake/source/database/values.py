"""The text that the server sends -> Arrow columns of lake types, and values of a key -> SQL literals.

The conversions are those for Canal, whose values are MySQL's own texts (``binlake.decode.types.text_wires``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import Column, ZeroDates
from binlake.decode.types.mysql_types import MysqlType
from binlake.decode.types.wires import to_lake
from binlake.decode.types.zero_dates import with_policy
from binlake.settings import SourceSettings

_WIRES = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "bool", "year"), "int_text"),
    "decimal": "decimal_text",
    "float": "float_text",
    "double": "float_text",
    "date": "date_text",
    "time": "time_text",
    "datetime": "datetime_text",
    "timestamp": "timestamp_text",
}
_ZERO_DATE = r"^[0-9]{4}-(00-[0-9]{2}|[0-9]{2}-00)"
_SECOND = 1_000_000


@dataclass
class Unreadable:
    """How many values of a column no lake type holds, such as the 31st of February; they count as null."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class ValueReader:
    """Reads the texts of one column as the lake should hold them.

    Args:
        kind: the column's type at the source.
        column: its form in the lake.
        sent_zero: what the connector sends in place of a date with a zero month or day, as text; None for null.
        carries_zeros: whether the connector sends such dates as they are (Canal, Maxwell and the
            binlog do).
    """

    kind: MysqlType
    column: Column
    sent_zero: str | None = None
    carries_zeros: bool = False

    @staticmethod
    def of(name: str, kind: MysqlType, source: SourceSettings, *, nullable: bool, in_key: bool) -> ValueReader:
        """The reader of a column. ``source``: how the stream reads the source."""
        wire = "uint64_text" if kind.base == "bigint" and kind.unsigned else _WIRES.get(kind.base, "string")
        length, scale = (kind.precision, kind.scale or 0) if kind.base == "decimal" else (0, 0)
        plain = Column(name, wire, kind.lake_type, kind.text, scale, length)
        column = with_policy(plain, ZeroDates(source.zero_dates), in_key=in_key)
        midnight = "" if kind.base == "date" else " 00:00:00"
        sent = None if nullable else f"1970-01-01{midnight}"  # Debezium (recorded)
        carries_zeros = source.mysql is not None or source.format in ("canal", "maxwell")
        return ValueReader(kind, column, sent, carries_zeros)

    @property
    def lake_type(self) -> pa.DataType:
        """The type that the values get."""
        return self.column.lake_type

    def read(self, texts: pa.Array, unreadable: Unreadable) -> pa.Array:
        """A column of bytes as the server sent them -> its lake type.

        Args:
            texts: binary array of n.
            unreadable: counts the values that no lake type holds.
        """
        if pa.types.is_binary(self.lake_type):
            return texts
        from binlake.source.database.plain_cells import plain_values  # needs compiled loops, seconds to import

        plain = plain_values(texts, self.column)
        if plain is None:
            return self._converted(texts, unreadable)
        values, odd = plain
        if not odd.any():
            return values
        mask = pa.array(odd)
        return pc.replace_with_mask(values, mask, self._converted(texts.filter(mask), unreadable))

    def _converted(self, texts: pa.Array, unreadable: Unreadable) -> pa.Array:
        strings = texts.cast(pa.string())
        if pa.types.is_boolean(self.lake_type):
            return strings.cast(pa.int8()).cast(pa.bool_())
        if self.kind.base == "json":
            return normalised_json(strings)
        if self.column.wire == "string":
            return strings
        if self.column.zero_dates is not None and not self.carries_zeros:
            zeros = pc.match_substring_regex(strings, _ZERO_DATE)
            strings = pc.if_else(zeros, pa.scalar(self.sent_zero, pa.string()), strings)
        try:
            return to_lake(strings, self.column)
        except ValueError:
            return _one_by_one(strings, self.column, unreadable)


def _one_by_one(texts: pa.Array, column: Column, unreadable: Unreadable) -> pa.Array:
    """A column with values that cannot be converted, which become null."""
    coded = texts.dictionary_encode()
    parts: list[pa.Array] = []
    for place in range(len(coded.dictionary)):
        value = coded.dictionary.slice(place, 1)
        try:
            parts.append(to_lake(value, column))
        except ValueError:
            unreadable.count += 1
            parts.append(pa.nulls(1, column.lake_type))
    return pa.concat_arrays(parts).take(coded.indices)


def normalised_json(texts: pa.Array) -> pa.Array:
    """JSON texts with sorted members and without blanks: MySQL stores JSON, not its text. What is no JSON stays."""
    coded = texts.dictionary_encode()
    known = [None if text is None else _normalised(text) for text in coded.dictionary.to_pylist()]
    return pa.array(known, pa.string()).take(coded.indices)


def _normalised(text: str) -> str:
    try:
        return msgspec.json.encode(msgspec.json.decode(text), order="sorted").decode()
    except (msgspec.MsgspecError, RecursionError):
        return text


def sql_literal(value: object, kind: MysqlType, quote: Callable[[str], str]) -> str:
    """A value of a lake type as an SQL literal that the server compares with a column of ``kind``.

    ``quote``: makes a text a quoted literal.
    """
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if kind.base == "time" and isinstance(value, int):
        return quote(time_text(value))
    if isinstance(value, dt.datetime):
        return quote(value.replace(tzinfo=None).isoformat(" ", "microseconds"))
    if isinstance(value, int):
        return str(value)
    return quote(str(value))


def time_text(microseconds: int) -> str:
    """A TIME as MySQL prints it, with six digits of a second."""
    seconds, fraction = divmod(abs(microseconds), _SECOND)
    sign = "-" if microseconds < 0 else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"
