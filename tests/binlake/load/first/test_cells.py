"""Every type of a column, read as the load reads it, is what PyMySQL reads."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pymysql
import pytest

from binlake.decode.changes import SourceTable
from binlake.settings import SourceSettings
from binlake.source.database.connection import SourceConnection, connect
from binlake.source.database.source_table import describe
from binlake.source.database.values import Unreadable, ValueReader
from embedded.mariadb import EmbeddedMariaDB
from tests.binlake.load.first.changing import PASSWORD, WRITER
from tests.selection import first

pytestmark = pytest.mark.database

_ROWS = 400
_WORDS = ["", "a ", " b", "A", "ä", "漢字", "😀", "\0", "'\"\\", "line\nfeed", "x" * 300]
_LATIN = ["", "é", "ÿ ", "€uro"]
Draw = Callable[[random.Random], Any]


def _whole(low: int, high: int) -> Draw:
    """Its ends, and numbers of any size between them."""
    return lambda draw: draw.choice(
        [low, high, 0, draw.randint(low, high), draw.randint(low, high) >> draw.randrange(64)]
    )


def _decimal(digits: int, scale: int) -> Draw:
    most = 10**digits - 1
    return lambda draw: (
        str(Decimal(_whole(-most, most)(draw)).scaleb(-scale)) if digits < 28 else _long(draw, digits, scale)
    )


def _long(draw: random.Random, digits: int, scale: int) -> str:
    text = "".join(draw.choice("0123456789") for _ in range(draw.randint(scale + 1, digits)))
    return draw.choice(["", "-"]) + (f"{text[:-scale]}.{text[-scale:]}" if scale else text)


def _moment(draw: random.Random) -> str:
    days = draw.choice([dt.date(1970, 1, 2), dt.date(2024, 2, 29), dt.date(2037, 12, 31), dt.date(1999, 12, 31)])
    return f"{days} {draw.randrange(24):02}:{draw.randrange(60):02}:{draw.randrange(60):02}.{draw.randrange(10**6):06}"


def _far(draw: random.Random) -> str:
    return draw.choice(["0001-01-01", "1000-02-28", "9999-12-31", str(dt.date.fromordinal(draw.randint(1, 3_652_059)))])


def _clock(draw: random.Random) -> str:
    hours, sign = draw.choice([0, 9, 99, 100, 838, draw.randrange(838)]), draw.choice(["", "-"])
    return f"{sign}{hours:02}:{draw.randrange(60):02}:{draw.randrange(60):02}.{draw.randrange(10**6):06}"


#: Column type -> a value to insert.
TYPES: dict[str, Draw] = {
    "TINYINT": _whole(-128, 127),
    "SMALLINT UNSIGNED": _whole(0, 65_535),
    "MEDIUMINT": _whole(-(2**23), 2**23 - 1),
    "INT(10) UNSIGNED ZEROFILL": _whole(0, 2**32 - 1),
    "BIGINT": _whole(-(2**63), 2**63 - 1),
    "BIGINT UNSIGNED": _whole(0, 2**64 - 1),
    "BIGINT(20) UNSIGNED ZEROFILL": _whole(0, 2**64 - 1),
    "DECIMAL(10,2)": _decimal(10, 2),
    "DECIMAL(18,0)": _decimal(18, 0),
    "DECIMAL(20,19)": _decimal(20, 19),
    "DECIMAL(38,10)": _decimal(38, 10),
    "FLOAT": lambda draw: draw.choice([0.1, 16_777_217, 3.4028235e38, 1.17549435e-38, draw.random(), -1e10]),
    "DOUBLE": lambda draw: draw.choice([0.1, 1.7976931348623157e308, 2.2250738585072014e-308, draw.random(), -1e-7]),
    "BIT(1)": lambda draw: draw.randrange(2),
    "BIT(13)": lambda draw: draw.randrange(1 << 13),
    "BIT(64)": _whole(0, 2**64 - 1),
    "YEAR": lambda draw: draw.choice([0, 1901, 2155, 2000]),
    "DATE": _far,
    "DATETIME": lambda draw: f"{_far(draw)} 23:59:59",
    "DATETIME(6)": _moment,
    "TIMESTAMP(3) NULL": _moment,
    "TIME": _clock,
    "TIME(6)": _clock,
    "CHAR(5)": lambda draw: draw.choice(_WORDS)[:5],
    "VARCHAR(300) CHARACTER SET utf8mb4": lambda draw: draw.choice(_WORDS),
    "VARCHAR(20) CHARACTER SET latin1": lambda draw: draw.choice(_LATIN),
    "TEXT CHARACTER SET ucs2": lambda draw: draw.choice(_WORDS[:6]),
    "BINARY(4)": lambda draw: draw.randbytes(draw.randrange(5)),
    "VARBINARY(300)": lambda draw: draw.randbytes(draw.choice([0, 1, 250, 251, 300])),
    "MEDIUMBLOB": lambda draw: draw.randbytes(draw.choice([0, 65_535, 65_536]) if draw.random() < 0.05 else 3),
    "ENUM('', 'a,b', 'ü', '1')": lambda draw: draw.choice(["", "a,b", "ü", 4]),
    "SET('x', 'ü', '1')": lambda draw: draw.randrange(8),
    "JSON": lambda draw: draw.choice(['{"a": [1, 2.50, "x  y\\""]}', "[]", "null", '"é"']),
}


@pytest.fixture
def writer(server: EmbeddedMariaDB) -> Iterator[pymysql.Connection]:
    made = pymysql.connect(host=server.host, port=server.port, user=WRITER, password=PASSWORD, autocommit=True)
    with made:
        yield made


def _fill(writer: pymysql.Connection, table: str, seed: int) -> None:
    draw = random.Random(seed)
    names = [f"c{number}" for number in range(len(TYPES))]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, TYPES, strict=True))
    with writer.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = '', time_zone = '+00:00'")
        cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, {columns}) CHARACTER SET utf8mb4")
        marks = ", ".join(["%s"] * (len(names) + 1))
        rows = [
            [number, *(None if draw.random() < 0.1 else make(draw) for make in TYPES.values())]
            for number in range(_ROWS)
        ]
        cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def _as_loaded(connection: SourceConnection, table: SourceTable) -> dict[str, list[Any]]:
    """Columns as the load's reader gives them, in small blocks."""
    described = describe(connection, table)
    readers = []
    for column in described.columns:
        assert column.type is not None
        readers.append(ValueReader.of(column.name, column.type, SourceSettings(), nullable=True, in_key=False))
    selected = ", ".join(column.selected for column in described.columns)
    values: dict[str, list[Any]] = {column.name: [] for column in described.columns}
    unreadable = Unreadable()
    for block in connection.blocks(f"SELECT {selected} FROM {described.sql_name} ORDER BY id", 37, 10_000):
        for reader, cells in zip(readers, block.columns(len(readers)), strict=True):
            array = reader.read(cells, unreadable)
            array.validate(full=True)
            values[reader.column.name] += array.to_pylist()
    assert not unreadable.count
    return values


