"""Runs planned SQL queries: DuckDB over the Arrow batches of each table's slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

import duckdb
import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from hudilake.errors import ConfigError
from hudilake.query.join.engine import register_rows
from hudilake.query.sql.by_bucket.stream import PartStream
from hudilake.query.sql.connection import connected, name_rows
from hudilake.query.sql.counting import COUNTED
from hudilake.query.sql.limits import Limits
from hudilake.query.sql.planned import Find, SqlQuery, plan_sql
from hudilake.query.sql.planned_table import SqlTable
from hudilake.query.sql.streams import CountedStream, Failures, SliceStream
from hudilake.query.sql.text import said
from hudilake.read.inside.tally import ReadTally
from hudilake.read.table_reader import TableReader

_ROWS_AT_ONCE = 10_000
#: Types whose values Arrow gets without their zone, cut to 128 bits with a sign, or as DuckDB's own bytes (measured).
_CHANGED = frozenset({"time with time zone", "uhugeint", "bit", "bignum"})
_NESTED = frozenset({"list", "array", "struct", "map", "union"})


@contextmanager
def read_sql(
    sql: str, tables: Mapping[str, SqlTable | TableReader] | Find, limits: Limits | None = None
) -> Iterator[pa.RecordBatchReader]:
    """The rows of an SQL query over tables, read while the context is open.

    Args:
        sql, tables: as in ``plan_sql``.
        limits: of memory.

    Raises as ``plan_sql`` and ``run_sql``.
    """
    with run_sql(plan_sql(sql, tables), limits) as rows:
        yield rows


@contextmanager
def run_sql(
    query: SqlQuery, limits: Limits | None = None, tally: ReadTally | None = None
) -> Iterator[pa.RecordBatchReader]:
    """Run a planned query; its result is read while the context is open. ``tally`` counts what is read of base files,
    each time that DuckDB scans a table.

    Raises ConfigError for queries that DuckDB refuses or that do not fit in the limits, and the errors of reading the
    tables.
    """
    failures, limits = Failures(), limits or Limits()
    own = limits.half() if query.split.parts and not query.split.alone else limits
    try:
        with connected(own) as connection:
            for number, table in enumerate(query.tables):
                plan, rows = table.plan, f"__rows_{number}"
                register_rows(connection, rows, plan.scan.schema, SliceStream(plan.scan, plan.slices, failures, tally))
                for name in table.names:
                    name_rows(connection, name, rows)
                if plan.counted:
                    connection.register(COUNTED, CountedStream(plan))
            streams = [PartStream(part, own, failures, tally, query.split.alone) for part in query.split.parts]
            result = connection.sql(query.sql)  # also refuses what is wrong in the query's own words
            _check_types(result, query.sql)
            wanted = result.columns
            if query.split.alone:
                with closing(streams[0].batches()) as batches:
                    yield _renamed(pa.RecordBatchReader.from_batches(streams[0].schema, batches), wanted)
            else:
                for part, rows_of_part in zip(query.split.parts, streams, strict=True):
                    connection.register(part.name, rows_of_part)
                yield _renamed(connection.sql(query.split.sql).to_arrow_reader(_ROWS_AT_ONCE), wanted)
    except (duckdb.Error, pa.ArrowException) as error:
        if failures.first is not None:
            raise failures.first from error
        raise ConfigError(f"DuckDB: {said(error)}", do_next="correct the query", query=query.sql) from error


def _check_types(result: duckdb.DuckDBPyRelation, sql: str) -> None:
    """Raise ConfigError for values that DuckDB gives Arrow as others."""
    for name, kind in zip(result.columns, result.types, strict=True):
        if (changed := next(filter(_CHANGED.__contains__, _ids(kind)), None)) is not None:
            raise ConfigError(
                f"the result's column {name} has the type {changed.upper()}, whose values would come out as others",
                do_next="cast it to VARCHAR in the query",
                query=sql,
            )


def _ids(kind: DuckDBPyType) -> Iterator[str]:
    """The names of a type and of those inside it."""
    yield kind.id
    if kind.id in _NESTED:
        for _, inner in kind.children:
            if isinstance(inner, DuckDBPyType):  # an array has its length beside
                yield from _ids(inner)


def _renamed(rows: pa.RecordBatchReader, names: Sequence[str]) -> pa.RecordBatchReader:
    """The rows with other names of columns: DuckDB names some by the text of the query."""
    if rows.schema.names == list(names):
        return rows
    schema = pa.schema([field.with_name(name) for field, name in zip(rows.schema, names, strict=True)])
    return pa.RecordBatchReader.from_batches(
        schema, (pa.RecordBatch.from_arrays(b.columns, schema=schema) for b in rows)
    )
