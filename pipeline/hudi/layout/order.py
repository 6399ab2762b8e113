"""The order of the rows of base files, and the columns that put rows into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.policies import OrderPolicy


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


def sort_keys(order: Order, rows: pa.Table) -> pa.Table:
    """Columns that sort rows into an order: ascending by the first one, equal values by the next; nulls first.

    Args:
        order: the wanted one.
        rows: n rows with the order's columns.

    Returns n rows, in the order of ``rows``.
    """
    return rows.select(order.columns)


def places(keys: Sequence[pa.Table]) -> npt.NDArray[np.int64]:
    """The numbers of rows in their order, int64 array of n.

    Args:
        keys: from ``sort_keys``, together n rows. Rows with equal keys keep their order.
    """
    table = pa.concat_tables(keys)
    by = [(name, "ascending") for name in table.column_names]
    return np.asarray(pc.sort_indices(table, by, null_placement="at_start").to_numpy(), dtype=np.int64)
