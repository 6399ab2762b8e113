"""TRUNCATE of one source of a stitched table: deletes of its group for all rows that the group knows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.hudi.definition.merging import Merging
from pipeline.upsert.collapse import Int64s
from pipeline.upsert.route import GROUP, KEY, MOVED_AWAY


def orders_by_group(merging: Merging, truncated: Mapping[str, int]) -> Int64s:
    """For each group the order up to which its events are gone, -1 for none. ``truncated``: by the groups' names."""
    return np.array([truncated.get(group.name, -1) for group in merging.groups], dtype=np.int64)


def without_truncated(rows: pa.Table, merging: Merging, truncated: Mapping[str, int]) -> pa.Table:
    """The events that no TRUNCATE of their group removes, with GROUP. ``rows``: as parcels hold them."""
    if GROUP not in rows.column_names:
        rows = rows.append_column(GROUP, pa.array(np.zeros(len(rows), dtype=np.int8)))
    until = orders_by_group(merging, truncated)[rows.column(GROUP).to_numpy()]
    return rows.filter(pa.array(rows.column("__order").to_numpy() > until))


def group_deletes(stored: pa.Table, merging: Merging, truncated: Mapping[str, int]) -> pa.Table:
    """Deletes of the groups whose TRUNCATE removes what the rows have of them, as events.

    Args:
        stored: rows or tombstones with KEY and the groups' order columns; other columns stay in the events.
        merging: of the table.
        truncated: the order of each group's TRUNCATE, by its name.
    """
    pieces = []
    for number, (group, order) in enumerate(
        zip(merging.groups, orders_by_group(merging, truncated).tolist(), strict=True)
    ):
        known = stored.column(group.order_field)
        hit = pc.fill_null(pc.and_(pc.greater_equal(known, 0), pc.less_equal(known, order)), False)
        gone = stored.filter(hit).drop_columns(list(merging.hidden_fields))
        pieces.append(_events(gone, number, order))
    return pa.concat_tables(pieces)


def _events(gone: pa.Table, group: int, order: int) -> pa.Table:
    count = len(gone)
    columns = {
        "__op": np.full(count, MOVED_AWAY, dtype=np.int8),
        "__order": np.full(count, order, dtype=np.int64),
        "__row": np.full(count, np.iinfo(np.int32).max, dtype=np.int32),
        "__offset": np.full(count, -1, dtype=np.int64),
        "__partition": np.full(count, -1, dtype=np.int32),
        GROUP: np.full(count, group, dtype=np.int8),
    }
    values = {name: gone.column(name) for name in gone.column_names if name != KEY}
    return pa.table({KEY: gone.column(KEY), **values, **columns})
