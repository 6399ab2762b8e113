"""The orders of the stream's events in rows, also in a table that its writer merges.

It stands alone: tables and verify both need these orders, and tables may not import verify.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.merging import WRITER_ORDER, Merging


def order_columns(merging: Merging, schema: pa.Schema) -> tuple[str, ...]:
    """The columns that ``event_orders`` needs. ``schema``: the table's; a new group's column may not be in it yet."""
    first = merging.hidden_fields[:1]
    return (ORDER_FIELD, *(name for name in first if name in schema.names))


def event_orders(rows: pa.Table | pa.RecordBatch, merging: Merging) -> pa.Array | pa.ChunkedArray:
    """The order of the newest event of the first group in each of n rows, int64 without nulls; 0 if it never knew the
    row. Of a plain table it is the row's own order.

    Args:
        rows: with ``order_columns``.
        merging: of the table.
    """
    own = rows.column(ORDER_FIELD)
    if not merging.groups:
        return pc.fill_null(own, 0)
    before = pc.if_else(pc.less(own, WRITER_ORDER), own, pa.scalar(0, pa.int64()))
    field = merging.groups[0].order_field
    known = rows.column(field) if field in rows.schema.names else pa.nulls(len(before), pa.int64())
    return pc.fill_null(pc.coalesce(known, before), 0)
