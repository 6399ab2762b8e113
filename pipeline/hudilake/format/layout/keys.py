"""The columns by which rows are sorted, for each curve."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from hudilake.format.layout.bounds import OrderBounds
from hudilake.format.layout.curves import hilbert, z_order
from hudilake.format.layout.direct import Ulongs, direct
from hudilake.format.layout.order import Order

_DIRECT_BITS: Final = 64


def linear_keys(order: Order, rows: pa.Table) -> pa.Table:
    """The order's columns as they are; floating-point numbers by their direct mapping, because Arrow sorts NaN to the
    nulls."""
    keys = rows.select(order.columns)
    for place, field in enumerate(keys.schema):
        if types.is_floating(field.type):
            keys = keys.set_column(place, field.name, [pa.array(direct(keys.column(place)))])
        elif types.is_dictionary(field.type):
            keys = keys.set_column(place, field.name, keys.column(place).cast(field.type.value_type))
    return keys


def curve_keys(order: Order, rows: pa.Table, bounds: OrderBounds | None) -> pa.Table:
    """The places of n rows on the order's curve: uint64 columns that have the names ``key_0``, ``key_1``...

    Args:
        order: with a curve other than ``linear``.
        rows: n rows with the order's columns.
        bounds: the ranges of the values; None maps values directly.
    """
    if (bounds is not None) != order.sampled:
        raise ValueError(f"bounds are given for orders by sampled ranges and for no others; this is {order.policy}")
    if bounds is not None:
        numbers, bits = bounds.numbers(rows), bounds.bits
    else:
        numbers, bits = _direct_numbers(order, rows), _DIRECT_BITS
    places = (hilbert if order.policy.curve == "hilbert" else z_order)(numbers, bits)
    return pa.table({f"key_{word}": place for word, place in enumerate(places)})


def _direct_numbers(order: Order, rows: pa.Table) -> Ulongs:
    return np.stack([direct(rows.column(name)) for name in order.columns])
