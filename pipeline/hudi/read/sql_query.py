"""The part of a table that an SQL query needs: the rows that pass its WHERE clauses, and the columns it names.

A WHERE clause filters a reference to the table only if every row it drops cannot be in the result: in a SELECT with
inner joins only, and without sampling. A table with several references is read once for all of them, so the filters of
the references are alternatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from pipeline.errors import ConfigError
from pipeline.hudi.definition.schema import META_FIELDS, RECORD_KEY_FIELD
from pipeline.hudi.read.counting.sql import CountingQuery, counting_query
from pipeline.hudi.read.filters.expressions import TRUE, And, Filter, Or, normalised
from pipeline.hudi.read.filters.sql_filter import ConditionReader, explained

_INNER = ("", "INNER", "CROSS")


@dataclass(frozen=True)
class QueryNeeds:
    """``names``: the table's names in the query, as (schema or "", name) in lower case. ``condition``: rows that fail
    it cannot change the result. ``columns``: the columns it may name. ``counting``: if it only counts rows."""

    names: tuple[tuple[str, str], ...]
    condition: Filter
    columns: tuple[str, ...]
    counting: CountingQuery | None = None


def query_needs(sql: str, schema: pa.Schema, names: Sequence[str]) -> QueryNeeds:
    """Analyse a query of DuckDB's dialect.

    Args:
        sql: one SELECT statement (with CTEs, set operations, subqueries...).
        schema: the table's columns, meta fields included.
        names: the table's possible names, ``name`` or ``schema.name``, in any case.

    Raises ConfigError for text that is not a query, or that does not name the table.
    """
    tree = _parsed(sql)
    table_names = {name.lower() for name in names}
    tables = [table for table in tree.find_all(exp.Table) if _called(table) in table_names and not _is_cte(table)]
    if not tables:
        raise ConfigError(
            "the query does not name the table", do_next=f"call it {' or '.join(sorted(table_names))}", query=sql
        )
    called = dict.fromkeys((table.db.lower(), table.name.lower()) for table in tables)
    condition = normalised(Or(tuple(_filters(tree, tables, schema))))
    columns = _columns(tree, tables, schema)
    counting = None if _takes_all(tree, tables, {n.lower() for n in schema.names}) else counting_query(tree, schema)
    return QueryNeeds(tuple(called), condition, columns, counting)


def _parsed(sql: str) -> exp.Expr:
    try:
        statements = [s for s in sqlglot.parse(sql, read="duckdb") if s is not None]
    except SqlglotError as error:
        raise ConfigError(
            f"the query cannot be parsed: {explained(error)}", do_next="correct the query", query=sql
        ) from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise ConfigError("the text is not one SELECT statement", do_next="give one query", query=sql)
    return statements[0]


def _called(table: exp.Table) -> str:
    return f"{table.db}.{table.name}".lower() if table.db else table.name.lower()


def _is_cte(table: exp.Table) -> bool:
    """Whether the name is that of a WITH clause around it."""
    node = table.parent
    while node is not None and not table.db:
        clause = node.args.get("with_") or node.args.get("with")
        if clause is not None and any(cte.alias.lower() == table.name.lower() for cte in clause.expressions):
            return True
        node = node.parent
    return False


def _filters(tree: exp.Expr, tables: Sequence[exp.Table], schema: pa.Schema) -> list[Filter]:
    """The filter of each reference to the table, by the SELECT whose FROM holds it."""
    try:
        scopes = {id(scope.expression): scope for scope in traverse_scope(tree)}
    except SqlglotError:
        return [TRUE]
    around = [scopes.get(id(table.find_ancestor(exp.Select))) for table in tables]
    return [
        TRUE if scope is None else _filter_of(scope, table, schema) for scope, table in zip(around, tables, strict=True)
    ]


def _filter_of(scope: Scope, table: exp.Table, schema: pa.Schema) -> Filter:
    select = scope.expression
    if not isinstance(select, exp.Select) or not any(source is table for source in scope.sources.values()):
        return TRUE
    if not _only_inner(select) or _samples(select, table) or table.alias_column_names:
        return TRUE
    where = select.args.get("where")
    if where is None:
        return TRUE
    alone = len(scope.sources) == 1 and not select.args.get("laterals")
    reader = ConditionReader(schema, (table.alias_or_name.lower(),), unqualified=alone, by_engine=True)
    parts = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
    return And(tuple(reader.read(part) for part in parts))


def _only_inner(select: exp.Select) -> bool:
    joins = select.args.get("joins") or []
    return all(j.kind in _INNER and not j.side and not j.method for j in joins)


def _samples(select: exp.Select, table: exp.Table) -> bool:
    return bool(select.args.get("sample") or table.args.get("sample") or isinstance(table.parent, exp.TableSample))


def _columns(tree: exp.Expr, tables: Sequence[exp.Table], schema: pa.Schema) -> tuple[str, ...]:
    """Every column whose name is anywhere in the query; all of the table's own columns if the query selects all."""
    named = {identifier.name.lower() for identifier in tree.find_all(exp.Identifier)}
    own = [name for name in schema.names if name not in META_FIELDS]
    everything = _takes_all(tree, tables, {name.lower() for name in schema.names})
    selected = [name for name in schema.names if name.lower() in named or (everything and name in own)]
    return tuple(selected or [RECORD_KEY_FIELD])


def _takes_all(tree: exp.Expr, tables: Sequence[exp.Table], columns: set[str]) -> bool:
    """Whether the query has a star (except in count), ``COLUMNS(...)``, a natural join, columns renamed by position, or
    the whole row by the table's name."""
    if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        return True
    if any(join.method.upper() == "NATURAL" for join in tree.find_all(exp.Join)):
        return True
    if any(tree.find_all(exp.Columns, exp.Pivot)) or any(table.alias_column_names for table in tables):
        return True
    rows = {table.alias_or_name.lower() for table in tables} - columns
    return any(column.name.lower() in rows for column in tree.find_all(exp.Column))
