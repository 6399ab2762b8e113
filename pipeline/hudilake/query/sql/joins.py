"""The tables that a SELECT joins, and which conditions may filter one of them before the joins.

Rows may be dropped before a join only if the result stays the same. A condition of WHERE may drop rows of a table whose
rows are never replaced by nulls; where an outer join may replace them, only a condition that no row of nulls passes: it
drops the rows of nulls, too, that would take the place of the dropped ones. A condition of ON may drop rows that would
have no other use: of both sides of an inner join, of the side of an outer join that is not preserved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

_PLAIN_KINDS = ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI")


@dataclass(frozen=True, eq=False)
class Joins:
    """FROM and the joins of a SELECT: join number n (from 1) brings source number n; source 0 is that of FROM."""

    sources: tuple[exp.Expr, ...]
    joins: tuple[exp.Join, ...]

    @classmethod
    def of(cls, select: exp.Select) -> Joins | None:
        """None for a SELECT without FROM, and for joins whose meaning is not that of one after another."""
        clause = select.args.get("from_")
        joins = tuple(select.args.get("joins") or ())
        if clause is None or any(join.method or join.kind not in _PLAIN_KINDS for join in joins):
            return None
        made = cls((clause.this, *(join.this for join in joins)), joins)
        outer = any(made.side(number) for number in range(1, len(joins) + 1))
        # A comma binds less than JOIN, so that what is joined after it is joined first.
        return None if outer and any(map(_is_comma, joins)) else made

    def side(self, number: int) -> str:
        """What a join does besides matching: "", LEFT, RIGHT, FULL, SEMI or ANTI."""
        join = self.joins[number - 1]
        return join.kind if join.kind in ("SEMI", "ANTI") else join.side

    @property
    def inner(self) -> bool:
        """Whether all joins are inner joins."""
        return not any(self.side(number) for number in range(1, len(self.sources)))

    def hidden(self, source: int) -> bool:
        """Whether only the ON of its own join sees a source."""
        return source > 0 and self.side(source) in ("SEMI", "ANTI")

    def nullable(self, source: int, until: int) -> bool:
        """Whether the joins up to that number may put nulls in place of a row of a source."""
        own = source > 0 and self.side(source) in ("LEFT", "FULL")
        return own or any(self.side(number) in ("RIGHT", "FULL") for number in range(source + 1, until + 1))

    def filters(self, source: int, where: Sequence[exp.Expr]) -> Iterator[tuple[exp.Expr, bool]]:
        """The conditions that every useful row of a source passes, and whether one counts only if no row of nulls
        passes it. ``where``: the parts of WHERE, which are combined with AND."""
        last = len(self.joins)
        if not self.hidden(source):
            yield from ((part, self.nullable(source, last)) for part in where)
        for number in range(max(source, 1), last + 1):
            side = self.side(number)
            if number == source and side not in ("RIGHT", "FULL"):
                yield from ((part, False) for part in self.on(number))
            if number > source and side in ("", "RIGHT", "SEMI") and not self.hidden(source):
                yield from ((part, self.nullable(source, number - 1)) for part in self.on(number))

    def using(self, number: int) -> tuple[str, ...]:
        """The columns of the USING of a join, in lower case."""
        return tuple(name.name.lower() for name in self.joins[number - 1].args.get("using") or ())

    def on(self, number: int) -> Sequence[exp.Expr]:
        """The parts of the ON of a join, which are combined with AND."""
        return parts_of(self.joins[number - 1].args.get("on"))


def parts_of(condition: exp.Expr | None) -> Sequence[exp.Expr]:
    """The parts that AND combines; none without a condition."""
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if condition is None:
        return ()
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def _is_comma(join: exp.Join) -> bool:
    return not (join.kind or join.side or join.args.get("on") or join.args.get("using"))
