"""What a server makes of stored values when MODIFY COLUMN gives the column another type: the oracle of conversions.

A value is read from the server as text and decoded as everywhere else, so both sides are values as the lake holds them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from binlake.decode.options import CanalForm
from binlake.decode.types.mysql_types import MysqlType, parse_type
from binlake.decode.types.text_columns import column_of
from binlake.decode.types.wires import to_lake
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import TransientError

#: Column types of every kind, as statements spell them.
TYPES = (
    "tinyint",
    "smallint unsigned",
    "mediumint",
    "int",
    "int(8) unsigned zerofill",
    "bigint",
    "bigint unsigned",
    "decimal(10,2)",
    "decimal(5,0) unsigned",
    "decimal(20,6)",
    "decimal(50,10)",
    "float",
    "double",
    "bit(1)",
    "bit(12)",
    "year",
    "date",
    "datetime",
    "datetime(6)",
    "timestamp(3) null",
    "time",
    "time(6)",
    "char(5)",
    "varchar(4)",
    "varchar(60)",
    "text",
    "tinytext",
    "varchar(30) character set latin1",
    "enum('x','y','abc','12')",
    "enum('y','x','new')",
    "set('x','y','abc','d')",
    "set('y','q','abc')",
    "binary(4)",
    "varbinary(8)",
    "blob",
    "json",
    "uuid",
    "inet6",
)

_NUMBERS = tuple(
    """0 1 -1 2 3 5 8 9 10 12 24 69 70 99 100 127 128 -128 -129 255 256 999 1901 1970 2024 2155 2156 32767 -32768 65535
    65536 8388607 16777215 19991231 20240229 240229 20240229123456 240229123456 8385959 8390000 -123456 2147483647
    2147483648 -2147483648 4294967295 4294967296 9223372036854775807 9223372036854775808 -9223372036854775808
    18446744073709551615 1.5 2.5 -1.5 -0.5 0.5 0.49999 1.005 99999.995 1e10 1e15 1e20 1e-5 1e-10 1.23e-7 123456.789
    0.1 3.14159265358979 -3.14159265358979 1e38 1e100 1.7e308 16777217 12345678.9 20240229.5 0.000001
    123456789012345678 0.3333333333333333 1234567.5 999999.5 1e6 1e7 1e14 1e16 1e17 -1e20 -99999999.99 1e-300""".split()  # noqa: SIM905 - a line each says no more
)
_TEXTS = (
    "",
    " ",
    "a",
    "abc",
    "abcde  ",
    "ab  ",
    " x",
    "12",
    " 12",
    "12 ",
    "12abc",
    "-12",
    "+5",
    "1.5",
    "2.5",
    "-1.5",
    ".5",
    "1e3",
    "1e400",
    "1e",
    "-",
    "0x10",
    "é",
    "ÄÖü",
    "€",
    "日本語",
    "😀a",
    "true",
    "\u0663",  # a digit that is not of ASCII, and a space
    "\uff15",
    "\u00a05",
    "\u0662\u0660\u0662\u0664-\u0660\u0662-\u0662\u0669",
    "\u00a02024-02-29",
    "2024-02-29\u00a012:34:56",
    "\u0661\u0662:\u0663\u0660",
    "\u00a012:30",
    "2024-02-29",
    "2023-02-29",
    "2024-2-9",
    "24-2-9",
    "20240229",
    "2024-02-29 12:34:56",
    "2024-02-29 12:34:56.789",
    "2024-02-29 12:34:56.9999999",
    "2024-02-29T12:34:56.999999",
    "2024-02-29 23:59:59.999999",
    "2024-02-29 12:34",
    "20240229123456",
    "2024/02/29",
    "12:34:56",
    "12:34",
    "-12:34:56.5",
    "12:34:56.789",
    "838:59:59",
    "839:00:00",
    "1 12:34:56",
    "123456",
    "1234",
    "70",
    "69",
    "0",
    "2000",
    "1899",
    "99999999999999999999",
    "x",
    "y",
    "x,y",
    "y,x",
    "X",
    "abc,y",
    "new",
    "x,zz",
    '{"a": 1}',
    "[1, 2]",
    "null",
    '"s"',
    "192.168.0.1",
    "::1",
    "123e4567-e89b-12d3-a456-426614174000",
    "1970-01-01 00:00:01",
    "2038-01-19 03:14:07",
    "1969-12-31 23:59:59",
    "9999-12-31 23:59:59.999999",
    "a\\0b",
    "w" * 70,
    "é" * 200,
    "123456789012345.678901234567890",
    "0.00000000001",
    "99999.5",
)
_MOMENTS = (
    "1000-01-01 00:00:00",
    "9999-12-31 23:59:59.999999",
    "1970-01-01 00:00:01",
    "2038-01-19 03:14:07",
    "2024-02-29 12:34:56.5",
    "2024-02-29 12:34:56.499999",
    "2024-02-29 12:34:56.123456",
    "1999-12-31 23:59:59.999999",
    "2024-02-29",
    "1901-01-01",
    "2155-12-31",
    "2001-01-01 00:00:00",
    "00:00:00",
    "838:59:59.999999",
    "-838:59:59",
    "23:59:59.999999",
    "-00:00:00.5",
    "100:00:00",
    "12:34:56.123456",
)
_BYTES = (
    "",
    "00",
    "00FF",
    "61",
    "616263",
    "6162630000",
    "E9",
    "C3A9",
    "31",
    "3132",
    "F09F9880",
    "2D3500",
    "20",
    "FFFF",
)
#: Literals of each kind that are drawn at random.
_DRAWN = 20
_BINARIES = frozenset({"binary", "varbinary", "blob"})
_FORM = CanalForm()
#: Dates that no calendar has; they are null in the lake.
_NO_DAY = re.compile(r"0000-|....-00-|....-..-00")


@dataclass(frozen=True)
class Converted:
    """A column that was ``old`` and became ``new``: its values before and after, as lake values."""

    old: MysqlType
    new: MysqlType
    before: pa.Array
    after: pa.Array


def literals(kind: MysqlType, chance: random.Random) -> list[str]:
    """SQL literals from which a column of that type gets its values; the server cuts them. Some are drawn."""
    texts = [f"'{text}'" for text in (*_TEXTS, *(_drawn_text(chance) for _ in range(_DRAWN)))]
    numbers = [*_NUMBERS, *(_drawn_number(chance) for _ in range(_DRAWN))]
    if kind.base in _BINARIES:
        return [f"x'{data}'" for data in _BYTES] + texts
    if kind.base == "bit":
        return [number for number in numbers if number.isdigit()]
    if kind.base in ("date", "datetime", "timestamp", "time", "year"):
        moments = [*_MOMENTS, *(_drawn_moment(chance) for _ in range(_DRAWN))]
        return [f"'{moment}'" for moment in moments] + (numbers if kind.base == "year" else [])
    if kind.base in ("enum", "set"):
        return [text for text in texts if len(text) < 10] + ["1", "2", "3"]
    if kind.base in ("char", "varchar", "text"):
        return texts + [f"'{number}'" for number in numbers]
    if kind.base in ("json", "uuid"):
        return texts
    return numbers


def _drawn_number(chance: random.Random) -> str:
    whole = chance.randrange(10 ** chance.randrange(1, 19))
    return f"{chance.choice(['', '-'])}{whole}{chance.choice(['', f'.{chance.randrange(10**6)}'])}"


def _drawn_text(chance: random.Random) -> str:
    return "".join(chance.choice("abxyzé€ .,5") for _ in range(chance.randrange(1, 40)))


def _drawn_moment(chance: random.Random) -> str:
    day = f"{chance.randrange(1900, 2100)}-{chance.randrange(1, 13):02d}-{chance.randrange(1, 29):02d}"
    clock = f"{chance.randrange(24):02d}:{chance.randrange(60):02d}:{chance.randrange(60):02d}"
    return f"{day} {clock}.{chance.randrange(10**6):06d}"


def fill(
    server: EmbeddedMariaDB, table: str, old: str, values: Sequence[str], copies: int, *, null: bool = True
) -> None:
    """Create a table with ``copies`` columns of a type and one more that stays, and the values that the type accepts;
    NULL is among them unless ``null`` is false."""
    names = [f"c{n}" for n in range(copies + 1)]
    columns = ", ".join(f"{name} {old}" for name in names)
    table_options = "ENGINE=MyISAM CHARSET=utf8mb4"  # InnoDB has a limit of 8 kB for a row
    server.execute(f"CREATE OR REPLACE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, {columns}) {table_options}")
    row = ", ".join(names)
    lines = [f"INSERT IGNORE INTO {table} ({row}) VALUES ({', '.join([value] * len(names))});" for value in values]
    if null:
        lines.append(f"INSERT INTO {table} ({row}) VALUES ({', '.join(['NULL'] * len(names))});")
    server.execute("SET sql_mode=''; SET NAMES utf8mb4;\n" + "\n".join(lines))


def read(server: EmbeddedMariaDB, table: str, kinds: Sequence[MysqlType], order: str = "id") -> list[pa.Array]:
    """The columns ``c0`` and on in the order of a column, decoded; a date that no calendar has is null."""
    said = ", ".join(_said(f"c{n}", kind) for n, kind in enumerate(kinds))
    lines = [line.split("\t") for line in server.execute(f"SELECT {said} FROM {table} ORDER BY {order}")]
    columns = zip(*lines, strict=True)
    return [_decoded(texts, f"c{n}", kind) for n, (texts, kind) in enumerate(zip(columns, kinds, strict=True))]


def _said(name: str, kind: MysqlType) -> str:
    if kind.base in _BINARIES:
        return f"HEX({name})"
    if kind.base in ("bit", "int", "bigint", "enum", "set"):
        return f"HEX(CAST({name} + 0 AS CHAR))"
    if kind.base == "float":
        return f"HEX(CAST(CAST({name} AS DOUBLE) AS CHAR))"
    return f"HEX(CONVERT(CAST({name} AS CHAR) USING utf8mb4))"


def _decoded(said: Sequence[str], name: str, kind: MysqlType) -> pa.Array:
    charset = "latin1" if kind.base in _BINARIES else "utf8"
    texts = [None if text == "NULL" else bytes.fromhex(text).decode(charset) for text in said]
    if kind.base in ("date", "datetime", "timestamp"):
        texts = [None if text is None or _NO_DAY.match(text) else text for text in texts]
    return to_lake(pa.array(texts, pa.string()), column_of(name, kind, _FORM))


def conversions(
    server: EmbeddedMariaDB, database: str, old: str, news: Sequence[str], seed: int
) -> tuple[int, list[Converted]]:
    """What becomes of values of a type under each of the other types; a type that the server refuses is left out.

    Returns the server's time in seconds since the Unix epoch, and the conversions. Rows that hold a zero date before
    are left out: the lake holds it as null, and so cannot tell it from null.
    """
    kind, table = parse_type(old), f"{database}.t"
    fill(server, table, old, literals(kind, random.Random(seed)), len(news))
    [before, *_] = read(server, table, [kind] * len(news))
    taken = modified(server, table, [*enumerate(news)])
    [now] = server.execute("SELECT UNIX_TIMESTAMP()")
    now_kinds = [parse_type(new) if n in taken else kind for n, new in enumerate(news)]
    after = read(server, table, now_kinds)
    said = server.execute(f"SELECT IFNULL(HEX(CAST(c{len(news)} AS CHAR)), '') FROM {table} ORDER BY id")
    moment = kind.base in ("date", "datetime", "timestamp")
    kept = pa.array([not moment or _NO_DAY.match(bytes.fromhex(text).decode()) is None for text in said])
    return int(now), [
        Converted(kind, now_kinds[n], before.filter(kept), after[n].filter(kept))
        for n in range(len(news))
        if n in taken
    ]


def modified(server: EmbeddedMariaDB, table: str, columns: Sequence[tuple[int, str]], mode: str = "") -> set[int]:
    """Give the columns their types, all at once or else one half after the other; returns those that took them.
    ``mode``: the session's ``sql_mode``."""
    try:
        clauses = ", ".join(f"MODIFY c{n} {new}" for n, new in columns)
        server.execute(f"SET sql_mode='{mode}'; ALTER TABLE {table} {clauses}")
    except TransientError:
        middle = len(columns) // 2
        halves = (columns[:middle], columns[middle:]) if middle else ()
        return set[int]().union(*(modified(server, table, half, mode) for half in halves))
    return {n for n, _ in columns}
