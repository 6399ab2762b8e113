"""A query as parts that are run bucket by bucket, and the rest that is run over their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from hudilake.errors import UnsupportedError
from hudilake.query.sql.by_bucket import joined, whole
from hudilake.query.sql.by_bucket.check import why_other
from hudilake.query.sql.by_bucket.core import Core, core_of
from hudilake.query.sql.by_bucket.part import BucketPart, part_of
from hudilake.query.sql.by_bucket.resolve import Sources
from hudilake.query.sql.by_bucket.whole import is_run_whole
from hudilake.query.sql.joins import Joins
from hudilake.query.sql.planned_table import PlannedTable
from hudilake.query.sql.text import QueryText


@dataclass(frozen=True)
class ByBucket:
    """A query over parts.

    ``sql``: over the rows of the parts and the other tables. ``why_not``: of joins that are not run bucket by bucket,
    for people. ``alone``: whether the rows of the only part are the result, so that nothing is left to run.
    """

    sql: str
    parts: tuple[BucketPart, ...] = ()
    why_not: tuple[str, ...] = ()
    alone: bool = False


def by_bucket(sql: str, tables: Sequence[PlannedTable]) -> ByBucket:
    """Split a query.

    Args:
        sql: the query.
        tables: of its references, in the order of ``QueryText.references``.
    """
    query = QueryText.parse(sql)
    known = {id(reference): table for reference, table in zip(query.references, tables, strict=True)}
    parts: list[BucketPart] = []
    why_not: list[str] = []
    for select in list(query.tree.find_all(exp.Select)):
        joins = Joins.of(select)
        if joins is None or not (joins.joins or select.args.get("group")):
            continue
        try:
            core, root = core_of(select, Sources(joins, known)), select is query.tree
            if core.count > 1 or is_run_whole(core, root):
                parts.append(_part(core, len(parts), root))
            why_not += [core.end] if core.end else []
        except UnsupportedError as error:
            why_not += [error.what] if joins.joins else []
    text = query.tree.sql(dialect="duckdb") if parts else sql
    if parts and (other := why_other(sql, text, parts, list(dict.fromkeys(tables)))) is not None:
        return ByBucket(sql, why_not=(other,))
    alone = len(parts) == 1 and query.tree == exp.select("*").from_(
        exp.to_table(f'"{parts[0].name}"', dialect="duckdb")
    )
    return ByBucket(text, tuple(parts), tuple(dict.fromkeys(why_not)), alone)


def _part(core: Core, number: int, root: bool) -> BucketPart:
    name = f"__bucketwise_{number}"
    names = [f"{name}_{table}" for table in range(core.count)]
    part = part_of(core, name, names)  # before the SELECT is changed
    return replace(part, sql=(whole if is_run_whole(core, root) else joined).moved_out(core, name, names))
