"""Which rows of a file group a backfill changes, and to what. Pure: rows and their states in, rows to write out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.load.backfill.read_rows import AT, RowCounts
from binlake.rows.merging.states import KeyStates
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.merging import WRITER_ORDER, ColumnGroup, Merging

Flags = npt.NDArray[np.bool_]
Orders = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BackfillRule:
    """What a backfill writes.

    Args:
        merging: of the table.
        group: the group of the columns.
        columns: to write, lake names.
        whole: whether they are all columns of the group.
        order: of the values.
        insert: whether rows are inserted.
    """

    merging: Merging
    group: ColumnGroup
    columns: tuple[str, ...]
    whole: bool
    order: int
    insert: bool

    @property
    def asked(self) -> tuple[str, ...]:
        """The columns of the table that the rule needs to know."""
        return (ORDER_FIELD, *self.merging.hidden_fields)


@dataclass(frozen=True, slots=True)
class FilledRows:
    """The rows to write for a file group.

    Args:
        changes: tables of rows that live: KEY, ORDER_FIELD and the columns to change, sorted by key.
        inserts: whole rows of new keys, sorted by key; None for none.
        counts: what became of the rows.
    """

    changes: tuple[pa.Table, ...]
    inserts: pa.Table | None
    counts: RowCounts


def newest_rows(rows: pa.Table) -> pa.Table:
    """The last row (AT) of every key, sorted by key."""
    ordered = rows.take(pc.sort_indices(rows, sort_keys=[(KEY, "ascending"), (AT, "ascending")]))
    keys = ordered.column(KEY).combine_chunks()
    last = np.ones(len(keys), dtype=np.bool_)
    if len(keys) > 1:
        last[:-1] = pc.not_equal(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False)
    return ordered.filter(pa.array(last))


def fill(rule: BackfillRule, rows: pa.Table, states: KeyStates) -> FilledRows:
    """What to write for rows of one file group.

    The values apply to a row whose group has no newer order than theirs (equal orders apply). The group's order becomes
    theirs if all columns of the group are given, or the group did not know the row; else it stays: the group's other
    columns are as old as before, and every live change of the group still applies.

    Args:
        rule: what to write.
        rows: n rows with distinct keys, sorted by key: KEY, the lake columns, AT.
        states: of their keys, with ``rule.asked``; with all columns of the table if rows are inserted.
    """
    own = _known(states, rule.group)
    fits = rule.order >= own.newest
    changed = states.alive & fits
    inserted = ~states.alive & fits & ~_hidden(rule, states) & rule.insert
    missing = ~states.alive & ~inserted
    counts = RowCounts(
        missing=int(missing.sum()),
        older=int((states.alive & ~fits).sum()),
        changed=int(changed.sum()),
        inserted=int(inserted.sum()),
    )
    changes = tuple(_changes(rule, rows, states, own, changed))
    return FilledRows(changes, _inserts(rule, rows, states, inserted) if counts.inserted else None, counts)


@dataclass(frozen=True, slots=True)
class _GroupState:
    """What a group knows of n rows.

    Args:
        newest: the order of its newest event, delete or not; -1 if it never knew the row.
        rows: whether it knows the row now.
        deleted: whether its newest event deleted the row.
    """

    newest: Orders
    rows: Flags
    deleted: Flags


def _known(states: KeyStates, group: ColumnGroup) -> _GroupState:
    column = states.rows.column(group.order_field)
    ever = np.asarray(column.is_valid().to_numpy(), dtype=np.bool_)
    orders = np.asarray(column.fill_null(-1).to_numpy(), dtype=np.int64)
    deleted = ever & (orders < 0)
    return _GroupState(np.where(deleted, -orders - 1, orders), ever & ~deleted, deleted)


def _before_groups(states: KeyStates) -> Flags:
    """The rows that were written before the table had groups: their own order is the order of the first group."""
    orders = np.asarray(states.rows.column(ORDER_FIELD).fill_null(WRITER_ORDER).to_numpy(), dtype=np.int64)
    return states.alive & (orders < WRITER_ORDER)


def _hidden(rule: BackfillRule, states: KeyStates) -> Flags:
    """The rows that another group has deleted as a whole. Only that group can bring them back."""
    hidden = np.zeros(len(states.alive), dtype=np.bool_)
    for group in rule.merging.groups:
        if group.on_delete == "row" and group.name != rule.group.name:
            hidden |= _known(states, group).deleted
    return hidden


def _changes(
    rule: BackfillRule, rows: pa.Table, states: KeyStates, own: _GroupState, changed: Flags
) -> Iterator[pa.Table]:
    """Partial rows: the columns and the group's order. A row from before the table had groups gets the order of the
    first group too, because a partial row hides its own one (``WRITER_ORDER``)."""
    orders = np.where(own.rows & (not rule.whole), own.newest, rule.order)
    partial = rows.select([KEY, *rule.columns])
    partial = partial.append_column(ORDER_FIELD, _constant(WRITER_ORDER, rows.num_rows))
    partial = partial.append_column(rule.group.order_field, pa.array(orders, pa.int64()))
    main = rule.merging.groups[0]
    first = changed & _before_groups(states) & (main.name != rule.group.name)
    if first.any():
        whole = partial.append_column(main.order_field, pa.array(_known(states, main).newest, pa.int64()))
        yield whole.filter(pa.array(first))
    if (changed & ~first).any():
        yield partial.filter(pa.array(changed & ~first))


def _inserts(rule: BackfillRule, rows: pa.Table, states: KeyStates, inserted: Flags) -> pa.Table:
    """Whole rows. What other groups know of the key, a delete for example, is kept."""
    fresh = rows.drop_columns([AT]).append_column(ORDER_FIELD, _constant(WRITER_ORDER, rows.num_rows))
    for name in states.rows.column_names:
        if name == rule.group.order_field:
            fresh = fresh.append_column(name, _constant(rule.order, rows.num_rows))
        elif name not in fresh.column_names:
            fresh = fresh.append_column(states.rows.schema.field(name), states.rows.column(name))
    return fresh.filter(pa.array(inserted))


def _constant(value: int, length: int) -> pa.Array:
    return pa.array(np.full(length, value, dtype=np.int64))
