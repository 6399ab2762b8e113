"""The SQL of a part: the FROM of its core, with the names that the part gives its tables."""

from __future__ import annotations

from sqlglot import exp

from hudilake.query.sql.by_bucket.core import Core
from hudilake.query.sql.by_bucket.resolve import plain_columns


def named_core(core: Core, names: list[str]) -> exp.Select:
    """A copy of the core's SELECT whose core tables have other names; what the query calls their rows stays."""
    select = core.select.copy()
    nodes = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())]
    for number, name in enumerate(names):
        node = nodes[number]
        called = exp.TableAlias(this=exp.to_identifier(node.alias_or_name, quoted=True))
        node.replace(exp.Table(this=exp.to_identifier(name, quoted=True), alias=called))
    without_databases(select, core)
    return select


def without_databases(select: exp.Select, core: Core) -> None:
    """Write ``database.table.column`` of the core's tables as ``table.column``."""
    aliases = {core.sources.alias(number) for number in range(core.count)}
    for column in plain_columns(select):
        if column.db and column.table.lower() in aliases:
            column.set("db", None)


def rows_source(name: str) -> exp.From:
    """The FROM of the rest: the rows of a part."""
    return exp.From(this=exp.Table(this=exp.to_identifier(name, quoted=True)))


def nested(node: exp.Expr | None) -> bool:
    """Whether an expression holds a query."""
    return node is not None and any(subquery is not node for subquery in node.find_all(exp.Query))
