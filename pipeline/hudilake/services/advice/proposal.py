"""The order that lets the queries of a table read the fewest files, found by trying orders on a sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.files.column_stats import value_type
from hudilake.format.layout.order import Order
from hudilake.policies import Curve, OrderPolicy
from hudilake.read.filters.expressions import Ge, Le, all_of
from hudilake.services.advice.queries import AskedQuery
from hudilake.services.advice.sample import Sample
from hudilake.services.advice.simulation import Pieces, Together, pieces_of

#: Columns of a proposed order: with more of them, each has few bits, and files overlap again.
MOST_COLUMNS: Final = 4
#: A further column or a curve must save so much of what is read.
_WORTH: Final = 0.03
#: Where nothing is said about the queries: a hundredth of the values of a column, at these places.
_RANGE, _PLACES = 0.01, (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True, slots=True)
class Tried:
    """An order that was tried. ``share``: of the files that the queries read on average, 0 to 1."""

    order: OrderPolicy
    share: float


@dataclass(frozen=True)
class Search:
    """Tries orders on drawn rows.

    Args:
        together: the rows, as they are sorted together.
        queries: that are asked.
        columns: that the queries name.
        seed: of orders by sampled ranges.
    """

    together: Sequence[Together]
    queries: Sequence[AskedQuery]
    columns: Sequence[str]
    seed: int = 0
    tried: list[Tried] = field(default_factory=list)

    def pieces(self, policy: OrderPolicy | None) -> Pieces:
        """The files under an order; None for the rows as they are."""
        return pieces_of(self.together, None if policy is None else Order(policy, self.seed), self.columns)

    def share(self, pieces: Pieces) -> float:
        """The share of the files that the queries read, on average over all times they are asked."""
        asked = sum(query.times for query in self.queries)
        read = sum(query.times * pieces.read(query.condition) for query in self.queries)
        return read / max(asked * pieces.total, 1)

    def best(self, candidates: Sequence[str]) -> Tried | None:
        """The best order found: the best column first, then further ones as long as each saves enough.

        Args:
            candidates: columns, in the order in which equal ones are preferred.
        """
        best: Tried | None = None
        chosen: tuple[str, ...] = ()
        while len(chosen) < MOST_COLUMNS:
            rest = [name for name in candidates if name not in chosen]
            tries = [self._try(policy) for name in rest for policy in _orders((*chosen, name))]
            if not tries:
                break
            least = min(tries, key=lambda one: one.share)
            if best is not None and least.share > best.share * (1 - _WORTH):
                break
            best = _simplest(tries, least)
            chosen = best.order.columns
        return best

    def _try(self, policy: OrderPolicy) -> Tried:
        tried = Tried(policy, self.share(self.pieces(policy)))
        self.tried.append(tried)
        return tried


def _orders(columns: tuple[str, ...]) -> Iterator[OrderPolicy]:
    curves: tuple[Curve, ...] = ("linear",) if len(columns) == 1 else ("linear", "z_order", "hilbert")
    for curve in curves:
        yield OrderPolicy(columns=columns, curve=curve)


def _simplest(tries: Sequence[Tried], least: Tried) -> Tried:
    """Of the curves over the same columns the first that is as good as the best one."""
    same = [one for one in tries if one.order.columns == least.order.columns]
    return next(one for one in same if one.share <= least.share * (1 + _WORTH))


def sortable(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    """Those of the columns whose files have ranges, as the metadata table keeps them."""
    return [name for name in names if name in schema.names and value_type(schema.field(name).type) is not None]


def assumed_queries(sample: Sample, columns: Sequence[str], times: int) -> list[AskedQuery]:
    """Queries where none are given: for each column some ranges with a hundredth of its values, each asked ``times``
    times."""
    rows, queries = sample.rows, []
    for name in columns:
        values = rows.column(name).drop_null()
        if pa.types.is_floating(values.type):
            values = values.filter(pc.invert(pc.is_nan(values)))
        if len(values) == 0:
            continue
        ordered = values.take(pc.sort_indices(values))
        for place in _PLACES:
            first, last = (int(np.clip(share, 0, 1) * (len(ordered) - 1)) for share in (place, place + _RANGE))
            condition = all_of(Ge(name, ordered[first].as_py()), Le(name, ordered[last].as_py()))
            queries.append(AskedQuery(f"a hundredth of the values of {name}", times, condition))
    return queries


def distinct_values(column: pa.ChunkedArray, rows: int) -> int:
    """About how many values a column has.

    Args:
        column: of n drawn rows.
        rows: of the whole table, N.

    Values that were drawn once stand for sqrt(N / n) values, others for themselves (the estimate of Charikar et al.,
    "Towards estimation error guarantees for distinct values", 2000).
    """
    drawn = len(column) - column.null_count
    if not drawn:
        return 0
    counts = pc.value_counts(column.drop_null()).field("counts").to_numpy()
    once = int((counts == 1).sum())
    scale = max(rows / max(len(column), 1), 1.0)
    estimate: float = min(once * scale**0.5 + (len(counts) - once), drawn * scale)
    return round(estimate)
