"""What TRUNCATE does to rows: deletes of stored rows, of a column group in them, and what engines make of these.

``binlake.rows.upsert.truncates`` has the TRUNCATEs of a table as a value, ``binlake.tables.truncation`` applies the
rules here to an open table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.group_orders import hiding
from binlake.rows.merging.states import KeyStates, RowStates
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.merge import Place
from binlake.rows.upsert.route import GROUP, KEY, MOVED_AWAY
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.rows.upsert.truncates import Truncates, as_deletes
from binlake.rows.upsert.version_columns import (
    END_AT,
    KNOWN_TO,
    START_AT,
    key_of_version,
    keys_of_versions,
    with_version_columns,
)
from hudilake.format.definition.merging import WRITER_ORDER, Merging
from hudilake.format.files.file_group_write import FileGroupWrite

#: ``__partition`` of the deletes that a TRUNCATE adds.
TRUNCATED: Final = -1
#: Index of a column group -> the ordering value up to which TRUNCATE removed its values.
GroupTruncates = Mapping[int, int]


def truncated(stored: pa.Table, truncates: Truncates) -> pa.Table:
    """Deletes for the stored rows that ``truncates`` removes. ``stored`` has ``_hoodie_record_key``, ORDER_FIELD and
    the columns that ``truncates`` needs."""
    orders = truncates.order_at(stored)
    mask = stored.column(ORDER_FIELD).to_numpy() <= orders
    return _events(stored.select([KEY]).filter(pa.array(mask)), orders[mask])


def _events(gone: pa.Table, orders: Int64s) -> pa.Table:
    """Deletes of n rows as parcels hold them, with the columns of ``gone``. They are no records of their own."""
    count = len(gone)
    columns = {
        "__op": np.full(count, MOVED_AWAY, dtype=np.int8),
        "__order": orders,
        "__row": np.full(count, np.iinfo(np.int32).max, dtype=np.int32),
        "__offset": np.full(count, -1, dtype=np.int64),
        "__partition": np.full(count, TRUNCATED, dtype=np.int32),
    }
    return pa.table({**{name: gone.column(name) for name in gone.column_names}, **columns})


def group_truncates(truncates: Truncates, merging: Merging) -> GroupTruncates:
    """The TRUNCATEs by group. One of the whole table is that of the first group: a stream whose settings know no groups
    feeds it."""
    named = dict(truncates.groups)
    first = merging.groups[0].name
    named[first] = max(named.get(first, -1), truncates.whole)
    return {
        group_index: named[group.name]
        for group_index, group in enumerate(merging.groups)
        if named.get(group.name, -1) >= 0
    }


def without_truncated_events(rows: pa.Table, truncates: GroupTruncates, merging: Merging) -> pa.Table:
    """The events of parcels without those that the TRUNCATE of their group removes; of a group whose deletes delete the
    row these become deletes."""
    groups = rows.column(GROUP).to_numpy() if GROUP in rows.column_names else np.zeros(len(rows), dtype=np.int8)
    until = np.full(len(rows), -1, dtype=np.int64)
    for group_index, order in truncates.items():
        until[groups == group_index] = order
    gone = np.asarray(rows.column("__order").to_numpy() <= until)
    hides = hiding(merging)[groups]
    return as_deletes(rows, gone & hides, until).filter(pa.array(~gone | hides))


def group_deletes(stored: pa.Table, truncates: GroupTruncates, merging: Merging) -> pa.Table:
    """Events that delete what the TRUNCATEs removed, as parcels hold them, without value columns but those given.

    Args:
        stored: n rows or tombstones of a file group: the record key, ORDER_FIELD, the groups' order columns as far as
            the table has them, and the columns of no group.
        truncates: by group.
        merging: of the table.
    """
    own = (ORDER_FIELD, *merging.hidden_fields)
    kept = [name for name in stored.column_names if name not in own]
    deletes = []
    for group_index, order in truncates.items():
        orders = _orders(stored, group_index, merging)
        gone = stored.select(kept).filter(pa.array((orders >= 0) & (orders <= order)))
        events = _events(gone, np.full(len(gone), order, dtype=np.int64))
        deletes.append(
            events.append_column(pa.field(GROUP, pa.int8()), pa.array(np.full(len(gone), group_index, dtype=np.int8)))
        )
    return pa.concat_tables(deletes)


def _orders(stored: pa.Table, at: int, merging: Merging) -> npt.NDArray[np.int64]:
    """The orders of a group, -1 where it does not know the row. Rows from before the table had groups are the first
    group's, at their own ordering value."""
    name = merging.groups[at].order_field
    orders = stored.column(name) if name in stored.column_names else pa.nulls(len(stored), pa.int64())
    if at == 0:
        plain = stored.column(ORDER_FIELD)
        orders = pc.coalesce(orders, pc.if_else(pc.less(plain, WRITER_ORDER), plain, pa.scalar(None, pa.int64())))
    return np.asarray(pc.fill_null(orders, -1).to_numpy(), dtype=np.int64)


