"""The rule of stitched tables: what events of several column groups make of rows.

Each group has its own order in a row (``ColumnGroup.order_field``). Of a group's events of one key the newest counts,
and it applies if it is not older than what the row has of the group. What a row becomes depends on the newest event of
each group alone, so the same events give the same table in whatever batches they come, late or twice.

A row lives while at least one group knows it and no group with ``on_delete: row`` has deleted it. Of a row that such a
group hides, the tombstone keeps the values of the groups that still know it: they come back with the hiding group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.decode.changes import Op
from pipeline.hudi.definition.merging import WRITER_ORDER, Merging
from pipeline.upsert.collapse import Int64s, newest
from pipeline.upsert.merge import records
from pipeline.upsert.route import GROUP, KEY
from pipeline.upsert.target import ORDER_FIELD

Flags = npt.NDArray[np.bool_]
#: The order of a group that never knew a row, where a null cannot stand.
NEVER: Final = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class GroupEvents:
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


@dataclass(frozen=True, slots=True)
class Orders:
    """What the events make of the orders of m keys in g groups.

    Args:
        before: int64 (g, m) as they are stored, NEVER for null.
        after: the same after the events.
        applied: bool (g, m), where the group's event applies.
        hiding: bool of g, the groups with ``on_delete: row``.
    """

    before: Int64s
    after: Int64s
    applied: Flags
    hiding: Flags

    @property
    def touched(self) -> Flags:
        """The keys for which an event applies, bool of m."""
        return np.asarray(self.applied.any(axis=0))

    @property
    def alive(self) -> Flags:
        """The keys whose row lives after the events, bool of m."""
        return alive(self.after, self.hiding)

    @property
    def kept(self) -> Flags:
        """Bool (g, m): values of the group that the row had and keeps. They have to be looked up."""
        return (self.before >= 0) & ~self.applied & self.touched


@dataclass(frozen=True, slots=True)
class Stitched:
    """Rows of a file group after its events, each in key order.

    Args:
        upserts: KEY and the table's columns.
        deletes: KEY and ORDER_FIELD.
        tombstones: for each delete KEY, the groups' orders, and the values that a hidden row keeps.
        superseded: the number of records that changed nothing.
    """

    upserts: pa.Table
    deletes: pa.Table
    tombstones: pa.Table
    superseded: int


def hiding(merging: Merging) -> Flags:
    """Bool of g: the groups whose delete deletes the row."""
    return np.array([group.on_delete == "row" for group in merging.groups], dtype=np.bool_)


def alive(orders: Int64s, hiding: Flags) -> Flags:
    """Whether the rows of m keys live, by their orders (int64 (g, m), NEVER for null)."""
    hidden = (orders[hiding] < 0) & (orders[hiding] != NEVER)
    return np.asarray((orders >= 0).any(axis=0) & ~hidden.any(axis=0))


def group_events(rows: pa.Table, merging: Merging) -> GroupEvents:
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
    at = np.full(len(ranked) * count, -1, dtype=np.int64)
    at[codes[keep]] = np.arange(len(keep))
    at = np.ascontiguousarray(at.reshape(-1, count).T)
    keys = encoded.dictionary.take(pa.array(ranked)).cast(pa.string())
    return GroupEvents(rows.take(pa.array(keep)), keys, at, records(rows))


def orders_after(events: GroupEvents, stored: pa.Table, merging: Merging) -> Orders:
    """Which events apply, and the orders after them.

    Args:
        events: of m keys.
        stored: m rows with the groups' order columns; null where a group never knew the row.
        merging: of the table.
    """
    before = stored_orders(stored, merging)
    reached = np.where(before < 0, -before - 1, before)
    reached[before == NEVER] = -1
    came = events.at >= 0
    orders = np.asarray(events.rows.column("__order").to_numpy(), dtype=np.int64)[events.at]
    upsert = _is_upsert(events)[events.at]
    applied = came & (orders >= reached)
    after = np.where(applied, np.where(upsert, orders, -orders - 1), before)
    return Orders(before, after, applied, hiding(merging))


def stored_orders(stored: pa.Table, merging: Merging) -> Int64s:
    """The groups' orders of m rows, int64 (g, m), NEVER for null."""
    columns = [pc.fill_null(stored.column(group.order_field), NEVER).to_numpy() for group in merging.groups]
    return np.asarray(np.stack(columns), dtype=np.int64)


