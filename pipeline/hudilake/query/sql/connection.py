"""DuckDB for one query: alone with its tables, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from hudilake.query.join.engine import ALONE
from hudilake.query.sql.limits import Limits
from hudilake.query.sql.text import Name


@contextmanager
def connected(limits: Limits) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database of its own in memory, whose rows spill to a private directory. Raises ConfigError, duckdb.Error."""
    with limits.spill_directory() as directory:
        own = {"memory_limit": f"{limits.memory}B", "temp_directory": directory}
        # A query reads its tables and nothing else: no files and no network, too.
        connection = duckdb.connect(config={**ALONE, "enable_external_access": False, **own})
        try:
            connection.execute("SET TimeZone = 'UTC'")
            yield connection
        finally:
            connection.close()


def register_rows(connection: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema, stream: object) -> None:
    """Give a connection a stream of rows under a name.

    Columns of floats are wrapped in an expression that changes nothing, so that DuckDB compares them itself: it leaves
    comparisons with a bare Arrow column to pyarrow, in which NaN is not greater than a number, as it is in SQL
    (measured, DuckDB 1.5.6).
    """
    floats = [quoted(field.name) for field in schema if pa.types.is_floating(field.type)]
    itself = ", ".join(f"CASE WHEN isnan({column}) THEN 'nan' ELSE {column} END AS {column}" for column in floats)
    stored = quoted(f"{name}_stored")
    connection.register(stored.strip('"'), stream)
    columns = f"* REPLACE ({itself})" if floats else "*"
    connection.execute(f"CREATE TEMP VIEW {quoted(name)} AS SELECT {columns} FROM {stored}")  # noqa: S608 - quoted


def name_rows(connection: duckdb.DuckDBPyConnection, name: Name, rows: str) -> None:
    """Call registered rows by a name of the query."""
    database, table = name
    if database:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(database)}")
    called = f"{quoted(database)}.{quoted(table)}" if database else quoted(table)
    connection.execute(f"CREATE VIEW {called} AS SELECT * FROM {quoted(rows)}")  # noqa: S608 - quoted


def quoted(name: str) -> str:
    """A name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'
