"""The part of each table that an SQL query needs: the rows that its conditions leave, and the columns it names.

A table with several references is read once for all of them, so the filters of the references are alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from hudilake.errors import ConfigError
from hudilake.format.definition.schema import META_FIELDS, RECORD_KEY_FIELD
from hudilake.query.sql.joins import Joins, parts_of
from hudilake.query.sql.text import QueryText, alias_of, lower, name_of, spelled
from hudilake.read.filters.evaluate import matches
from hudilake.read.filters.expressions import TRUE, And, Filter, Or, columns_of, normalised
from hudilake.read.filters.sql_filter import ConditionReader


@dataclass(frozen=True)
class TableNeeds:
    """``condition``: rows that fail it cannot change the result. ``columns``: the columns that the query may name.
    ``whole``: whether it takes all columns that are not meta fields."""

    condition: Filter
    columns: tuple[str, ...]
    whole: bool


def table_needs(sql: str, schema: pa.Schema, names: Sequence[str]) -> TableNeeds:
    """What a query needs of one table, whatever other tables it names.

    Args:
        sql: one query of DuckDB's dialect.
        schema: the table's columns, meta fields included.
        names: the table's possible names, ``name`` or ``database.name``, in any case.

    Raises ConfigError for text that is not a query, or that does not name the table.
    """
    query, known = QueryText.parse(sql), {lower(name) for name in names}
    references = [reference for reference in query.references if spelled(name_of(reference)) in known]
    if not references:
        raise ConfigError(
            "the query does not name the table", do_next=f"call it {' or '.join(sorted(known))}", query=sql
        )
    return QueryNeeds(query, {id(reference): schema for reference in references}).of(references)


class QueryNeeds:
    """What a query needs of its tables.

    Args:
        query: the query.
        schemas: the columns of the tables that are known, meta fields included, by the identity (``id``) of each
            reference to them.
    """

    def __init__(self, query: QueryText, schemas: Mapping[int, pa.Schema]) -> None:
        self._query = query
        self._schemas = schemas
        self._names = _QueryNames(query.tree)
        try:
            self._scopes = {id(scope.expression): scope for scope in traverse_scope(query.tree)}
        except SqlglotError:
            self._scopes = {}

    def of(self, references: Sequence[exp.Table]) -> TableNeeds:
        """What it needs of a table. ``references``: all that name it, at least one."""
        schema = self._schemas[id(references[0])]
        filters = [self._filter(reference) for reference in references]
        condition = TRUE if TRUE in filters else normalised(Or(tuple(filters)))
        whole = self._names.whole(references, {name.lower() for name in schema.names})
        own = [name for name in schema.names if name not in META_FIELDS]
        named = self._names.of({alias_of(reference) for reference in references})
        columns = [name for name in schema.names if name.lower() in named or (whole and name in own)]
        return TableNeeds(
            condition,
            tuple(columns or [RECORD_KEY_FIELD if RECORD_KEY_FIELD in schema.names else schema.names[0]]),
            whole,
        )

    def _filter(self, table: exp.Table) -> Filter:
        """The filter of one reference, by the SELECT whose FROM or JOIN holds it."""
        scope = self._scopes.get(id(table.find_ancestor(exp.Select)))
        if scope is None or not isinstance(scope.expression, exp.Select):
            return TRUE
        select, joins = scope.expression, Joins.of(scope.expression)
        number = None if joins is None else next((n for n, s in enumerate(joins.sources) if s is table), None)
        if joins is None or number is None or _samples(select, table) or table.alias_column_names:
            return TRUE
        schema = self._schemas[id(table)]
        alone = len(scope.sources) == 1 and not select.args.get("laterals")
        bare = alone or self._others_known(joins, select)
        reader = ConditionReader(
            schema, (alias_of(table),), bare, by_engine=True, others=self._other_columns(number, joins)
        )
        where = select.args.get("where")
        parts = []
        for part, may_be_null in joins.filters(number, parts_of(None if where is None else where.this)):
            read = reader.read(part)
            known = alone or bool(columns_of(read))
            if known and not (may_be_null and _passes_nulls(read, schema)):
                parts.append(read)
        return And(tuple(parts)) if parts else TRUE

    def _others_known(self, joins: Joins, select: exp.Select) -> bool:
        """Whether the columns of all sources are known, so that the source of a bare name is certain."""
        return not select.args.get("laterals") and all(id(source) in self._schemas for source in joins.sources)

    def _other_columns(self, number: int, joins: Joins) -> frozenset[str]:
        """The names, in lower case, that other sources have too, so that a bare one need not be that source's.

        Columns of one type that USING makes one are none: where they are joined, they are equal.
        """
        types: dict[str, dict[int, pa.DataType]] = {}
        for other, source in enumerate(joins.sources):
            if joins.hidden(number) or not joins.hidden(other):
                for field in self._schemas.get(id(source), ()):
                    types.setdefault(field.name.lower(), {})[other] = field.type
        return frozenset(
            name for name, held in types.items() if set(held) - {number} and not _is_one(joins, name, held)
        )


def _is_one(joins: Joins, name: str, held: Mapping[int, pa.DataType]) -> bool:
    """Whether USING makes one of the columns of that name. ``held``: source -> type."""
    others = [source for source in held if source and name in joins.using(source)]
    return len(held) - len(others) == 1 and len(set(held.values())) == 1


def _passes_nulls(part: Filter, schema: pa.Schema) -> bool:
    """Whether a row of nulls may pass."""
    part = normalised(part)
    row = pa.table({name: pa.nulls(1, schema.field(name).type) for name in columns_of(part)} or {"": pa.nulls(1)})
    return bool(matches(part, row)[0])


def _samples(select: exp.Select, table: exp.Table) -> bool:
    return bool(select.args.get("sample") or table.args.get("sample") or isinstance(table.parent, exp.TableSample))


class _QueryNames:
    """The names in a query that may be columns.

    A name that follows the name of a table's rows (``o.id``) is a column of that table alone; any other may be one of
    every table: also the first of ``a.b``, which may be a column with a field.
    """

    def __init__(self, tree: exp.Expr) -> None:
        self._tree = tree
        self._bare: set[str] = set()
        self._qualified: dict[str, set[str]] = {}
        for identifier in tree.find_all(exp.Identifier):
            column = identifier.parent
            if not isinstance(column, exp.Column) or not column.table or identifier is not column.this:
                self._bare.add(identifier.name.lower())
        for column in tree.find_all(exp.Column):
            if column.table:
                self._qualified.setdefault(column.table.lower(), set()).add(column.name.lower())

    def of(self, aliases: set[str]) -> set[str]:
        """The names, in lower case, that may be columns of a table whose rows are called so."""
        return self._bare.union(*(self._qualified.get(alias, set()) for alias in aliases))

    def whole(self, references: Sequence[exp.Table], columns: set[str]) -> bool:
        """Whether the query takes all columns of a table: by a star (except in count), ``COLUMNS(...)``, a natural
        join, columns renamed by position, or the whole row by the table's name."""
        tree = self._tree
        aliases = {alias_of(reference) for reference in references}
        if any(_expands(star, references, aliases) for star in tree.find_all(exp.Star)):
            return True
        if any(join.method.upper() in ("NATURAL", "POSITIONAL") for join in tree.find_all(exp.Join)):
            return True
        if any(tree.find_all(exp.Columns, exp.Pivot)) or any(table.alias_column_names for table in references):
            return True
        return any(column.name.lower() in aliases - columns for column in tree.find_all(exp.Column))


def _expands(star: exp.Star, references: Sequence[exp.Table], aliases: set[str]) -> bool:
    """Whether a star stands for the columns of a table, among others."""
    holder = star.parent
    if isinstance(holder, exp.Count):
        return False
    if isinstance(holder, exp.Column) and holder.table:
        return holder.table.lower() in aliases
    select = star.find_ancestor(exp.Select)
    return any(reference.find_ancestor(exp.Select) is select for reference in references)