def _as_pymysql(value: object, kind: pa.DataType | str) -> object:
    """What PyMySQL reads, in the form in which the lake holds it."""
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=dt.UTC)
    if kind == "BIT(1)" and isinstance(value, bytes):
        return value == b"\x01"
    if kind.startswith("BIGINT") and "UNSIGNED" in str(kind) and isinstance(value, int):
        return Decimal(value)
    return value


@pytest.mark.full
@pytest.mark.parametrize("seed", first(1, range(5)))
def test_every_type_is_read_as_pymysql_reads_it(
    server: EmbeddedMariaDB, database: str, writer: pymysql.Connection, seed: int
) -> None:
    table = f"{database}.t"
    _fill(writer, table, seed)
    source = SourceSettings.model_validate(
        {"database": {"host": server.host, "port": server.port, "user": WRITER, "password": PASSWORD}}
    )
    with connect(source.database) as connection:
        loaded = _as_loaded(connection, SourceTable(database, "t"))
    floats = [f"c{number}" for number, kind in enumerate(TYPES) if kind == "FLOAT"]
    with writer.cursor() as cursor:
        selected = ", ".join(f"{name} * 1e0" if name in floats else name for name in loaded)
        cursor.execute(f"SELECT {selected} FROM {table} ORDER BY id")
        by_pymysql = list(zip(*cursor.fetchall(), strict=True))
    for number, kind in enumerate(TYPES, 1):
        expected = [_as_pymysql(value, kind) for value in by_pymysql[number]]
        assert len(loaded[f"c{number - 1}"]) == _ROWS
        assert loaded[f"c{number - 1}"] == expected, kind
        assert len(set(expected)) > 2, kind  # the control: these values can be confused


def test_a_year_of_two_digits_is_read_with_four(
    server: EmbeddedMariaDB, database: str, writer: pymysql.Connection
) -> None:
    with writer.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {database}.y (id INT PRIMARY KEY, y YEAR(2))")
        rows = "(0, '0000'), (1, 0), (2, 1), (3, 69), (4, 70), (5, 99), (6, NULL)"
        cursor.execute(f"INSERT INTO {database}.y VALUES {rows}")
        cursor.execute(f"SELECT y FROM {database}.y WHERE id IN (0, 1)")
        assert set(cursor.fetchall()) == {(0,)}, "the control: the server prints them alike"
    source = SourceSettings.model_validate(
        {"database": {"host": server.host, "port": server.port, "user": WRITER, "password": PASSWORD}}
    )
    with connect(source.database) as connection:
        loaded = _as_loaded(connection, SourceTable(database, "y"))
    assert loaded["y"] == [0, 2000, 2001, 2069, 1970, 1999, None]


@pytest.mark.parametrize("rows", [0, 1, 200, 4_000])
def test_a_result_of_any_size_ends(server: EmbeddedMariaDB, rows: int) -> None:
    """However much of it PyMySQL has buffered: nothing more is asked of the socket then."""
    address = {"host": server.host, "port": server.port, "user": WRITER, "password": PASSWORD, "timeout_seconds": 10}
    with connect(SourceSettings.model_validate({"database": address}).database) as connection:
        for _ in range(2):
            blocks = connection.blocks(f"SELECT seq FROM mysql.seq_1_to_4000 LIMIT {rows}", 900, 1 << 20)
            sizes = [len(block) for block in blocks]
            assert (sum(sizes), max(sizes, default=0) <= 900) == (rows, True)
        assert connection.rows("SELECT 1") == [("1",)]
