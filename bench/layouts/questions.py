"""The queries: ranges, points, and conditions on two columns, around rows that the table has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.read import And, Eq, Filter, Ge, Le, StartsWith

#: The columns by which rows are laid out; ``paid`` is asked for as well, and follows ``placed``.
COLUMNS: Final = ("url", "customer", "placed")
_OF_EACH = 20
#: The share of the distinct values that a range takes.
_RANGE = 0.01


def questions(sample: pa.Table, seed: int = 1) -> Mapping[str, Sequence[Filter]]:
    """Kind of query -> queries of that kind.

    Args:
        sample: rows of the table. The values in the queries are theirs, so that frequent values are asked for often.
    """
    chance = np.random.default_rng(seed)
    chosen = sample.take(pa.array(chance.integers(0, sample.num_rows, _OF_EACH))).to_pylist()
    ordered = {name: pc.unique(sample.column(name)).sort() for name in ("url", "customer", "placed", "paid")}

    def around(name: str, row: Mapping[str, object], share: float = _RANGE) -> Filter:
        values = ordered[name]
        low = int(pc.index(values, pa.scalar(row[name], values.type)).as_py())
        high = min(low + int(len(values) * share), len(values) - 1)
        return And((Ge(name, values[low].as_py()), Le(name, values[high].as_py())))

    def site(row: Mapping[str, object]) -> Filter:
        return StartsWith("url", str(row["url"])[: str(row["url"]).index(".example")])

    wide = _RANGE * 10
    return {
        "point url": [Eq("url", row["url"]) for row in chosen],
        "point customer": [Eq("customer", row["customer"]) for row in chosen],
        "range url (site)": [site(row) for row in chosen],
        "range customer": [around("customer", row) for row in chosen],
        "range placed": [around("placed", row) for row in chosen],
        "range paid": [around("paid", row) for row in chosen],
        "two: site, placed": [And((site(row), around("placed", row, wide))) for row in chosen],
        "two: customer, placed": [And((around("customer", row, wide), around("placed", row, wide))) for row in chosen],
        "two: site, customer": [And((site(row), around("customer", row, wide))) for row in chosen],
    }
