"""The columns of an order that a table has."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hudilake.format.layout.order import Order


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
