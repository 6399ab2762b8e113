"""The definition of a table at a place of the binlog, from its TABLE_MAP event with full metadata.

With ``binlog_row_metadata = FULL`` the event says all that reading rows needs: names, types with digits and lengths,
signs, character sets, the members of ENUM and SET, and the primary key (invisible or not). The form: MySQL's manual,
"Table_map_event"; MariaDB writes the same (read from a server of each kind in the tests, as far as there is one).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from binlake.decode.changes import SourceTable
from binlake.source.binlog.charsets import BINARY_COLLATION, Charset
from hudilake.errors import BadInputError


class FieldType(IntEnum):
    """The types of columns in the binlog."""

    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    JSON = 245
    DECIMAL = 246
    ENUM = 247
    SET = 248
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


_METADATA_BYTES = {
    FieldType.FLOAT: 1,
    FieldType.DOUBLE: 1,
    FieldType.VARCHAR: 2,
    FieldType.BIT: 2,
    FieldType.TIMESTAMP2: 1,
    FieldType.DATETIME2: 1,
    FieldType.TIME2: 1,
    FieldType.BLOB_COMPRESSED: 1,
    FieldType.VARCHAR_COMPRESSED: 2,
    FieldType.JSON: 1,
    FieldType.DECIMAL: 2,
    FieldType.BLOB: 1,
    FieldType.VAR_STRING: 2,
    FieldType.STRING: 2,
    FieldType.GEOMETRY: 1,
}
_SIGNED = frozenset(
    {
        FieldType.TINY,
        FieldType.SHORT,
        FieldType.INT24,
        FieldType.LONG,
        FieldType.LONGLONG,
        FieldType.FLOAT,
        FieldType.DOUBLE,
        FieldType.DECIMAL,
        FieldType.YEAR,
    }
)
_TEXT = frozenset(
    {
        FieldType.VARCHAR,
        FieldType.STRING,
        FieldType.VAR_STRING,
        FieldType.BLOB,
        FieldType.VARCHAR_COMPRESSED,
        FieldType.BLOB_COMPRESSED,
    }
)
_MEMBERS = frozenset({FieldType.ENUM, FieldType.SET})
_HASH = re.compile(r"DB_ROW_HASH_\d+")


class _Metadata(IntEnum):
    SIGNS = 1
    DEFAULT_CHARSET = 2
    CHARSETS = 3
    NAMES = 4
    SET_MEMBERS = 5
    ENUM_MEMBERS = 6
    GEOMETRY_TYPES = 7
    KEY = 8
    KEY_WITH_PREFIX = 9
    MEMBERS_DEFAULT_CHARSET = 10
    MEMBERS_CHARSETS = 11


@dataclass(frozen=True, slots=True)
class LoggedColumn:
    """A column as the binlog has it.

    Args:
        name: of the column.
        kind: its type in the binlog.
        size: what the type's metadata says: bytes of a length, of a string at most, of an ENUM or SET; digits of a
            second; bits of a BIT; precision of a DECIMAL.
        scale: of a DECIMAL.
        unsigned: whether its numbers have no sign.
        charset: of its text; None for bytes, and for types without text.
        members: of an ENUM or SET.
        opaque: whether its values are not what they look like here.
        hidden: whether it is the server's own, which no SELECT shows.
    """

    name: str
    kind: FieldType
    size: int = 0
    scale: int = 0
    unsigned: bool = False
    charset: Charset | None = None
    members: tuple[str, ...] = ()
    opaque: bool = False
    hidden: bool = False

    @property
    def may_be_opaque(self) -> bool:
        """Whether it may be MariaDB's UUID, INET4 or INET6: the binlog shows them as bytes of a fixed length."""
        return self.kind is FieldType.STRING and self.charset is None and self.size in (4, 16)

    @property
    def may_have_digits(self) -> bool:
        """Whether it may have digits of a second in MariaDB's form before 10.1 (``mysql56_temporal_format = OFF``):
        its values have more bytes then, and the binlog does not say how many."""
        return self.kind in (FieldType.TIME, FieldType.DATETIME, FieldType.TIMESTAMP)

    @property
    def may_be_hidden(self) -> bool:
        """Whether it may be the hash that MariaDB keeps of a UNIQUE key which is too long for an index."""
        return _HASH.fullmatch(self.name) is not None

    @property
    def may_be_period(self) -> bool:
        """Whether it may say since when, or until when, a row of MariaDB's system versioning holds."""
        is_moment = self.kind is FieldType.TIMESTAMP2 and self.size == 6
        return is_moment or (self.kind is FieldType.LONGLONG and self.unsigned)


