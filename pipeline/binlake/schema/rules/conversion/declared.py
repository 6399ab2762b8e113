"""Facts about a column type that only its text has: character set, width, size in bytes."""

from __future__ import annotations

from enum import StrEnum

from binlake.decode.types.mysql_types import MysqlType, charset_of

#: Bytes that a column of the type holds at most, by the first word of its text.
_SIZES = {"tiny": 255, "medium": (1 << 24) - 1, "long": (1 << 32) - 1}
_PLAIN_SIZE = (1 << 16) - 1
#: Widths of ZEROFILL columns that name none.
_WIDTHS = {"tinyint": 3, "smallint": 5, "mediumint": 8, "int": 10, "bigint": 20}
#: MySQL's character sets of a byte a character, under the names of Python's codecs. latin1 is Windows-1252 at MySQL.
_CODECS = {"latin1": "cp1252", "ascii": "ascii", "latin2": "iso8859_2", "greek": "iso8859_7", "hebrew": "iso8859_8"}
_CODECS |= {"latin5": "iso8859_9", "latin7": "iso8859_13", "cp1250": "cp1250", "cp1251": "cp1251", "koi8r": "koi8_r"}
_UNICODE = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "binary"})


class TypeGroup(StrEnum):
    """The groups of types whose values are read alike."""

    EXACT = "exact"
    REAL = "real"
    TEXT = "text"
    BYTES = "bytes"
    MOMENT = "moment"
    CHOICE = "choice"
    OTHER = "other"


_KINDS = {
    **dict.fromkeys(
        ["tinyint", "smallint", "mediumint", "int", "bigint", "bool", "decimal", "year", "bit"], TypeGroup.EXACT
    ),
    **dict.fromkeys(["float", "double"], TypeGroup.REAL),
    **dict.fromkeys(["char", "varchar", "text", "json"], TypeGroup.TEXT),
    **dict.fromkeys(["binary", "varbinary", "blob"], TypeGroup.BYTES),
    **dict.fromkeys(["date", "datetime", "timestamp", "time"], TypeGroup.MOMENT),
    **dict.fromkeys(["enum", "set"], TypeGroup.CHOICE),
}


def kind_of(kind: MysqlType) -> TypeGroup:
    """The group of a type."""
    return _KINDS.get(kind.base, TypeGroup.OTHER)


def codec_of(kind: MysqlType) -> str | None:
    """Python's codec of the column's character set; None for Unicode, or where the text names no character set.

    Raises LookupError for a character set that is not known here.
    """
    charset = charset_of(kind.text)
    if charset is None or charset in _UNICODE:
        return None
    if charset in ("utf8", "utf8mb3", "ucs2"):
        return "ucs2"
    return _CODECS[charset]


def known_codec_of(kind: MysqlType) -> str | None:
    """The codec that a text is cut to; None also for a character set that lacks none of the text's characters."""
    try:
        return codec_of(kind)
    except LookupError:
        return None


def zerofill_width(kind: MysqlType) -> int | None:
    """The digits of a ZEROFILL column; None for any other."""
    if "zerofill" not in kind.text.lower():
        return None
    if kind.base == "decimal":
        return kind.precision + (1 if kind.scale else 0)
    return kind.length or _WIDTHS.get(kind.base)


def size_in_bytes(kind: MysqlType) -> int:
    """The bytes that a column of a TEXT or BLOB type holds at most."""
    text = kind.text.lower()
    size = next((size for word, size in _SIZES.items() if text.startswith(word)), _PLAIN_SIZE)
    if size == _PLAIN_SIZE and kind.length:  # TEXT(n) is the smallest of the four types for n characters
        width = 4 if kind.base == "text" else 1
        size = next(s for s in (255, _PLAIN_SIZE, (1 << 24) - 1, (1 << 32) - 1) if kind.length * width <= s)
    return size
