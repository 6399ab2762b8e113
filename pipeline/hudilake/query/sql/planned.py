"""An SQL query and the plans of its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from hudilake.errors import ConfigError
from hudilake.query.sql.by_bucket.split import ByBucket, by_bucket
from hudilake.query.sql.counting import CountingQuery, counting_query
from hudilake.query.sql.needs import QueryNeeds, TableNeeds
from hudilake.query.sql.planned_table import PlannedTable, SqlTable
from hudilake.query.sql.text import Name, QueryText, lower, name_of, spelled, written
from hudilake.read.plan import CONDITION, ScanPlan
from hudilake.read.table_reader import TableReader

#: A name of the only table of a query, besides its own name.
TABLE_NAME = "t"


#: The table that a query calls (database or "", name), as it is written there; None if there is none of that name. Two
#: names of the same rows give the same object.
Find: TypeAlias = Callable[[Name], SqlTable | None]


@dataclass(frozen=True)
class SqlQuery:
    """A query and the plans of its tables, in the order in which it names them.

    ``split``: the query as it is run: its parts that are run bucket by bucket, and the rest.
    """

    sql: str
    tables: tuple[PlannedTable, ...]
    split: ByBucket

    @property
    def plan(self) -> ScanPlan:
        """The plan of the first table."""
        return self.tables[0].plan


def table_names(tables: Mapping[str, SqlTable | TableReader]) -> Find:
    """Finds tables by the keys of a mapping, ``name`` or ``database.name`` in any case. Raises ConfigError for two that
    differ in their case alone."""
    known = {lower(name): one if isinstance(one, SqlTable) else SqlTable(one) for name, one in tables.items()}
    if len(known) < len(tables):
        raise ConfigError(
            f"two names of tables differ in upper and lower case alone: {', '.join(sorted(tables, key=lower))}",
            do_next="give each table another name; SQL does not tell these apart",
        )
    return lambda name: known.get(lower(spelled(name)))


def plan_sql(
    sql: str,
    find: Find | Mapping[str, SqlTable | TableReader],
    count_all: bool = False,
    buckets: bool = True,
) -> SqlQuery:
    """Plan an SQL query of DuckDB's dialect; timestamps are in UTC.

    Args:
        sql: one SELECT statement. ``*`` stands for the tables' own columns; meta fields are read where they are named.
        find: gives a table by its name in the query; or the tables by name, as for ``table_names``.
        count_all: as in ``TableReader.plan``.
        buckets: whether joins and groups by bucket keys are run bucket by bucket.

    Raises ConfigError for text that is not a query, or that names other tables or none, and as ``TableReader.plan``.
    """
    query = QueryText.parse(sql)
    tables_by_name = _found(query, table_names(find) if isinstance(find, Mapping) else find)
    by_table: dict[int, list[exp.Table]] = {}
    for reference in query.references:
        by_table.setdefault(id(tables_by_name[name_of(reference)]), []).append(reference)
    schemas = {id(table): table.schema for table in tables_by_name.values()}
    needs = QueryNeeds(query, {id(r): schemas[id(tables_by_name[name_of(r)])] for r in query.references})
    text, planned = sql, dict[int, PlannedTable]()
    for references in by_table.values():
        table, needed = tables_by_name[name_of(references[0])], needs.of(references)
        counting = _counting(query, needed, schemas[id(table)])
        plan = _planned(table, needed, count_all, counting)
        if counting is not None and plan.counted:
            text = counting.sql
        one = PlannedTable(tuple(dict.fromkeys(map(name_of, references))), table, plan)
        planned |= {id(reference): one for reference in references}
    tables = [planned[id(reference)] for reference in query.references]
    split = by_bucket(sql, tables) if buckets and text == sql else ByBucket(text)
    return SqlQuery(sql, tuple(dict.fromkeys(tables)), split)


def _found(query: QueryText, find: Find) -> dict[Name, SqlTable]:
    names = {name_of(reference): written(reference) for reference in reversed(query.references)}
    if not names:
        raise ConfigError("the query names no table", do_next="name a table in FROM", query=query.sql)
    tables = {name: find(names[name]) for name in dict.fromkeys(map(name_of, query.references))}
    for reference in query.references:
        if find(written(reference)) is not tables[name_of(reference)]:
            raise ConfigError(
                f"the query names two tables whose names differ in upper and lower case alone: "
                f"{spelled(written(reference))} and {spelled(names[name_of(reference)])}; SQL does not tell them apart",
                do_next="give one of them another name in the query (--table NAME=TABLE)",
                query=query.sql,
            )
    if missing := [spelled(names[name]) for name, table in tables.items() if table is None]:
        raise ConfigError(
            f"the query names tables that are not given: {', '.join(missing)}",
            do_next="correct the names, or give the tables",
            query=query.sql,
        )
    return {name: table for name, table in tables.items() if table is not None}


def _counting(query: QueryText, needed: TableNeeds, schema: pa.Schema) -> CountingQuery | None:
    alone = len(query.references) == 1 and not needed.whole
    return counting_query(query.tree, schema) if alone else None


def _planned(table: SqlTable, needed: TableNeeds, count_all: bool, counting: CountingQuery | None) -> ScanPlan:
    request = None if counting is None else counting.request
    plan = table.reader.plan(table.query, needed.condition, needed.columns, count_all, counting=request)
    own = tuple(warning for warning in plan.warnings if warning.step != CONDITION)  # DuckDB evaluates all of it
    return replace(plan, warnings=own)
