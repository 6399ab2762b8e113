"""Whether a split query is what it was before: DuckDB must give both the same columns."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from hudilake.query.join.engine import register_rows
from hudilake.query.sql.by_bucket.part import BucketPart
from hudilake.query.sql.connection import connected, name_rows
from hudilake.query.sql.limits import Limits
from hudilake.query.sql.planned_table import PlannedTable


def why_other(sql: str, split: str, parts: Sequence[BucketPart], tables: Sequence[PlannedTable]) -> str | None:
    """Why a split query is not taken: its columns have other types, or DuckDB refuses it. None if it is taken, and
    where DuckDB refuses the query itself.

    Args:
        sql: the query.
        split: over the rows of the parts.
        parts: its parts.
        tables: of the query.
    """
    with connected(Limits()) as connection:
        for number, table in enumerate(tables):
            register_rows(connection, f"__rows_{number}", table.plan.scan.schema, table.plan.scan.schema.empty_table())
            for name in table.names:
                name_rows(connection, name, f"__rows_{number}")
        try:
            wanted = connection.sql(sql).types
        except duckdb.Error:
            return None
        try:
            connection.execute("SET arrow_lossless_conversion = true")
            for part in parts:
                _register_part(connection, part)
            given = connection.sql(split).types
        except duckdb.Error as error:
            return f"the split query is refused: {error}"
    return None if given == wanted else "the split query would have other types"


def _register_part(connection: duckdb.DuckDBPyConnection, part: BucketPart) -> None:
    for table in part.tables:
        schema = table.scan.schema
        register_rows(connection, table.name, schema, schema.empty_table())
    connection.register(part.name, connection.sql(part.sql).to_arrow_table())
