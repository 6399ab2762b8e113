"""SQL over a table: DuckDB over the Arrow batches of the plan's slices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa

from pipeline.errors import BinlakeError, ConfigError
from pipeline.hudi.read.counting.sql import COUNTED
from pipeline.hudi.read.inside.tally import ReadTally
from pipeline.hudi.read.plan import CONDITION, ScanPlan
from pipeline.hudi.read.query import Query
from pipeline.hudi.read.sql_query import query_needs
from pipeline.hudi.read.table_reader import TableReader

#: A name of every table in a query, besides its own name.
TABLE_NAME = "t"
_ROWS_AT_ONCE = 10_000
#: A query reads its table and nothing else: no files, no network, no extensions, no variables of Python.
_ALONE: dict[str, str | bool | int | float | list[str]] = {
    "python_enable_replacements": False,
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


@dataclass(frozen=True)
class SqlQuery:
    """A query and its plan.

    ``names``: the table's names in the query, as (schema or "", name).
    """

    sql: str
    names: tuple[tuple[str, str], ...]
    plan: ScanPlan


def plan_sql(reader: TableReader, sql: str, query: Query | None = None, count_all: bool = False) -> SqlQuery:
    """Plan an SQL query of DuckDB's dialect; timestamps are in UTC.

    Args:
        reader: the table, called ``t``, or by its own name with or without its database.
        sql: one SELECT statement. ``*`` stands for the table's own columns; meta fields are read where they are named.
        query: the rows of the table that it reads.
        count_all: as in ``TableReader.plan``.

    Raises ConfigError for text that is not a query over the table, and as ``TableReader.plan``.
    """
    config = reader.table.config
    needs = query_needs(sql, reader.schema, [TABLE_NAME, config.name, f"{config.database}.{config.name}"])
    counting = needs.counting
    plan = reader.plan(
        query, needs.condition, needs.columns, count_all, counting=counting.request if counting is not None else None
    )
    own = tuple(warning for warning in plan.warnings if warning.step != CONDITION)  # DuckDB evaluates all of it
    text = counting.sql if counting is not None and plan.counted else sql
    return SqlQuery(text, needs.names, replace(plan, warnings=own))


class _Counted:
    """The rows of a plan that are counted only, for each scan by DuckDB."""

    def __init__(self, plan: ScanPlan) -> None:
        self.plan = plan

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:  # noqa: ANN401 - a capsule
        scan = self.plan.scan
        batches = (batch for one in self.plan.counted for batch in one.batches(scan.schema, scan.batch_rows))
        return pa.RecordBatchReader.from_batches(scan.schema, batches).__arrow_c_stream__(requested_schema)


class _Rows:
    """The plan's batches, for each scan by DuckDB."""

    def __init__(self, plan: ScanPlan, tally: ReadTally | None) -> None:
        self.plan, self.tally = plan, tally
        self.failure: BinlakeError | None = None

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for file_slice in self.plan.slices:
                yield from self.plan.scan.read(file_slice, self.tally)
        except BinlakeError as error:
            self.failure = error
            raise

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:  # noqa: ANN401 - a capsule
        reader = pa.RecordBatchReader.from_batches(self.plan.scan.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)


@contextmanager
def run_sql(query: SqlQuery, tally: ReadTally | None = None) -> Iterator[pa.RecordBatchReader]:
    """Run a planned query; its result is read while the context is open. ``tally`` counts what is read of base files,
    each time that DuckDB scans the table.

    Raises ConfigError for queries that DuckDB refuses, and the errors of reading the table.
    """
    rows = _Rows(query.plan, tally)
    connection = duckdb.connect(config=_ALONE)
    try:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("__rows", rows)
        connection.register(COUNTED, _Counted(query.plan))
        for schema, name in query.names:
            if schema:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)}")
            called = f"{_quoted(schema)}.{_quoted(name)}" if schema else _quoted(name)
            connection.execute(f"CREATE VIEW {called} AS {_select(query.plan.scan.schema)}")
        yield connection.sql(query.sql).to_arrow_reader(_ROWS_AT_ONCE)
    except (duckdb.Error, pa.ArrowException) as error:
        if rows.failure is not None:
            raise rows.failure from error
        raise ConfigError(f"DuckDB: {error}", do_next="correct the query", query=query.sql) from error
    finally:
        connection.close()


def _select(schema: pa.Schema) -> str:
    """All rows. Columns of floats are wrapped in an expression that changes nothing, so that DuckDB compares them
    itself: it leaves comparisons with a bare Arrow column to pyarrow, in which NaN is not greater than a number, as it
    is in SQL (measured, DuckDB 1.5.6)."""
    floats = [_quoted(field.name) for field in schema if pa.types.is_floating(field.type)]
    itself = ", ".join(f"CASE WHEN isnan({name}) THEN 'nan' ELSE {name} END AS {name}" for name in floats)
    return f"SELECT * REPLACE ({itself}) FROM __rows" if floats else "SELECT * FROM __rows"  # noqa: S608 - quoted


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
