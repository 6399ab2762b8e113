"""The order of the rows of base files, and the columns that put rows into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.policies import OrderPolicy

if TYPE_CHECKING:
    from hudilake.format.layout.bounds import Bounds


@dataclass(frozen=True, slots=True)
class Order:
    """The order of rows. Picklable.

    Args:
        policy: columns and curve.
        seed: of the sample, where values are numbered by sampled ranges.
    """

    policy: OrderPolicy
    seed: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is made of."""
        return self.policy.columns

    @property
    def sampled(self) -> bool:
        """Whether it numbers values by sampled ranges (``bounds_of``)."""
        return self.policy.curve != "linear" and self.policy.values == "sampled"


def sort_keys(order: Order, rows: pa.Table, bounds: Bounds | None = None) -> pa.Table:
    """Columns that sort rows into an order: ascending by the first one, equal values by the next; nulls first.

    Args:
        order: the wanted one.
        rows: n rows with the order's columns.
        bounds: from ``bounds_of``, for an order that has some; the same for all rows that are sorted together.

    Returns n rows, in the order of ``rows``: the columns as they are for a linear order, otherwise the place on the
    curve in one or more uint64 columns. A row's keys do not depend on the rows that are given with it.

    Raises UnsupportedError for a column whose type has no order.
    """
    from hudilake.format.layout.keys import curve_keys, linear_keys  # needs compiled loops, seconds to import

    return linear_keys(order, rows) if order.policy.curve == "linear" else curve_keys(order, rows, bounds)


def places(keys: Sequence[pa.Table]) -> npt.NDArray[np.int64]:
    """The numbers of rows in their order, int64 array of n.

    Args:
        keys: from ``sort_keys``, together n rows. Rows with equal keys keep their order.
    """
    table = pa.concat_tables(keys)
    columns: list[pa.ChunkedArray] = []
    for column in table.columns:
        if column.null_count:  # false is before true: nulls come first
            columns.append(pc.is_valid(column))
        columns.append(column)
    by = [(str(number), "ascending") for number in range(len(columns))]
    found = pc.sort_indices(pa.table(columns, names=[name for name, _ in by]), by)
    return np.asarray(found.to_numpy(), dtype=np.int64)