@dataclass(frozen=True, slots=True)
class LoggedTable:
    """A table as a TABLE_MAP event has it. ``key``: the columns of the primary key; empty if there is none."""

    source: SourceTable
    columns: tuple[LoggedColumn, ...]
    key: tuple[str, ...]

    @property
    def open_columns(self) -> frozenset[str]:
        """The columns, in lower case, of which the binlog of a MariaDB does not say what their values are."""
        return frozenset(
            one.name.lower() for one in self.columns if one.may_be_opaque or one.may_have_digits or one.may_be_hidden
        )

    @property
    def may_be_versioned(self) -> bool:
        """Whether it may have system versioning: the binlog of a MariaDB has former rows among the others."""
        return sum(column.may_be_period for column in self.columns) > 1


def table_of(body: bytes) -> tuple[int, SourceTable]:
    """The id and the name of the table of a TABLE_MAP event."""
    reader = _Fields(body, 8)
    table_id = int.from_bytes(body[:6], "little")
    database = reader.text(reader.byte())
    reader.skip(1)
    return table_id, SourceTable(database, reader.text(reader.byte()))


def definition_of(body: bytes, charsets: Mapping[int, Charset], place: str, *, mariadb: bool) -> LoggedTable:
    """The definition in a TABLE_MAP event.

    Args:
        body: of the event.
        charsets: by the id of the collation.
        place: of the event, for errors.
        mariadb: whether a MariaDB wrote it.

    Raises BadInputError where the event does not say the names of the columns, or has a type that is not known.
    """
    _, source = table_of(body)
    reader = _Fields(body, 8)
    for _ in ("database", "table"):
        reader.skip(reader.byte() + 1)
    count = reader.number()
    codes = reader.take(count)
    metadata = _Fields(reader.take(reader.number()), 0)
    columns = [_typed(code, metadata, source, place) for code in codes]
    reader.skip((count + 7) // 8)
    parts = dict(reader.parts())
    if _Metadata.NAMES not in parts:
        raise BadInputError(
            f"the binlog does not name the columns of {source} at {place}: binlog_row_metadata was not FULL",
            do_next="SET GLOBAL binlog_row_metadata = FULL, and begin after this place (source.mysql.start, a new "
            "stream); or read this server through Debezium and Kafka",
        )
    names = [text.decode() for text in _Fields(parts[_Metadata.NAMES], 0).texts()]
    described = _described(columns, names, parts, charsets, f"{source} at {place} of the binlog", mariadb=mariadb)
    return LoggedTable(source, tuple(described), _key(parts, names))


def _typed(code: int, metadata: _Fields, source: SourceTable, place: str) -> LoggedColumn:
    """The column without its name, from its type and the type's metadata."""
    try:
        kind = FieldType(code)
    except ValueError:
        raise BadInputError(
            f"{source} has a column of type {code} at {place} of the binlog, which binlake does not know",
            do_next="leave the table out (tables.exclude)",
        ) from None
    data = metadata.take(_METADATA_BYTES.get(kind, 0))
    if kind is FieldType.STRING:
        if data[0] in _MEMBERS:
            return LoggedColumn("", FieldType(data[0]), data[1])
        return LoggedColumn("", kind, (((data[0] << 4) & 0x300) ^ 0x300) + data[1])
    if kind is FieldType.BIT:
        return LoggedColumn("", kind, data[1] * 8 + data[0])
    if kind is FieldType.DECIMAL:
        return LoggedColumn("", kind, data[0], data[1])
    return LoggedColumn("", kind, int.from_bytes(data, "little"))


def _described(
    columns: list[LoggedColumn],
    names: list[str],
    parts: Mapping[int, bytes],
    charsets: Mapping[int, Charset],
    table: str,
    *,
    mariadb: bool,
) -> Iterator[LoggedColumn]:
    signs = _bits(parts.get(_Metadata.SIGNS, b""))
    sets, enums = (_members(parts.get(part, b"")) for part in (_Metadata.SET_MEMBERS, _Metadata.ENUM_MEMBERS))
    of_text = _collations(parts, _Metadata.DEFAULT_CHARSET, _Metadata.CHARSETS)
    of_members = _collations(parts, _Metadata.MEMBERS_DEFAULT_CHARSET, _Metadata.MEMBERS_CHARSETS)
    for name, column in zip(names, columns, strict=True):
        unsigned = next(signs, False) if column.kind in _SIGNED else False
        collation = BINARY_COLLATION
        members: tuple[bytes, ...] = ()
        if column.kind in _TEXT:
            collation = next(of_text)
        elif column.kind is FieldType.GEOMETRY and mariadb:  # which counts spatial columns among those with text
            next(of_text)
        elif column.kind in _MEMBERS:
            collation = next(of_members)
            members = next(sets if column.kind is FieldType.SET else enums)
        charset = None
        if collation != BINARY_COLLATION:
            charset = charsets.get(collation)
            if charset is None:
                raise BadInputError(
                    f"column {name} of {table} has collation {collation}, which the server does not list",
                    do_next="give the column a collation of the server, or leave the table out (tables.exclude)",
                )
        yield LoggedColumn(
            name,
            column.kind,
            column.size,
            column.scale,
            unsigned,
            charset,
            tuple(one.decode((charset and charset.codec) or "latin-1") for one in members),
        )


def _collations(parts: Mapping[int, bytes], default: _Metadata, listed: _Metadata) -> Iterator[int]:
    """The collation of each column that has one, in order."""
    if listed in parts:
        yield from _Fields(parts[listed], 0).numbers()
        return
    first, *rest = list(_Fields(parts.get(default, b""), 0).numbers()) or [BINARY_COLLATION]
    others = dict(zip(rest[::2], rest[1::2], strict=True))
    number = 0
    while True:
        yield others.get(number, first)
        number += 1


def _members(data: bytes) -> Iterator[tuple[bytes, ...]]:
    reader = _Fields(data, 0)
    while reader.left:
        yield tuple(reader.take(reader.number()) for _ in range(reader.number()))


def _bits(data: bytes) -> Iterator[bool]:
    for byte in data:
        for bit in range(7, -1, -1):
            yield bool(byte >> bit & 1)


def _key(parts: Mapping[int, bytes], names: list[str]) -> tuple[str, ...]:
    if _Metadata.KEY in parts:
        return tuple(names[number] for number in _Fields(parts[_Metadata.KEY], 0).numbers())
    numbers = list(_Fields(parts.get(_Metadata.KEY_WITH_PREFIX, b""), 0).numbers())
    return tuple(names[number] for number in numbers[::2])


class _Fields:
    """Reads the fields of an event one after the other. Raises struct.error, IndexError beyond the end."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data, self._next = data, start

    @property
    def left(self) -> int:
        """The bytes that are left."""
        return len(self._data) - self._next

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if size > self.left:
            raise struct.error(f"{size} bytes where {self.left} are left")
        self._next += size
        return self._data[self._next - size : self._next]

    def skip(self, size: int) -> None:
        """Leave bytes out."""
        self.take(size)

    def byte(self) -> int:
        """The next byte."""
        return self.take(1)[0]

    def text(self, size: int) -> str:
        """The next bytes as UTF-8."""
        return self.take(size).decode()

    def number(self) -> int:
        """A number of variable length."""
        first = self.byte()
        if first < 0xFB:
            return first
        return int.from_bytes(self.take({0xFC: 2, 0xFD: 3, 0xFE: 8}[first]), "little")

    def numbers(self) -> Iterator[int]:
        """All numbers up to the end."""
        while self.left:
            yield self.number()

    def texts(self) -> Iterator[bytes]:
        """All texts up to the end, each after its length."""
        while self.left:
            yield self.take(self.number())

    def parts(self) -> Iterator[tuple[int, bytes]]:
        """The parts of the optional metadata: type and content."""
        while self.left:
            yield self.byte(), self.take(self.number())