@dataclass(frozen=True)
class Layout:
    """To which group each column of a stitched table belongs.

    Args:
        merging: of the table.
        schema: the table's columns without meta fields.
        shared: the key and partition columns, which belong to no group.
    """

    merging: Merging
    schema: pa.Schema
    shared: tuple[str, ...]

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The value columns of each group."""
        own = (ORDER_FIELD, *self.merging.hidden_fields, *self.shared)
        values = tuple(name for name in self.schema.names if name not in own)
        return tuple(self.merging.columns_of(group, values) for group in self.merging.groups)

    @cached_property
    def common(self) -> tuple[str, ...]:
        """The columns of no group that rows hold."""
        taken = {name for group in self.groups for name in group}
        own = (ORDER_FIELD, *self.merging.hidden_fields)
        return tuple(name for name in self.schema.names if name not in taken and name not in own)

    def wanted(self, orders: Orders) -> list[str]:
        """The stored columns that are needed to make the rows, in the schema's order."""
        names = {name for group, kept in zip(self.groups, orders.kept, strict=True) if kept.any() for name in group}
        return [name for name in self.schema.names if name in names]


def stitched(events: GroupEvents, orders: Orders, stored: pa.Table, layout: Layout) -> Stitched:
    """The rows after the events.

    Args:
        events: of m keys.
        orders: what they make of the orders.
        stored: m rows with the columns ``layout.wanted(orders)``, right where ``orders.kept``.
        layout: of the table. The columns of no group are taken from any event of the key.
    """
    touched = np.flatnonzero(orders.touched)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {ORDER_FIELD: pa.array(np.full(len(touched), WRITER_ORDER))}
    upsert = _is_upsert(events)[events.at]
    for number, (group, names) in enumerate(zip(layout.merging.groups, layout.groups, strict=True)):
        event = np.where(orders.applied & upsert, events.at, -1)[number][touched]
        kept = np.where(orders.kept[number][touched], touched, -1)
        for name in names:
            columns[name] = _chosen(events.rows, event, stored, kept, layout.schema.field(name))
        after = orders.after[number][touched]
        columns[group.order_field] = pa.array(after, mask=after == NEVER)
    for name in layout.common:
        columns[name] = _common(events, touched, layout.schema.field(name))
    keys = events.keys.take(pa.array(touched))
    rows = pa.table({KEY: keys, **{name: columns[name] for name in layout.schema.names}})
    lives = orders.alive[touched]
    upserts, dead = rows.filter(pa.array(lives)), rows.filter(pa.array(~lives))
    superseded = events.records - records(events.rows.take(pa.array(events.at[orders.applied])))
    return Stitched(upserts, dead.select([KEY, ORDER_FIELD]), _tombstones(dead, layout), superseded)


def _is_upsert(events: GroupEvents) -> Flags:
    return np.asarray(events.rows.column("__op").to_numpy() == Op.UPSERT)


def _chosen(rows: pa.Table, event: Int64s, stored: pa.Table, kept: Int64s, field: pa.Field) -> pa.ChunkedArray:
    """For each key the value of its event, or else the stored one, or else null (-1 for none)."""
    values = [_column(rows, field), _column(stored, field) if (kept >= 0).any() else pa.nulls(0, field.type)]
    both = pa.chunked_array([c for value in values for c in _chunks(value)], field.type)
    index = np.where(event >= 0, event, np.where(kept >= 0, kept + len(rows), -1))
    return both.take(pa.array(index, mask=index < 0))


def _common(events: GroupEvents, touched: Int64s, field: pa.Field) -> pa.ChunkedArray:
    column = _column(events.rows, field)
    valid = np.append(np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_), False)
    index = np.full(len(touched), -1, dtype=np.int64)
    for at in events.at[:, touched]:
        index = np.where(valid[at], at, index)
    return column.take(pa.array(index, mask=index < 0))


def _column(rows: pa.Table, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    if field.name not in rows.column_names:
        return pa.nulls(len(rows), field.type)
    column = rows.column(field.name)
    return column if column.type == field.type else column.cast(field.type)


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _tombstones(dead: pa.Table, layout: Layout) -> pa.Table:
    values = [n for names in layout.groups for n in names] if hiding(layout.merging).any() else []
    held = [name for name in values if dead.column(name).null_count < len(dead)]
    return dead.select([KEY, *layout.merging.hidden_fields, *held])
