"""SQL conditions as filters: no row that the engine finds is missed, and what is exact is exactly what it finds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudilake.errors import ConfigError
from hudilake.read.filters.evaluate import matches
from hudilake.read.filters.expressions import Filter, normalised, unknown_parts
from hudilake.read.filters.sql_filter import parse_filter
from tests.hypothesis_profile import scaled

SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("n", pa.int32()),
        ("big", pa.int64()),
        ("price", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(38, 10)),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("name", pa.string()),
        ("raw", pa.binary()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
_DAY = datetime(2024, 2, 28, tzinfo=UTC)
CELLS: dict[str, list[Any]] = {
    "n": [-1, 0, 1, 2, 2**31 - 1],
    "big": [-1, 0, 1, 10**18, 10**18 + 1, 2**53 + 1, 2**63 - 1],
    "price": [Decimal(text) for text in ("-1.50", "0.00", "0.10", "1.00", "1.01")],
    "wide": [Decimal(text) for text in ("0.1", "-1", "1", "2", "1000000000000000000000000000.5")],
    "single": [0.1, 0.5, -0.0, 16777216.0, math.nan, math.inf],
    "double": [0.1, 0.5, -0.0, 1e18, math.nan, 0.30000000000000004],
    "name": ["", "a", "ab", "a_c", "a%", "b", "A", "5", "05", "é"],
    "raw": [b"", b"a", b"\xff"],
    "flag": [True, False],
    "day": [(_DAY + timedelta(days=n)).date() for n in range(3)],
    "at": [_DAY + timedelta(hours=12 * n, microseconds=n % 2) for n in range(5)],
}
NUMBERS = "0,1,-1,2,0.1,0.10,-1.5,1.005,1e0,1e18,1e-1,1000000000000000001,0.3,1.0,16777217,99999999999"
LONG_NUMBER = "0.1000000000000000001"
QUOTED = ",a,ab,5,1,0.1,1.00,2024-02-29,2024-02-28 12:00:00,2024-02-29 00:00:00.000001,true"
MOMENTS = [
    "DATE '2024-02-29'",
    "TIMESTAMP '2024-02-28 12:00:00'",
    "CAST('2024-02-29 12:00:00.000001' AS TIMESTAMP)",
    "CAST('2024-02-29 11:59:59.500001' AS TIMESTAMP(0))",
    "'2024-02-29 12:00:00.0000006'::TIMESTAMP(3)",
    "'2024-02-28T12:00:00Z'",
    "TIMESTAMPTZ '2024-02-29 00:00:00+00'",
]
PATTERNS = ["'a%'", "'a_'", "'%'", "'a'", "'a%c'", "''", "'ab%%'", "'é%'"]


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """With the rows in a table of its own: over Arrow it lets pyarrow compare, for which NaN is not greater."""
    with duckdb.connect(config={"python_enable_replacements": False}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("arrow", ROWS)
        connection.execute("CREATE TABLE rows AS SELECT * FROM arrow")
        yield connection


def conditions() -> st.SearchStrategy[str]:
    """Random WHERE texts."""
    column = st.sampled_from(list(CELLS))
    literal = st.one_of(
        st.sampled_from([LONG_NUMBER, *NUMBERS.split(",")]),
        st.sampled_from(MOMENTS),
        st.sampled_from([*["NULL", "TRUE", "FALSE"], *(f"'{text}'" for text in QUOTED.split(","))]),
    )
    op = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    leaf = st.one_of(
        st.builds("{} {} {}".format, column, op, literal),
        st.builds("{2} {1} {0}".format, column, op, literal),
        st.builds("{} {}IN ({}, {})".format, column, st.sampled_from(["", "NOT "]), literal, literal),
        st.builds("{} BETWEEN {} AND {}".format, column, literal, literal),
        st.builds("{} IS {}NULL".format, column, st.sampled_from(["", "NOT "])),
        st.builds("name {}LIKE {}".format, st.sampled_from(["", "NOT "]), st.sampled_from(PATTERNS)),
        st.sampled_from(["flag", "NOT flag", "starts_with(name, 'a')", "lower(name) = 'a'", "n + 1 = 2", "1 = 1"]),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds("NOT ({})".format, inner),
            st.builds("({} AND {})".format, inner, inner),
            st.builds("({} OR {})".format, inner, inner),
        ),
        max_leaves=4,
    )


def table_of(cells: dict[str, list[Any]]) -> pa.Table:
    """Every cell of every column in a row of its own, the other columns null, and one row of nulls."""
    rows: list[dict[str, Any]] = [{name: value} for name, values in cells.items() for value in values] + [{}]
    return pa.Table.from_pylist([{**row, "row": i} for i, row in enumerate(rows)], SCHEMA)


ROWS = table_of(CELLS)


def found_by_engine(engine: duckdb.DuckDBPyConnection, condition: str) -> set[int] | None:
    """The rows that DuckDB finds; None where it refuses the condition."""
    try:
        return {row for (row,) in engine.execute(f"SELECT row FROM rows WHERE {condition}").fetchall()}
    except duckdb.Error:
        return None


def found_by_us(condition: str) -> tuple[set[int], bool]:
    """The rows that may pass, and whether that is certain."""
    part: Filter = normalised(parse_filter(condition, SCHEMA, by_engine=True))
    flags = matches(part, ROWS)
    return {i for i, flag in enumerate(flags.tolist()) if flag}, not unknown_parts(part)


@settings(max_examples=scaled(400), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(condition=conditions())
def test_no_row_that_the_engine_finds_is_missed(engine: duckdb.DuckDBPyConnection, condition: str) -> None:
    expected = found_by_engine(engine, condition)
    found, exact = found_by_us(condition)
    if expected is not None:
        assert expected <= found
        assert not exact or expected == found


@pytest.mark.parametrize(
    ("condition", "understood"),
    [
        ("big = 1e18", "(big >= 999999999999971577.290569595992565155029300000 and"),
        ("double = 0.1", "(double >= 0.099999999999997157"),
        ("single < 0.1", "(single <= 0.100000095367431640625"),
        ("n <> 1e0", "[n <> 1e0]"),
        ("price = 1.005", "price = 1.005"),
        ("at < CAST('2024-02-29 12:00:00.7' AS TIMESTAMP(0))", "[at < CAST("),
        ("5 < n", "n > 5"),
        ("N = '6'", "n = 6"),
        ("n = -5", "n = -5"),
        ("n IN (1, 2, NULL)", "(n in (1, 2) or null)"),
        ("name LIKE 'ab%'", "name starts with 'ab'"),
        ("name LIKE 'a\\_b'", "[name LIKE"),
        ("name LIKE 'a!_b' ESCAPE '!'", "[name LIKE"),
        ("name ILIKE 'a%'", "[name ILIKE"),
        ("n BETWEEN SYMMETRIC 2 AND 1", "[(n BETWEEN"),
        ("n BETWEEN 1 AND 2", "(n >= 1 and n <= 2)"),
        ("name COLLATE NOCASE = 'a'", "[name COLLATE"),
        ("day >= '2024-02-29'", "day >= 2024-02-29"),
        ("at >= '2024-02-29 01:00:00+01'", "[at >="),
        ("at >= DATE '2024-02-29'", "at >= 2024-02-29"),
        ("n = big", "[n = big]"),
        ("n IN (SELECT 1)", "[n IN"),
        ("t.n = 1", "[t.n = 1]"),
        ("flag AND NOT flag", "(flag = true and not flag = true)"),
        ("n = NULL", "null"),
    ],
)
def test_what_is_understood(condition: str, understood: str) -> None:
    assert str(parse_filter(condition, SCHEMA, by_engine=True)).startswith(understood)


@pytest.mark.parametrize(
    ("condition", "understood"),
    [
        ("double = 0.1", "double = 0.1"),
        ("single < 0.1", "single < 0.1"),
        ("single = '0.1'", "single = 0.10000000149011612"),
        ("single IN ('0.5', 1)", "single in (0.5, 1.0)"),
        ("big = 1e18", "big = 1e+18"),
        ("price BETWEEN 0.1000000000000000001 AND 1e0", "(price >= 0.1000000000000000001 and price <= 1.0)"),
        ("double = 'x'", "[double = 'x']"),
        ("n = TRUE", "[n = TRUE]"),
        ("day = '2024-02-29'", "day = 2024-02-29"),
    ],
)
def test_where_no_engine_evaluates_literals_are_exact_or_the_nearest_double(condition: str, understood: str) -> None:
    assert str(parse_filter(condition, SCHEMA)) == understood


def test_dialects() -> None:
    assert str(parse_filter('`n` = 1 && `name` = "x"', SCHEMA, "mysql")) == "(n = 1 and name = 'x')"
    assert str(parse_filter("`at` > timestamp '2024-02-29 00:00:00'", SCHEMA, "spark")) == "at > 2024-02-29 00:00:00"


def test_names_of_two_columns_that_differ_in_case_are_not_guessed() -> None:
    schema = pa.schema([("a", pa.int64()), ("A", pa.int64())])
    assert str(parse_filter("a = 1", schema)) == "[a = 1]"


@pytest.mark.parametrize("text", ["n =", "select 1; drop table x", "n = 1)"])
def test_text_that_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be parsed"):
        parse_filter(text, SCHEMA)
