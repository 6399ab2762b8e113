"""DuckDB for one query: alone with its tables, in bounded memory. It stands alone: checks of plans need it, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from hudilake.query.join.engine import ALONE, quoted
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


def name_rows(connection: duckdb.DuckDBPyConnection, name: Name, rows: str) -> None:
    """Call registered rows by a name of the query."""
    database, table = name
    if database:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(database)}")
    called = f"{quoted(database)}.{quoted(table)}" if database else quoted(table)
    connection.execute(f"CREATE VIEW {called} AS SELECT * FROM {quoted(rows)}")  # noqa: S608 - quoted
