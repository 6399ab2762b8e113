"""SQL queries that only count rows: the rows of whole files need not be read for them.

Such a query is one SELECT from the table alone, and what it names besides WHERE are columns of the partitioning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from sqlglot import exp

from hudilake.read.counting import CountRequest
from hudilake.read.filters.expressions import TRUE, And, normalised, unknown_parts
from hudilake.read.filters.sql_filter import ConditionReader

#: The table of counted rows in the query: it has the columns of the rows that are read.
COUNTED: Final = "__counted"
_MORE_THAN_ROWS = (exp.Subquery, exp.Join, exp.Lateral, exp.TableSample, exp.SetOperation, exp.With, exp.Pivot)


@dataclass(frozen=True)
class CountingQuery:
    """A query that only counts rows. ``request``: what it needs of rows that are not read. ``sql``: the query over the
    rows that are read and the counted ones."""

    request: CountRequest
    sql: str


def counting_query(tree: exp.Expr, schema: pa.Schema) -> CountingQuery | None:
    """The query as one that counts rows; None if it needs more of them.

    Args:
        tree: one query, which names the table, without a star except in ``count``.
        schema: the table's columns, meta fields included.
    """
    tables = list(tree.find_all(exp.Table))
    plain = isinstance(tree, exp.Select) and len(tables) == 1 and not tables[0].alias_column_names
    if not plain or len(list(tree.find_all(exp.Select))) > 1 or any(tree.find_all(*_MORE_THAN_ROWS)):
        return None
    where, table = tree.args.get("where"), tables[0]
    reader = ConditionReader(schema, (table.alias_or_name.lower(),))
    parts = [] if where is None else list(where.this.flatten() if isinstance(where.this, exp.And) else [where.this])
    condition = normalised(And(tuple(reader.read(part) for part in parts))) if parts else TRUE
    if unknown_parts(condition):
        return None
    rest = tree.copy()
    rest.set("where", None)
    named = {identifier.name.lower() for identifier in rest.find_all(exp.Identifier)}
    columns = tuple(name for name in schema.names if name.lower() in named)
    return CountingQuery(CountRequest(columns, condition), _over_both(rest, table, where))


def _over_both(rest: exp.Expr, table: exp.Table, where: exp.Expr | None) -> str:
    """The query without its WHERE, over the rows that are read and pass, and the counted rows."""
    read = exp.select("*").from_(table.copy())
    if where is not None:
        read = read.where(where.this.copy())
    both = exp.union(read, exp.select("*").from_(exp.to_table(COUNTED)), distinct=False)
    target = next(iter(rest.find_all(exp.Table)))
    target.replace(both.subquery(table.alias_or_name))
    return rest.sql(dialect="duckdb")
