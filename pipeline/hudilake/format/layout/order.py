"""The order of the rows of base files, and the columns that put rows into it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from hudilake.errors import CorruptDataError
from hudilake.policies import OrderPolicy

if TYPE_CHECKING:
    from hudilake.format.layout.bounds import OrderBounds


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


def sort_keys(order: Order, rows: pa.Table, bounds: OrderBounds | None = None) -> pa.Table:
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
    indexes = pc.sort_indices(pa.table(columns, names=[name for name, _ in by]), by)
    return np.asarray(indexes.to_numpy(), dtype=np.int64)


# The columns of an order that a table has.


def within(order: Order | None, schema: pa.Schema) -> Order | None:
    """The order by those of its columns that a table has; None if it has none of them.

    The settings may name columns for many tables, and a schema change may drop a column. Nested columns have no order.

    Args:
        order: the wanted one.
        schema: of the table.
    """
    if order is None:
        return None
    known = {field.name for field in schema if not pa.types.is_nested(field.type)}
    columns = tuple(name for name in order.columns if name in known)
    if columns == order.columns:
        return order
    return replace(order, policy=order.policy.model_copy(update={"columns": columns})) if columns else None


# The order of a commit's base files, as the commit's extra metadata says it.

#: The key of the extra metadata of a replacecommit or of a commit of a compaction that put rows into an order.
ORDER_KEY: Final = "binlake.order"


def order_extra(order: Order | None) -> dict[str, str]:
    """The extra metadata of a commit whose base files have that order; none for None."""
    if order is None:
        return {}
    return {ORDER_KEY: json.dumps({"order_by": order.policy.model_dump(mode="json"), "seed": order.seed})}


def recorded_order(extra: Mapping[str, str]) -> Order | None:
    """The order that a commit's extra metadata names, or None. Raises CorruptDataError."""
    text = extra.get(ORDER_KEY)
    if text is None:
        return None
    try:
        record = json.loads(text)
        return Order(OrderPolicy.model_validate(record["order_by"]), int(record["seed"]))
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise CorruptDataError(
            f"a commit's extra metadata {ORDER_KEY} names no order: {text[:200]}",
            do_next="run binlake fsck; rows are read without it",
        ) from error
