"""SELECTs whose core is joined bucket by bucket, and whose rest is run over the joined rows.

In the joined rows, the columns of each table of the core are the fields of one column, which has the name that the
query calls the table's rows. So ``o.total`` means in the rest what it meant before, and only FROM changes. Names
without a table are columns of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from hudilake.errors import UnsupportedError
from hudilake.query.join.engine import quoted
from hudilake.query.sql.by_bucket.core import Core
from hudilake.query.sql.by_bucket.inner import named_core, rows_source, without_databases
from hudilake.query.sql.by_bucket.resolve import plain_columns
from hudilake.query.sql.joins import parts_of


def moved_out(core: Core, name: str, names: list[str]) -> str:
    """The SQL of the part; the SELECT itself becomes what is left of it, over the rows called ``name``.

    Raises UnsupportedError, and changes nothing, for a SELECT that could then mean something else.
    """
    _require_plain(core)
    bare = _bare_names(core)
    inside, outside = _split_where(core)
    expressions = list(_expanded(core))
    sql = _joined(core, names, bare, inside)
    select = core.select
    select.set("expressions", expressions)
    select.set("from_", rows_source(name))
    select.set("joins", list(core.sources.joins.joins[core.count - 1 :]))
    select.set("where", exp.Where(this=exp.and_(*outside, copy=False)) if outside else None)
    without_databases(select, core)
    return sql


def _joined(core: Core, names: list[str], bare: list[str], inside: list[exp.Expr]) -> str:
    """The SELECT of the joined rows."""
    copy = named_core(core, names)
    items = []
    for number in range(core.count):
        if not core.sources.joins.hidden(number):
            called = quoted(core.sources.alias(number))
            fields = ", ".join(f"{quoted(c)} := {called}.{quoted(c)}" for c in core.sources.columns(number))
            items.append(f"struct_pack({fields}) AS {called}")
    items += [f"{quoted(column)} AS {quoted(column)}" for column in bare]
    joined = [copy.args["from_"], *(copy.args.get("joins") or [])[: core.count - 1]]
    text = " ".join(clause.sql(dialect="duckdb") for clause in joined)
    sql = f"SELECT {', '.join(items)} {text}"
    if not inside:
        return sql
    where = exp.select("1").where(*inside)
    without_databases(where, core)
    return f"{sql} {where.args['where'].sql(dialect='duckdb')}"


def _require_plain(core: Core) -> None:
    """Raise UnsupportedError for a SELECT in which a name would mean something else, or a star is not plain."""
    select, sources = core.select, core.sources
    columns = {name.lower() for source in range(len(sources.joins.sources)) for name in sources.columns(source)}
    for number in range(core.count):
        alias = sources.alias(number)
        if alias in columns or sources.aliases.get(alias) != number:
            raise UnsupportedError(f"{alias} is the name of a table and of something else", do_next="")
    odd = any(select.args.get(part) for part in ("laterals", "sample", "pivots", "windows", "match"))
    if odd or any(select.find_all(exp.Columns, exp.Pivot)):
        raise UnsupportedError("the query samples, pivots or uses COLUMNS", do_next="")
    for column in plain_columns(select):
        if not column.table and column.name.lower() in sources.aliases:
            raise UnsupportedError(f"{column.name} stands for whole rows", do_next="")


def _bare_names(core: Core) -> list[str]:
    """The columns of the core that the SELECT names without a table.

    Raises UnsupportedError for a name that another source may have, too.
    """
    sources = core.sources
    names = {c.name.lower() for c in plain_columns(core.select) if not c.table and not sources.is_inner(core.select, c)}
    for number in range(core.count, len(sources.joins.sources)):
        names |= set(sources.joins.using(number))
    spellings = []
    for name in sorted(names | _merged(core)):
        visible = [n for n in range(core.count) if not sources.joins.hidden(n)]
        if name not in {column.lower() for n in visible for column in sources.columns(n)}:
            continue
        holders = sources.bare(name)
        if not holders or not set(holders) <= set(visible):
            raise UnsupportedError(f"it is not certain which table has {name}", do_next="")
        spellings.append(next(column for column in sources.columns(holders[0]) if column.lower() == name))
    return spellings


def _merged(core: Core) -> set[str]:
    """The columns that a star gives once because USING makes one of them."""
    if not any(isinstance(item, exp.Star) for item in core.select.selects):
        return set()
    return {name for number in range(1, core.count) for name in core.sources.joins.using(number)}


def _split_where(core: Core) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The parts of WHERE for the joined rows, and those that are left for the rest."""
    where = core.select.args.get("where")
    parts = parts_of(None if where is None else where.this)
    joins = core.sources.joins
    if any(joins.side(number) in ("RIGHT", "FULL") for number in range(core.count, len(joins.sources))):
        return [], list(parts)
    inside = [part for part in parts if _of_core(core, part)]
    return inside, [part for part in parts if not any(part is one for one in inside)]


def _of_core(core: Core, part: exp.Expr) -> bool:
    origins = [core.sources.of(column) for column in plain_columns(part)]
    own = all(one is not None and one[0] < core.count for one in origins)
    return own and bool(origins) and part.find(exp.Query) is None


def _expanded(core: Core) -> Iterator[exp.Expr]:
    """What the SELECT selects, with columns in place of a star."""
    for item in core.select.selects:
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            yield item
        elif any(star.args.values()):
            raise UnsupportedError("a star leaves out or replaces columns", do_next="")
        elif isinstance(item, exp.Column):
            yield item
        else:
            yield from _star(core)


def _star(core: Core) -> Iterator[exp.Expr]:
    sources, joins = core.sources, core.sources.joins
    if any(joins.using(number) for number in range(core.count, len(joins.sources))):
        raise UnsupportedError("a star stands for columns that USING makes one", do_next="")
    for number in range(len(joins.sources)):
        if joins.hidden(number):
            continue
        if number >= core.count:
            yield exp.Column(this=exp.Star(), table=exp.to_identifier(sources.alias(number), quoted=True))
            continue
        own = joins.using(number) if number else ()
        later = {name for n in range(number + 1, core.count) for name in joins.using(n)}
        for column in sources.columns(number):
            if column.lower() not in own:
                table = None if column.lower() in later else sources.alias(number)
                yield exp.column(column, table=table, quoted=True)
