"""TRUNCATE of one source of a stitched table: deletes of its column group in every row that the group knows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.group_orders import hiding
from binlake.rows.upsert.merge import truncate_events
from binlake.rows.upsert.route import GROUP
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.rows.upsert.truncates import Truncates, as_deletes
from hudilake.format.definition.merging import WRITER_ORDER, Merging

#: Index of a column group -> the ordering value up to which TRUNCATE removed its values.
GroupTruncates = Mapping[int, int]


def group_truncates(truncates: Truncates, merging: Merging) -> GroupTruncates:
    """The TRUNCATEs by group. One of the whole table is that of the first group: a stream whose settings know no groups
    feeds it."""
    named = dict(truncates.groups)
    first = merging.groups[0].name
    named[first] = max(named.get(first, -1), truncates.whole)
    return {at: named[group.name] for at, group in enumerate(merging.groups) if named.get(group.name, -1) >= 0}


def without_truncated_events(rows: pa.Table, truncates: GroupTruncates, merging: Merging) -> pa.Table:
    """The events of parcels without those that the TRUNCATE of their group removes; of a group whose deletes delete the
    row these become deletes."""
    groups = rows.column(GROUP).to_numpy() if GROUP in rows.column_names else np.zeros(len(rows), dtype=np.int8)
    until = np.full(len(rows), -1, dtype=np.int64)
    for at, order in truncates.items():
        until[groups == at] = order
    gone = np.asarray(rows.column("__order").to_numpy() <= until)
    hides = hiding(merging)[groups]
    return as_deletes(rows, gone & hides, until).filter(pa.array(~gone | hides))


def deletes(stored: pa.Table, truncates: GroupTruncates, merging: Merging) -> pa.Table:
    """Events that delete what the TRUNCATEs removed, as parcels hold them, without value columns but those given.

    Args:
        stored: n rows or tombstones of a file group: the record key, ORDER_FIELD, the groups' order columns as far as
            the table has them, and the columns of no group.
        truncates: by group.
        merging: of the table.
    """
    own = (ORDER_FIELD, *merging.hidden_fields)
    kept = [name for name in stored.column_names if name not in own]
    found = []
    for at, order in truncates.items():
        orders = _orders(stored, at, merging)
        gone = stored.select(kept).filter(pa.array((orders >= 0) & (orders <= order)))
        events = truncate_events(gone, np.full(len(gone), order, dtype=np.int64))
        found.append(events.append_column(pa.field(GROUP, pa.int8()), pa.array(np.full(len(gone), at, dtype=np.int8))))
    return pa.concat_tables(found)


def _orders(stored: pa.Table, at: int, merging: Merging) -> npt.NDArray[np.int64]:
    """The orders of a group, -1 where it does not know the row. Rows from before the table had groups are the first
    group's, at their own ordering value."""
    name = merging.groups[at].order_field
    orders = stored.column(name) if name in stored.column_names else pa.nulls(len(stored), pa.int64())
    if at == 0:
        plain = stored.column(ORDER_FIELD)
        orders = pc.coalesce(orders, pc.if_else(pc.less(plain, WRITER_ORDER), plain, pa.scalar(None, pa.int64())))
    return np.asarray(pc.fill_null(orders, -1).to_numpy(), dtype=np.int64)
