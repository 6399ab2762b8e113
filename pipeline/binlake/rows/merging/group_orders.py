"""The orders of column groups: which events of a file group apply, and what they make of its rows' orders.

Each group has its own order in a row (``ColumnGroup.order_field``). Of a group's events of one key the newest counts,
and it applies if it is not older than what the row has of the group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import Op
from binlake.rows.merging.columns import Flags
from binlake.rows.merging.states import KeyStates
from binlake.rows.upsert.collapse import Int64s, newest
from binlake.rows.upsert.merge import records
from binlake.rows.upsert.route import GROUP, KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.merging import WRITER_ORDER, Merging

#: The order of a group that never knew a row, where a null cannot stand.
NEVER: Final = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class ColumnGroupEvents:
    """The newest event of every (key, group) of a file group's events.

    Args:
        rows: e events.
        keys: the m distinct record keys, string, ascending.
        at: int64 (groups, m), the event of a group for a key; -1 for none.
        records: how many records the events were made from.
    """

    rows: pa.Table
    keys: pa.Array
    at: Int64s
    records: int

    @property
    def is_upsert(self) -> Flags:
        """Bool (groups, m), where the group's event is no delete; anything where there is none."""
        return np.asarray(self.rows.column("__op").to_numpy() == Op.UPSERT)[self.at]


@dataclass(frozen=True, slots=True)
class Orders:
    """What the events make of the orders of m keys in g groups.

    Args:
        before: int64 (g, m) as they are stored, NEVER for null.
        after: the same after the events.
        applied: bool (g, m), where the group's event applies.
        hiding: bool of g, the groups with ``on_delete: row``.
        lived: bool of m, the keys whose row lives before the events.
        plain: bool of m, the keys whose row was written before the table had groups: its ordering value is the order of
            the first group.
    """

    before: Int64s
    after: Int64s
    applied: Flags
    hiding: Flags
    lived: Flags
    plain: Flags

    @property
    def touched(self) -> Flags:
        """The keys for which an event applies, bool of m."""
        return np.asarray(self.applied.any(axis=0))

    @property
    def alive(self) -> Flags:
        """The keys whose row lives after the events, bool of m."""
        return alive(self.after, self.hiding)

    @property
    def column_sets(self) -> Int64s:
        """For each key the columns that change, int64 of m: bit i for group i, and bit g for the first group's order
        alone, which a row from before the groups does not have yet."""
        bits = self.applied.astype(np.int64) << np.arange(len(self.applied))[:, None]
        lacks = (self.plain & ~self.applied[0]).astype(np.int64)
        return np.asarray(bits.sum(axis=0) + (lacks << len(self.applied)), dtype=np.int64)

    @property
    def kept(self) -> Flags:
        """Bool (g, m): values of the group that the row had and keeps. They have to be looked up."""
        return (self.before >= 0) & ~self.applied & self.touched


def hiding(merging: Merging) -> Flags:
    """Bool of g: the groups whose delete deletes the row."""
    return np.array([group.on_delete == "row" for group in merging.groups], dtype=np.bool_)


def alive(orders: Int64s, hiding: Flags) -> Flags:
    """Whether the rows of m keys live, by their orders (int64 (g, m), NEVER for null)."""
    hidden = (orders[hiding] < 0) & (orders[hiding] != NEVER)
    return np.asarray((orders >= 0).any(axis=0) & ~hidden.any(axis=0))


def group_events(rows: pa.Table, merging: Merging) -> ColumnGroupEvents:
    """The newest event of every key and group.

    Args:
        rows: n events as parcels of stitched tables hold them, n > 0 (KEY, value columns, ORDER_COLUMNS, GROUP; without
            GROUP they are the first group's).
        merging: of the table.
    """
    count = len(merging.groups)
    encoded = rows.column(KEY).combine_chunks().dictionary_encode()
    ranked = np.asarray(pc.sort_indices(encoded.dictionary).to_numpy(), dtype=np.int64)
    rank = np.empty(len(ranked), dtype=np.int64)
    rank[ranked] = np.arange(len(ranked))
    codes = rank[np.asarray(encoded.indices.to_numpy(), dtype=np.int64)] * count
    if GROUP in rows.column_names:
        codes += np.asarray(rows.column(GROUP).to_numpy(), dtype=np.int64)
    keep = newest(rows, codes, len(ranked) * count)
    positions = np.full(len(ranked) * count, -1, dtype=np.int64)
    positions[codes[keep]] = np.arange(len(keep))
    positions = np.ascontiguousarray(positions.reshape(-1, count).T)
    keys = encoded.dictionary.take(pa.array(ranked)).cast(pa.string())
    return ColumnGroupEvents(rows.take(pa.array(keep)), keys, positions, records(rows))


def asked(merging: Merging) -> tuple[str, ...]:
    """The columns from which ``orders_after`` works out orders."""
    return (*merging.hidden_fields, ORDER_FIELD)


def orders_after(events: ColumnGroupEvents, stored: KeyStates, merging: Merging) -> Orders:
    """Which events apply, and the orders after them.

    Args:
        events: of m keys.
        stored: of these keys, with the columns that ``asked`` names.
        merging: of the table.
    """
    before = stored_orders(stored.rows, merging)
    reached = np.where(before < 0, -before - 1, before)
    reached[before == NEVER] = -1
    came = events.at >= 0
    orders = np.asarray(events.rows.column("__order").to_numpy(), dtype=np.int64)[events.at]
    applied = came & (orders >= reached)
    after = np.where(applied, np.where(events.is_upsert, orders, -orders - 1), before)
    plain = pc.fill_null(pc.less(stored.rows.column(ORDER_FIELD), WRITER_ORDER), False)
    is_plain = np.asarray(plain.to_numpy(zero_copy_only=False), dtype=np.bool_) & stored.alive
    return Orders(before, after, applied, hiding(merging), stored.alive, is_plain)


def stored_orders(stored: pa.Table, merging: Merging) -> Int64s:
    """The groups' orders of m rows, int64 (g, m), NEVER for null."""
    columns = [pc.fill_null(stored.column(group.order_field), NEVER).to_numpy() for group in merging.groups]
    return np.asarray(np.stack(columns), dtype=np.int64)
