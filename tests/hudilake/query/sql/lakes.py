"""Tables for the tests of SQL over several tables, and DuckDB over all of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

from hudilake.errors import ConfigError
from hudilake.query.sql import SqlQuery, run_sql
from hudilake.read import TableReader
from tests.hudilake.read.lakes import SCHEMA, everything, random_table

#: Name -> buckets, keys, partition column. The keys are partly the same.
_TABLES: dict[str, tuple[int, int, str | None]] = {"a": (4, 30, "part"), "b": (2, 40, None), "shop.c": (4, 20, "part")}
_LITERALS = ["0", "1", "3", "NULL", "'a'", "'2024-01-02'", "TRUE", "-0.03"]
_SHAPES = ["{} = {}", "{} > {}", "{} <= {}", "{} IN ({}, 3)", "{} IS NULL", "NOT {} <> {}", "{} IS NOT NULL"]


def open_tables(place: Path) -> dict[str, TableReader]:
    """The tables by name, below a directory."""
    found = {}
    for number, (name, (buckets, keys, part)) in enumerate(_TABLES.items()):
        random_table(place / name, number, keys=keys, commits=4, buckets=buckets, part=part)
        found[name] = TableReader.open(str(place / name))
    return found


@contextmanager
def over_all_rows(readers: dict[str, TableReader]) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with all rows of the tables in tables of its own."""
    with duckdb.connect(config={"python_enable_replacements": False}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("CREATE SCHEMA shop")
        for name, reader in readers.items():
            path = Path(reader.table.storage.uri.removeprefix("file://"))
            connection.register("rows", pa.Table.from_pylist(everything(path), SCHEMA))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
            connection.unregister("rows")
        yield connection


def answer(query: SqlQuery) -> tuple[list[str], list[str]]:
    """The columns and the rows of a planned query."""
    with run_sql(query) as result:
        return _said(result.read_all())


def expected(whole: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[str], list[str]]:
    """The same of DuckDB's own tables."""
    return _said(whole.sql(sql).to_arrow_table())


@contextmanager
def sense() -> Iterator[None]:
    """Ends the block at a comparison without sense, of a date and a number: DuckDB finds it only if it evaluates it."""
    try:
        yield
    except (duckdb.Error, ConfigError) as error:
        if "Conversion Error" not in str(error) and "Binder Error" not in str(error):
            raise


def _said(table: pa.Table) -> tuple[list[str], list[str]]:
    """The rows as text, sorted: NaN is not equal to itself."""
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return table.schema.names, sorted(map(repr, rows))


@st.composite
def conditions(draw: st.DrawFn, rows: str) -> str:
    """A condition on the rows of a table."""
    column = draw(st.sampled_from(["id", "n", "flag", "price", "day", "name"]))
    return draw(st.sampled_from(_SHAPES)).format(f"{rows}.{column}", draw(st.sampled_from(_LITERALS)))
