"""SQL over open tables. It stands alone because it needs DuckDB, which nothing else of the façade imports."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hudilake.api.history import Moment, requested_at
from hudilake.api.table import Table
from hudilake.errors import ConfigError
from hudilake.query.sql.engine import read_sql
from hudilake.query.sql.limits import Limits
from hudilake.query.sql.planned_table import SqlTable
from hudilake.query.sql.text import lower
from hudilake.read.query import Snapshot
from hudilake.read.table_reader import TableReader


def sql(
    query: str,
    tables: Mapping[str, Table],
    limits: Limits | None = None,
    *,
    as_of: Mapping[str, Moment] | None = None,
) -> pa.Table:
    """The result of an SQL query over tables, in memory.

    Conditions on a table's columns skip files as those of ``Table.scan`` do; only needed columns are read, and joins
    and groups by the bucket key of tables with buckets are run bucket by bucket.

    Args:
        query: one SELECT statement in DuckDB's dialect; timestamps are in UTC.
        tables: open tables by their names in the query; each is read as of its last refresh.
        as_of: time travel of some of the tables, by their names in the query; moments as for ``Table.scan``.
        limits: memory in bytes, and where rows spill that do not fit; None for half of the machine's memory.

    Raises ConfigError for a query that cannot be run or names other tables, ImportError without DuckDB and SQLGlot
    (``pip install hudilake[sql]``), CorruptDataError, StorageError.

    Example:
        >>> hudilake.sql("SELECT day, max(qty) AS qty FROM o GROUP BY day", {"o": orders}).to_pylist()
        [{'day': 'd1', 'qty': 5}]
    """
    past = {lower(name): Snapshot(requested_at(moment)) for name, moment in (as_of or {}).items()}
    if unknown := past.keys() - set(map(lower, tables)):
        raise ConfigError(
            f"a moment is given for what is no name of a table: {', '.join(sorted(unknown))}",
            do_next=f"name one of {', '.join(tables)}",
        )
    named = {name: SqlTable(TableReader(t.internal), past.get(lower(name), Snapshot())) for name, t in tables.items()}
    with read_sql(query, named, limits) as rows:
        return rows.read_all()
