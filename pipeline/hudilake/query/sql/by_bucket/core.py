"""The tables at the beginning of a FROM that are joined by their bucket keys.

Rows that are joined with each other have equal keys, so they lie in buckets that leave the same number when they are
divided by any common divisor of the counts. So each kind of join of these tables is the union of the joins of such
buckets, as long as every join has a table of the earlier ones whose keys it compares with its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from hudilake.errors import UnsupportedError
from hudilake.query.join.bucketed import BucketedScan, bucketed
from hudilake.query.join.keys import HashedKey, JoinKeys
from hudilake.query.sql.by_bucket.resolve import Sources, plain_columns
from hudilake.query.sql.joins import parts_of
from hudilake.query.sql.planned_table import PlannedTable
from hudilake.read.filters.expressions import TRUE

_DO_NEXT = "nothing: the query is run over all rows at once"


@dataclass(frozen=True, eq=False)
class Core:
    """The first tables of a SELECT, joined by their bucket keys.

    Args:
        select: the SELECT.
        sources: all its sources; those of the core are the first.
        scans: the tables of the core, as they are read.
        keys: their hashed columns.
        end: why the next source is not of the core; "" if there is none.
    """

    select: exp.Select
    sources: Sources
    scans: tuple[BucketedScan, ...]
    keys: tuple[HashedKey, ...]
    end: str = ""

    @property
    def count(self) -> int:
        """The number of its tables."""
        return len(self.scans)

    @property
    def whole(self) -> bool:
        """Whether it is all that the SELECT reads."""
        return self.count == len(self.sources.joins.sources)


def core_of(select: exp.Select, sources: Sources) -> Core:
    """The longest core of a SELECT. Raises UnsupportedError if its first source is no table with buckets."""
    first = _scan(sources, 0)
    scans, keys, end = [first], [HashedKey(first.fields, first.fields)], ""
    for number in range(1, len(sources.joins.sources)):
        try:
            scan = _scan(sources, number)
            _require_own_condition(sources, number)
            _require_keys(select, sources, scans, scan, number)
            keys.append(JoinKeys.of(first, scan, list(zip(first.fields, scan.fields, strict=True))).right)
        except UnsupportedError as error:
            end = error.what
            break
        scans.append(scan)
    return Core(select, sources, tuple(scans), tuple(keys), end)


def _scan(sources: Sources, number: int) -> BucketedScan:
    node, table = sources.joins.sources[number], sources.table(number)
    if table is None or not isinstance(node, exp.Table) or _changed(node):
        called = sources.alias(number) or "what is joined"
        raise UnsupportedError(f"{called} is not a table of the lake as it is stored", do_next=_DO_NEXT)
    return scan_of(table)


def scan_of(table: PlannedTable) -> BucketedScan:
    """A table with its buckets. Raises UnsupportedError if it has none."""
    # DuckDB evaluates all of the query's conditions, so the plan may leave more rows than pass.
    return bucketed(table.table.reader, replace(table.plan, condition=TRUE))


def _changed(node: exp.Table) -> bool:
    return bool(node.alias_column_names or any(node.args.get(part) for part in ("sample", "pivots", "joins", "when")))


def _require_own_condition(sources: Sources, number: int) -> None:
    """Raise UnsupportedError unless the condition of a join names columns of this source and earlier ones only."""
    for part in sources.joins.on(number):
        if part.find(exp.Query) is not None:
            raise UnsupportedError("the condition of a join has a subquery", do_next=_DO_NEXT)
        for column in plain_columns(part):
            origin = sources.of(column)
            if origin is None or origin[0] > number or (origin[0] < number and sources.joins.hidden(origin[0])):
                raise UnsupportedError(f"it is not certain which table has {column.sql('duckdb')}", do_next=_DO_NEXT)


def _require_keys(
    select: exp.Select, sources: Sources, scans: Sequence[BucketedScan], scan: BucketedScan, number: int
) -> None:
    """Raise UnsupportedError unless a join compares the whole bucket key with that of one earlier table."""
    equal = set(_equal(select, sources, number))
    for earlier, known in enumerate(scans):
        if sources.joins.hidden(earlier) or len(known.fields) != len(scan.fields):
            continue
        if all((earlier, a, b) in equal for a, b in zip(known.fields, scan.fields, strict=True)):
            return
    raise UnsupportedError(
        f"{sources.alias(number)} is not joined by the bucket keys: its own is {', '.join(scan.fields)}",
        do_next=_DO_NEXT,
    )


def _equal(select: exp.Select, sources: Sources, number: int) -> Iterator[tuple[int, str, str]]:
    """(earlier source, its column, column of the source) of the equalities of a join."""
    joins = sources.joins
    for name in joins.using(number):
        own = _spelled(sources.columns(number), name)
        for earlier in range(number):
            known = _spelled(sources.columns(earlier), name)
            if own is not None and known is not None and not joins.hidden(earlier):
                yield earlier, known, own
    parts = list(joins.on(number))
    if joins.inner:
        where = select.args.get("where")
        parts += parts_of(None if where is None else where.this)
    for part in parts:
        if isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column):
            one, other = sources.of(part.this), sources.of(part.expression)
            if one is not None and other is not None:
                known_side, own_side = (one, other) if other[0] == number else (other, one)
                if own_side[0] == number and known_side[0] < number:
                    yield known_side[0], known_side[1], own_side[1]


def _spelled(columns: Sequence[str], name: str) -> str | None:
    return next((column for column in columns if column.lower() == name), None)
