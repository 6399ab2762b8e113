"""The rule of stitched tables: what events of several column groups make of rows.

What a row becomes depends on the newest event of each group alone (``group_orders``), so the same events give the same
table in whatever batches they come, late or twice.

A row lives while at least one group knows it and no group with ``on_delete: row`` has deleted it. Of a row that such a
group hides, the tombstone keeps the values of the groups that still know it: they come back with the hiding group.

A row that lives and goes on living can be written as a partial row, which has the columns of the groups that changed
only. All other rows are written whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from binlake.rows.merging.columns import Flags, chosen, column_of, valid
from binlake.rows.merging.group_orders import NEVER, ColumnGroupEvents, Orders, hiding
from binlake.rows.merging.width import saves_bytes
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.merge import records
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.merging import WRITER_ORDER, Merging

#: Where rows that go on living are partial: where it saves bytes (``width``), everywhere but for a group's delete,
#: nowhere.
Partial: TypeAlias = Literal["by_width", "always", "never"]


@dataclass(frozen=True, slots=True)
class StitchedRows:
    """Rows of a file group after its events, each table in key order.

    Args:
        upserts: whole rows, KEY and the table's columns.
        partials: KEY, ORDER_FIELD and the columns that change, a table a set of columns.
        deletes: KEY and ORDER_FIELD.
        tombstones: for each delete KEY, the groups' orders, and the values that a hidden row keeps.
        superseded: the number of records that changed nothing.
        only_inserts: whether none of ``upserts`` has a key whose row lived before.
    """

    upserts: pa.Table
    partials: tuple[pa.Table, ...]
    deletes: pa.Table
    tombstones: pa.Table
    superseded: int
    only_inserts: bool


@dataclass(frozen=True)
class ColumnLayout:
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

    def wanted(self, orders: Orders, partial: Flags) -> list[str]:
        """The stored columns that are needed to make whole rows, in the schema's order."""
        kept = orders.kept & ~partial
        names = {name for group, some in zip(self.groups, kept, strict=True) if some.any() for name in group}
        return [name for name in self.schema.names if name in names]

    def changed(self, column_set: int) -> list[str]:
        """The columns of a set (``Orders.column_sets``), hidden ones among them."""
        count = len(self.groups)
        names: list[str] = [self.merging.hidden_fields[0]] if column_set >> count else []
        for number, group in enumerate(self.merging.groups):
            if column_set >> number & 1:
                names += [*self.groups[number], group.order_field]
        return names


def partial_rows(orders: Orders, layout: ColumnLayout, partial: Partial) -> Flags:
    """The keys to write as partial rows, bool of m.

    Args:
        orders: of m keys.
        layout: of the table.
        partial: where rows that go on living are partial.
    """
    can = orders.touched & orders.lived & orders.alive
    if partial != "by_width":
        # Of two deletes of different groups side by side, each would leave the row to the group that the other deletes.
        forgets = orders.applied & (orders.after < 0)
        return can & ~forgets.any(axis=0) & (partial == "always")
    sets = orders.column_sets
    for column_set in np.unique(sets[can]).tolist():
        if not saves_bytes(layout.schema, layout.changed(column_set)):
            can &= sets != column_set
    return can


def stitched(
    events: ColumnGroupEvents, orders: Orders, partial: Flags, stored: pa.Table, layout: ColumnLayout
) -> StitchedRows:
    """The rows after the events.

    Args:
        events: of m keys.
        orders: what they make of the orders.
        partial: bool of m, the keys to write as partial rows.
        stored: m rows with the columns ``layout.wanted(orders, partial)``, right where ``orders.kept``.
        layout: of the table. The columns of no group are taken from any event of the key.
    """
    whole = np.flatnonzero(orders.touched & ~partial)
    fields = [field.name for field in layout.schema]
    rows = _rows(events, orders, whole, fields, stored, layout)
    lives = orders.alive[whole]
    upserts, dead = rows.filter(pa.array(lives)), rows.filter(pa.array(~lives))
    sets = np.where(partial, orders.column_sets, 0)
    partials = tuple(
        _rows(events, orders, np.flatnonzero(sets == one), [ORDER_FIELD, *layout.changed(one)], pa.table({}), layout)
        for one in np.unique(sets[partial]).tolist()
    )
    superseded = events.records - records(events.rows.take(pa.array(events.at[orders.applied])))
    inserts = not (orders.lived[whole] & lives).any()
    deletes = dead.select([KEY, ORDER_FIELD])
    return StitchedRows(upserts, partials, deletes, _tombstones(dead, layout), superseded, inserts)


def _rows(
    events: ColumnGroupEvents, orders: Orders, at: Int64s, names: list[str], stored: pa.Table, layout: ColumnLayout
) -> pa.Table:
    """The rows of the keys at some indexes: KEY and the named columns."""
    made: dict[str, pa.Array | pa.ChunkedArray] = {KEY: events.keys.take(pa.array(at))}
    wanted, upsert = set(names), orders.applied & events.is_upsert
    for number, (group, columns) in enumerate(zip(layout.merging.groups, layout.groups, strict=True)):
        event = np.where(upsert[number], events.at[number], -1)[at]
        kept = np.where(orders.kept[number][at], at, -1) if len(stored) else np.full(len(at), -1, dtype=np.int64)
        for name in columns:
            if name in wanted:
                incoming, known = (column_of(table, layout.schema.field(name)) for table in (events.rows, stored))
                made[name] = chosen(incoming, event, known, kept)
        after = orders.after[number][at]
        made[group.order_field] = pa.array(after, mask=after == NEVER)
    for name in layout.common:
        if name in wanted:
            made[name] = _common(events, at, layout.schema.field(name))
    made[ORDER_FIELD] = pa.array(np.full(len(at), WRITER_ORDER))
    return pa.table({name: made[name] for name in (KEY, *names)})


def _common(events: ColumnGroupEvents, touched: Int64s, field: pa.Field) -> pa.ChunkedArray:
    column = column_of(events.rows, field)
    given = np.append(valid(column), False)
    index = np.full(len(touched), -1, dtype=np.int64)
    for positions in events.at[:, touched]:
        index = np.where(given[positions], positions, index)
    return column.take(pa.array(index, mask=index < 0))


def _tombstones(dead: pa.Table, layout: ColumnLayout) -> pa.Table:
    values = [n for names in layout.groups for n in names] if hiding(layout.merging).any() else []
    held = [name for name in values if dead.column(name).null_count < len(dead)]
    return dead.select([KEY, *layout.merging.hidden_fields, *held])
