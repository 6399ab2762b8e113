"""SELECTs that are run as a whole, bucket by bucket: their rows are those of all buckets together.

That is so if they make something of each row alone, and if they group by all columns of the bucket key of a table whose
rows no outer join replaces by nulls: rows of nulls come in every bucket and are one group. The rest of the query sorts,
limits and makes distinct what comes out.
"""

from __future__ import annotations

from sqlglot import exp

from hudilake.query.sql.by_bucket.core import Core
from hudilake.query.sql.by_bucket.inner import named_core, nested, rows_source
from hudilake.query.sql.by_bucket.resolve import plain_columns

#: Functions of one row. Others may be aggregates, also by names that sqlglot does not know.
_OF_A_ROW = (exp.And, exp.Or, exp.Cast, exp.Case, exp.If, exp.Coalesce, exp.Lower, exp.Upper, exp.Length, exp.Round)
_PLAIN_GROUP = {"expressions"}
_MOVED = ("order", "limit", "offset", "distinct", "with_")
_INNER = {"expressions", "from_", "joins", "where", "group", "having", *_MOVED}


def is_run_whole(core: Core, root: bool) -> bool:
    """Whether the whole SELECT may run bucket by bucket. ``root``: whether it is all of the query."""
    select = core.select
    given = {name for name, value in select.args.items() if value}
    if not core.whole or not given <= _INNER or nested_below(select):
        return False
    distinct = select.args.get("distinct")
    if (distinct is not None and distinct.args.get("on")) or any(select.find_all(exp.Window)):
        return False
    if not (root and not given & set(_MOVED)) and not _names_differ(core):
        return False
    of_buckets = _has_key(core) if select.args.get("group") else core.count > 1 and _is_row_wise(select)
    return of_buckets and _is_closed(core) and order_by_place(core) is not None


def moved_out(core: Core, name: str, names: list[str]) -> str:
    """The SQL of the part; the SELECT itself becomes what is left of it, over the rows called ``name``."""
    inner, select = named_core(core, names), core.select
    order = order_by_place(core)
    for moved in _MOVED:
        inner.set(moved, None)
    for part in ("joins", "where", "group", "having"):
        select.set(part, None)
    select.set("expressions", [exp.Star()])
    select.set("from_", rows_source(name))
    select.set("order", exp.Order(expressions=order) if order else None)
    return inner.sql(dialect="duckdb")


def _names_differ(core: Core) -> bool:
    """Whether DuckDB can read the rows again: it finds no column of two with one name."""
    items = core.select.selects
    if any(item.is_star for item in items):
        return core.count == 1 and len(items) == 1
    names = [(item.alias_or_name or item.sql()).lower() for item in items]
    return len(set(names)) == len(names)


def _is_row_wise(select: exp.Select) -> bool:
    """Whether it surely aggregates nothing: it calls no function that might."""
    called = (function for item in select.selects for function in item.find_all(exp.Func))
    return not select.args.get("having") and all(isinstance(function, _OF_A_ROW) for function in called)


def nested_below(select: exp.Select) -> bool:
    """Whether a SELECT has queries besides those of its WITH."""
    return any(nested(value) for name, value in _nodes(select) if name != "with_")


def _nodes(select: exp.Select) -> list[tuple[str, exp.Expr]]:
    nodes = []
    for name, value in select.args.items():
        nodes += [(name, one) for one in (value if isinstance(value, list) else [value]) if isinstance(one, exp.Expr)]
    return nodes


def _has_key(core: Core) -> bool:
    """Whether it groups by the bucket key of a table without rows of nulls."""
    group = core.select.args.get("group")
    if group is None or not {name for name, value in group.args.items() if value} <= _PLAIN_GROUP:
        return False
    columns, merged = set[tuple[int, str]](), set[tuple[int, str]]()
    for item in group.expressions:
        column = _meant(core.select, item)
        origin = core.sources.of(column) if isinstance(column, exp.Column) else None
        if not isinstance(column, exp.Column) or origin is None:
            continue
        columns.add(origin)
        holders = [] if column.table else core.sources.bare(column.name)
        if len(holders) > 1:
            merged |= {(source, _spelled(core, source, column.name)) for source in holders}
    last = len(core.sources.joins.joins)
    return any(
        all(
            (source, field) in merged or ((source, field) in columns and not core.sources.joins.nullable(source, last))
            for field in core.keys[source].columns
        )
        for source in range(core.count)
    )


def _meant(select: exp.Select, item: exp.Expr) -> exp.Expr | None:
    """What an item of GROUP BY stands for: itself, or the selected expression of that number."""
    if isinstance(item, exp.Literal) and not item.is_string:
        number = int(item.this) - 1
        return select.selects[number].unalias() if 0 <= number < len(select.selects) else None
    return item


def _spelled(core: Core, source: int, name: str) -> str:
    return next(column for column in core.sources.columns(source) if column.lower() == name.lower())


def _is_closed(core: Core) -> bool:
    """Whether it names no column of a query around it."""
    sources, selected = core.sources, {item.alias.lower() for item in core.select.selects if item.alias}
    fields = {name.lower() for number in range(core.count) for name in sources.columns(number)}
    for column in plain_columns(core.select):
        known = column.table.lower() in fields if column.table else column.name.lower() in selected
        if not known and sources.of(column) is None:
            return False
    return True


def order_by_place(core: Core) -> list[exp.Expr] | None:
    """The items of ORDER BY with the numbers of the selected expressions; None if it orders by anything else."""
    select = core.select
    order = select.args.get("order")
    if order is None:
        return []
    if any(item.is_star for item in select.selects):
        return None  # the numbers of what follows a star are not known
    items = [item.copy() for item in order.expressions]
    for item in items:
        place = _place(core, item.this)
        if place is None:
            return None
        item.set("this", exp.Literal.number(place))
    return items


def _place(core: Core, wanted: exp.Expr) -> int | None:
    if isinstance(wanted, exp.Literal):
        return None if wanted.is_string else int(wanted.this)
    items = [(number, item, item.unalias()) for number, item in enumerate(core.select.selects, 1)]
    if isinstance(wanted, exp.Column):
        if not wanted.table and (named := [n for n, item, _ in items if item.alias.lower() == wanted.name.lower()]):
            return named[0]
        meant = core.sources.of(wanted)
        columns = [n for n, _, what in items if isinstance(what, exp.Column) and core.sources.of(what) == meant]
        return next(iter(columns), None) if meant is not None else None
    return next((n for n, _, what in items if what == wanted), None)
