"""The text of an SQL query: parsed, with its references to tables."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_lowercase, ascii_uppercase
from typing import TypeAlias

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hudilake.errors import ConfigError
from hudilake.read.filters.sql_filter import explained

#: A table's name in a query: (database or "", name).
Name: TypeAlias = tuple[str, str]
#: Databases of DuckDB itself.
#: sqlglot warns of each statement that is not a query; the error says it.
logging.getLogger("sqlglot").setLevel(logging.ERROR)
_OWN = ("information_schema", "pg_catalog")
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


@dataclass(frozen=True, eq=False)
class QueryText:
    """One query of DuckDB's dialect (with CTEs, set operations, subqueries...)."""

    sql: str
    tree: exp.Expr

    @classmethod
    def parse(cls, sql: str) -> QueryText:
        """Raises ConfigError for text that is not one query."""
        try:
            statements = [s for s in sqlglot.parse(sql, read="duckdb") if s is not None]
        except SqlglotError as error:
            words = _refusal(sql) or explained(error)
            raise ConfigError(f"the query cannot be parsed: {words}", do_next="correct the query", query=sql) from error
        if len(statements) != 1 or not isinstance(statements[0], exp.Query):
            raise ConfigError("the text is not one SELECT statement", do_next="give one query", query=sql)
        return cls(sql, statements[0])

    @cached_property
    def references(self) -> tuple[exp.Table, ...]:
        """Every place that names a table; names of WITH clauses and of DuckDB's own tables are none."""
        return tuple(self._references())

    def _references(self) -> Iterator[exp.Table]:
        for table in self.tree.find_all(exp.Table):
            named = isinstance(table.this, exp.Identifier)
            if named and not _is_cte(table) and table.db.lower() not in _OWN:
                yield table


def said(error: Exception) -> str:
    """DuckDB's message, without the query that it repeats and the marks below it."""
    words, _, repeated = str(error).partition("\n\nLINE ")
    line = repeated.partition(":")[0]
    return words + (f" in line {line}" if line.isdigit() and line != "1" else "")


def _refusal(sql: str) -> str | None:
    """Why DuckDB refuses a query, in the words that its users know; None if it does not."""
    try:
        duckdb.extract_statements(sql)
    except duckdb.Error as error:
        return said(error).removeprefix("Parser Error: ")
    return None


def name_of(table: exp.Table) -> Name:
    """The name that a reference gives, in lower case as DuckDB knows it: of the letters of ASCII."""
    return lower(table.db), lower(table.name)


def lower(name: str) -> str:
    """A name with the letters of ASCII in lower case: DuckDB takes names for the same that differ in their case alone,
    and tells é and É apart."""
    return name.translate(_LOWER)


def written(table: exp.Table) -> Name:
    """The same as the query writes it."""
    return table.db, table.name


def spelled(name: Name) -> str:
    """``database.name``, or ``name`` alone."""
    return ".".join(part for part in name if part)


def alias_of(table: exp.Table) -> str:
    """What the query calls the rows of a reference, in lower case."""
    return table.alias_or_name.lower()


def _is_cte(table: exp.Table) -> bool:
    """Whether the name is that of a WITH clause that the place sees, as DuckDB looks names up.

    A query of a WITH clause sees the ones before it. Its own name is that of a table in it, but for the part of a
    recursive query that is repeated: the right side of its UNION.
    """
    if table.db:
        return False
    inside: set[int] = set()
    below: exp.Expr = table
    node = table.parent
    while node is not None:
        inside.add(id(below))
        clause = node.args.get("with_") or node.args.get("with")
        seen: Sequence[exp.Expr] = ()
        if isinstance(node, exp.With):
            place = next(number for number, cte in enumerate(node.expressions) if cte is below)
            body = below.this
            repeats = bool(node.args.get("recursive")) and isinstance(body, exp.Union) and id(body.expression) in inside
            seen = node.expressions[: place + repeats]
        elif clause is not None and clause is not below:
            seen = clause.expressions
        if any(lower(cte.alias) == lower(table.name) for cte in seen):
            return True
        below, node = node, node.parent
    return False