# -- history tables ----------------------------------------------------------------------------------------------------


def ended(rows: pa.Table, ends: Mapping[int, int]) -> pa.Table:
    """The events of parcels, and a delete of each one's row at every TRUNCATE after it.

    ``ends``: ordering value of the TRUNCATE -> the source's time in milliseconds.
    """
    starts = np.asarray(rows.column(START_AT).to_numpy(), dtype=np.int64)
    deletes = [_ends(rows.filter(pa.array(starts < order)), order, ms) for order, ms in sorted(ends.items())]
    return pa.concat_tables([rows, *deletes], promote_options="permissive")


def ends_of(stored: pa.Table, ends: Mapping[int, int]) -> pa.Table:
    """Deletes of the stored versions that were valid at one of the TRUNCATEs. ``stored`` has the record key, START_AT
    and END_AT; changes, which have no END_AT, may be of rows that were deleted by then. What was known once, and is not
    so any more (KNOWN_TO), says nothing. ``ends`` as for ``ended``."""
    if KNOWN_TO in stored.column_names:
        stored = stored.filter(stored.column(KNOWN_TO).is_null())
    start = np.asarray(stored.column(START_AT).to_numpy(), dtype=np.int64)
    end = np.full(len(stored), np.iinfo(np.int64).max)
    if END_AT in stored.column_names:
        end = np.asarray(pc.fill_null(stored.column(END_AT), np.iinfo(np.int64).max).to_numpy(), dtype=np.int64)
    parts = [
        _ends(stored.filter(pa.array((start < order) & (end > order))), order, ms) for order, ms in sorted(ends.items())
    ]
    return pa.concat_tables(parts)


def _ends(rows: pa.Table, order: int, source_ms: int) -> pa.Table:
    """Deletes of the rows whose versions these are, at one place; each row of the source once."""
    keys = pc.unique(keys_of_versions(rows.column(KEY)))
    gone = pa.table({KEY: key_of_version(keys, pa.repeat(order, len(keys)))})
    events = _events(gone, np.full(len(gone), order, dtype=np.int64))
    orders, times = (np.full(len(gone), value, dtype=np.int64) for value in (order, source_ms))
    return with_version_columns(events, 1, orders, times)


# -- engines that take no deletes of rows ------------------------------------------------------------------------------


def split_truncated(rows: pa.Table) -> tuple[pa.Table, pa.Array]:
    """The events without the deletes of ``truncated``, and the record keys of these."""
    gone = pc.equal(rows.column("__partition"), TRUNCATED)
    if not pc.any(gone).as_py():
        return rows, pa.array([], pa.string())
    keys = rows.column(KEY).filter(gone).combine_chunks()
    return rows.filter(pc.invert(gone)), keys.take(pc.sort_indices(keys))


@dataclass(frozen=True, slots=True)
class StatesAfterTruncate:
    """The row states of a table after a TRUNCATE.

    Args:
        states: before it.
        gone: the record keys that it removes from one file group.
    """

    states: RowStates
    gone: pa.Array

    def of(self, place: Place, file_id: str, keys: pa.Array, columns: Sequence[str]) -> KeyStates:
        """The states of record keys after it. Arguments and errors as ``RowStates.of``."""
        known = self.states.of(place, file_id, keys, columns)
        if not len(self.gone):
            return known
        stays = ~np.asarray(pc.is_in(keys, value_set=self.gone).to_numpy(zero_copy_only=False), dtype=np.bool_)
        positions = pa.array(np.arange(len(keys)), mask=~stays)
        return KeyStates(known.alive & stays, known.rows.take(positions))


def with_truncated(write: FileGroupWrite, gone: pa.Array) -> FileGroupWrite:
    """The write with deletes of the truncated keys that it does not write anew; ``write`` has no deletes of them."""
    if write.upserts is not None and len(gone):
        gone = gone.filter(pc.invert(pc.is_in(gone, value_set=write.upserts.column(KEY).combine_chunks())))
    if not len(gone):
        return write
    order = pa.array(np.full(len(gone), WRITER_ORDER, dtype=np.int64))
    deletes = pa.table({KEY: gone, ORDER_FIELD: order})
    if write.deletes is not None:
        deletes = pa.concat_tables([deletes, write.deletes]).sort_by(KEY)
    return replace(write, deletes=deletes)
