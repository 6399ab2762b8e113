"""MySQL's and MariaDB's column types: from their text to a lake type.

Lake types (measured: all of them are read alike by both judges): integers up to INT and YEAR int32; INT UNSIGNED and
BIGINT int64; BIGINT UNSIGNED decimal128(20, 0); DECIMAL decimal128 up to 38 digits and plain text beyond; FLOAT
float32; DOUBLE float64; DATE date32; DATETIME and TIMESTAMP microseconds in UTC; TIME int64 microseconds; BIT(1)
bool; BIT(n) big-endian binary; text, ENUM, SET and JSON string; BINARY and BLOB binary; spatial types binary (SRID in
4 little-endian bytes, then WKB).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from hudilake.errors import UnsupportedError

MAX_LAKE_DECIMAL_DIGITS = 38
#: ``MysqlType.base`` of a column of which only nulls are known: it has no type yet.
NULL_BASE = "null"
#: Bases of types whose values are whole numbers.
INTEGER_BASES = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bool"})
#: Types of which a part of the values, or of the members, is text of a character set.
TEXT_BASES = frozenset({"char", "varchar", "text", "enum", "set"})
#: In place of a character set's name: the column has one, and no log says which.
UNDETERMINED_CHARSET = "undetermined"
#: The types that hold characters of a character set.
CHARACTER_TYPES = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
UTC_MICROSECONDS = pa.timestamp("us", tz="UTC")

_CANONICAL = {
    "tinyint": "tinyint int1",
    "smallint": "smallint int2",
    "mediumint": "mediumint int3 middleint",
    "int": "int integer int4",
    "bigint": "bigint int8",
    "bool": "bool boolean",
    "decimal": "decimal dec numeric fixed number",
    "float": "float float4",
    "double": "double real float8 double_precision",
    "bit": "bit",
    "year": "year",
    "date": "date",
    "time": "time",
    "datetime": "datetime",
    "timestamp": "timestamp",
    "char": "char character nchar national_char national_character",
    "varchar": "varchar varchar2 character_varying char_varying nvarchar nchar_varchar nchar_varying national_varchar "
    "national_char_varying national_character_varying varcharacter",
    "text": "tinytext text mediumtext longtext long long_varchar long_char_varying long_character_varying clob",
    "json": "json",
    "enum": "enum",
    "set": "set",
    "uuid": "uuid inet4 inet6",
    "binary": "binary char_byte",
    "varbinary": "varbinary raw",
    "blob": "tinyblob blob mediumblob longblob long_varbinary",
    "geometry": "geometry point linestring polygon multipoint multilinestring multipolygon geometrycollection "
    "geomcollection",
}
_CHARSET = re.compile(r"""'(?:[^'\\]|''|\\.)*'|\b(?:charset|character\s+set)\s*=?\s*(\w+)""", re.IGNORECASE | re.DOTALL)
_COLLATION = re.compile(r"\s+collate\s*=?\s*\w+", re.IGNORECASE)
_BASE_OF = {spelling: base for base, spellings in _CANONICAL.items() for spelling in spellings.split()}
_LONGEST_NAME_WORDS = 3
#: The greatest length and scale of types, and the most members, in MySQL or MariaDB; of other types that of LONGTEXT.
_MOST_LENGTH = {"decimal": 65, "bit": 64, "binary": 255, "time": 6, "datetime": 6, "timestamp": 6}
_LONGEST_TEXT = (1 << 32) - 1
_MOST_SCALE = 38
_MOST_MEMBERS = {"enum": 65_535, "set": 64}
_TEXT_BASES = frozenset({"char", "varchar", "text"})
_BINARY_OF_TEXT = {"char": "binary", "varchar": "varbinary", "text": "blob"}
_PLAIN_LAKE_TYPES = {
    "tinyint": pa.int32(),
    "smallint": pa.int32(),
    "mediumint": pa.int32(),
    "bool": pa.int32(),
    "year": pa.int32(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.int64(),
    "datetime": UTC_MICROSECONDS,
    "timestamp": UTC_MICROSECONDS,
    "char": pa.string(),
    "varchar": pa.string(),
    "text": pa.string(),
    "json": pa.string(),
    "enum": pa.string(),
    "set": pa.string(),
    "uuid": pa.string(),
    "binary": pa.binary(),
    "varbinary": pa.binary(),
    "blob": pa.binary(),
    "geometry": pa.binary(),
}


@dataclass(frozen=True, slots=True)
class MysqlType:
    """A column type in canonical form: ``base`` is one of the keys of this module's table of spellings.

    ``length`` is digits (DECIMAL), bits (BIT), fraction digits (TIME, DATETIME, TIMESTAMP) or characters. ``options``
    are the values of ENUM and SET. ``streamed`` is Debezium's spelling of each of them (measured: a comma is escaped by
    a backslash). ``text`` is the type as given; it takes no part in comparisons. ``dates_as_text``: whether the lake
    holds the texts of its dates (``zero_dates.lake_form`` sets it).
    """

    base: str
    length: int | None = None
    scale: int | None = None
    unsigned: bool = False
    options: tuple[str, ...] = ()
    streamed: tuple[str, ...] = ()
    text: str = field(default="", compare=False)
    dates_as_text: bool = False

    @property
    def precision(self) -> int:
        """Digits of a DECIMAL; 10 where none are given."""
        return self.length or 10

    @property
    def lake_type(self) -> pa.DataType:
        """The Arrow type of such a column in the lake."""
        if self.dates_as_text:
            return pa.string()
        if self.base == "int":
            return pa.int64() if self.unsigned else pa.int32()
        if self.base == "bigint":
            return pa.decimal128(20, 0) if self.unsigned else pa.int64()
        if self.base == "decimal":
            return decimal_lake_type(self.precision, self.scale or 0)
        if self.base == "bit":
            return pa.bool_() if (self.length or 1) == 1 else pa.binary()
        return _PLAIN_LAKE_TYPES[self.base]


def decimal_lake_type(precision: int, scale: int) -> pa.DataType:
    """decimal128 up to 38 digits; beyond that the exact text, because neither judge reads longer decimals."""
    return pa.decimal128(precision, scale) if precision <= MAX_LAKE_DECIMAL_DIGITS else pa.string()


def parse_type(text: str) -> MysqlType:
    """Type text as in SHOW CREATE TABLE or a statement (``decimal(12,2) unsigned``, ``enum('a','b,c')``).

    Attributes after the type (NOT NULL, DEFAULT ..., COLLATE ...) may follow. Raises UnsupportedError for a type that
    the lake does not support.
    """
    head, arguments, tail = _split(text)
    words = head.lower().split()
    base, used = _longest_name(words)
    if base is None:
        if " ".join(words).startswith("serial"):
            return MysqlType("bigint", unsigned=True, text=text)
        raise UnsupportedError(
            f"column type {text!r} is not known", do_next="leave the column out at the connector", type=text
        )
    if used < len(words):
        arguments, tail = "", f"{' '.join(words[used:])} {arguments} {tail}"
    return _build(base, arguments, tail.lower(), text)


def _build(base: str, arguments: str, attributes: str, text: str) -> MysqlType:
    if base in _TEXT_BASES and re.search(r"\b(charset|character set)\s*=?\s*binary\b", attributes):
        base = _BINARY_OF_TEXT[base]
    if base in ("enum", "set"):
        literals = _literals(arguments)
        if len(literals) > _MOST_MEMBERS[base]:
            raise _absurd(text)
        return MysqlType(
            base, options=tuple(map(_unescape, literals)), streamed=tuple(map(_streamed, literals)), text=text
        )
    numbers = [part.strip().lstrip("0") or "0" for part in arguments.split(",") if _is_number(part.strip())]
    if any(len(number) > len(str(_LONGEST_TEXT)) for number in numbers):
        raise _absurd(text)
    length = int(numbers[0]) if numbers else None
    scale = int(numbers[1]) if len(numbers) > 1 else None
    if (length or 0) > _MOST_LENGTH.get(base, _LONGEST_TEXT) or (scale or 0) > _MOST_SCALE:
        raise _absurd(text)
    if base == "float" and scale is None and length is not None and length > 24:
        base = "double"
    unsigned = bool(re.search(r"\b(unsigned|zerofill)\b", attributes))
    return MysqlType(base, length, scale, unsigned, text=text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _absurd(text: str) -> UnsupportedError:
    shown = text if len(text) <= 200 else f"{text[:200]}..."
    return UnsupportedError(
        f"column type {shown!r} is beyond what MySQL and MariaDB have",
        do_next="leave the column out at the connector",
        type=shown,
    )


def enum_type(base: str, literals: list[str], text: str) -> MysqlType:
    """ENUM or SET from its quoted options, as the connector's table changes list them (``'new'``)."""
    return _build(base, ",".join(literals), "", text)


def _longest_name(words: list[str]) -> tuple[str | None, int]:
    for n in range(min(_LONGEST_NAME_WORDS, len(words)), 0, -1):
        base = _BASE_OF.get("_".join(words[:n]))
        if base is not None:
            return base, n
    return None, 0


def _split(text: str) -> tuple[str, str, str]:
    """``name(arguments) tail`` split; brackets and commas inside quotes are not syntax."""
    start = text.find("(")
    if start < 0:
        return text, "", ""
    quoted = False
    i = start + 1
    while i < len(text) and (quoted or text[i] != ")"):
        if quoted and text[i] == "\\":
            i += 1
        elif text[i] == "'":
            quoted = not quoted
        i += 1
    return text[:start], text[start + 1 : i], text[i + 1 :]


def _literals(arguments: str) -> list[str]:
    """The contents of quoted literals, escapes kept."""
    return [m.group(1) for m in re.finditer(r"'((?:[^'\\]++|''|\\.)*)'", arguments, re.DOTALL)]


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}


def _unescape(literal: str) -> str:
    return re.sub(
        r"''|\\(.)",
        lambda m: "'" if m.group() == "''" else _ESCAPES.get(m.group(1), m.group(1)),
        literal,
        flags=re.DOTALL,
    )


def _streamed(literal: str) -> str:
    return literal.replace(",", "\\,").replace("\\'", "'").replace("''", "'")


@lru_cache(maxsize=1024)
def charset_of(text: str) -> str | None:
    """The character set that a type's text names, in lower case; None if it names none."""
    return next((match[1].lower() for match in _CHARSET.finditer(text) if match[1]), None)


def without_charset(text: str) -> str:
    """A type's text without its character set and collation."""
    bare = _CHARSET.sub(lambda match: "" if match[1] else match[0], text)
    return _COLLATION.sub("", bare).strip()
