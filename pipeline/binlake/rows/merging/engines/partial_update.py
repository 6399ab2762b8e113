"""The engine ``partial_update``: a null in an event leaves the column as it is.

A column has the value of the newest event that gives it one, among the events after the newest delete of the row. A row
lives if it has an event after that delete. Each column's order is kept, so the same events give the same row in
whatever batches and sequence they come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from binlake.rows.merging.columns import Flags, chosen, column_of, longs, valid
from binlake.rows.merging.engines.sequence import Sequence, sequence
from binlake.rows.merging.engines.state import ROW_ORDER, STATE, pack, unpack
from binlake.rows.merging.states import KeyStates, MergeResult, RowStates
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.merge import Place, records
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.merging import ROW_GROUP, STATE_FIELD, WRITER_ORDER
from hudilake.format.files.file_group_write import FileGroupWrite

#: The entry of a row's state with the order of the newest delete before the row began. Columns without an entry of
#: their own were never set since.
_FLOOR: Final = ""
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class PartialUpdate:
    """The merger of a table.

    Args:
        schema: the table's columns without meta fields, hidden ones among them.
        states: of its rows.
    """

    schema: pa.Schema
    states: RowStates

    def merge(self, place: Place, file_id: str, rows: pa.Table) -> MergeResult:
        """Returns the write of rows; a column takes its newest value that is not null. Errors as ``Merger.merge``."""
        events = sequence(rows)
        hidden = (ORDER_FIELD, ROW_GROUP.order_field, STATE_FIELD)
        fields = [field for field in self.schema if field.name not in hidden]
        wanted = [field.name for field in fields] + [ROW_GROUP.order_field, STATE_FIELD]
        stored = self.states.of(place, file_id, events.keys, wanted)
        after = _after(events, _known(stored, [field.name for field in fields]))
        write, tombstones = _write(place, file_id, events, stored, after, fields)
        return MergeResult(write, records(rows) - int(after.counted.sum()), tombstones)


@dataclass(frozen=True, slots=True)
class _StoredOrders:
    """The orders of m stored rows.

    Args:
        alive: bool of m.
        row: int64 of m, of the newest event of a row that lives, -1 for none.
        floor: int64 of m, of the newest delete, -1 for none.
        columns: int64 (m, c), of each column.
    """

    alive: Flags
    row: Int64s
    floor: Int64s
    columns: Int64s


def _known(stored: KeyStates, names: list[str]) -> _StoredOrders:
    of_row = stored.column(ROW_ORDER)
    orders = longs(of_row, _NONE)
    dead = ~stored.alive & valid(of_row)
    state = unpack(stored.column(STATE), [_FLOOR, *names], _NONE)
    floor = np.where(stored.alive, state[:, 0], np.where(dead, -orders - 1, _NONE))
    columns = np.maximum(np.where(stored.alive[:, None], state[:, 1:], _NONE), floor[:, None])
    return _StoredOrders(stored.alive, np.where(stored.alive, orders, _NONE), floor, columns)


@dataclass(frozen=True, slots=True)
class _After:
    """What the events make of m rows.

    Args:
        before: the orders before them.
        floor, row: as in ``_StoredOrders``, after them.
        cut: int64 of m, of the newest delete among the events if none before was newer, -1 for none.
        survives: bool of m, whether the stored row lives on.
        newest: int64 of m, the newest of ``upserts``, -1 for none.
        upserts: bool of n, the upserts that are not before a delete.
        counted: bool of n, the events that change something.
    """

    before: _StoredOrders
    floor: Int64s
    row: Int64s
    cut: Int64s
    survives: Flags
    newest: Int64s
    upserts: Flags
    counted: Flags


def _after(events: Sequence, known: _StoredOrders) -> _After:
    deleted = events.last(~events.upserts)
    deleted = np.where(events.orders_at(deleted, _NONE) >= known.floor, deleted, -1)
    cut = events.orders_at(deleted, _NONE)
    floor = np.maximum(known.floor, cut)
    survives = known.alive & (known.row > cut)
    position = np.arange(len(events.codes))
    upserts = events.upserts & (position > deleted[events.codes]) & (events.orders >= known.floor[events.codes])
    newest = events.last(upserts)
    row = np.maximum(np.where(survives, known.row, _NONE), events.orders_at(newest, _NONE))
    counted = upserts.copy()
    counted[deleted[deleted >= 0]] = True
    return _After(known, floor, row, cut, survives, newest, upserts, counted)


def _write(
    place: Place, file_id: str, events: Sequence, stored: KeyStates, after: _After, fields: list[pa.Field]
) -> tuple[FileGroupWrite, pa.Table | None]:
    columns: dict[str, pa.Array | pa.ChunkedArray] = {KEY: events.keys}
    known = after.before.columns
    orders = np.empty((len(events.keys), len(fields)), dtype=np.int64)
    changed = (after.row != after.before.row) | (after.floor != after.before.floor)
    newest_orders, newest = events.orders_at(after.newest, _NONE), events.rows_at(after.newest)
    wins = bool((newest >= 0).all() and (newest_orders >= known.max(axis=1, initial=_NONE)).all())
    for number, field in enumerate(fields):
        incoming = column_of(events.rows, field)
        if wins and not incoming.null_count:  # the newest event of each key gives the column
            columns[field.name], orders[:, number] = incoming.take(pa.array(newest)), newest_orders
            changed[:] = True
            continue
        event = events.last(after.upserts & events.valid(incoming)) if incoming.null_count else after.newest
        event_orders = events.orders_at(event, _NONE)
        takes = (event >= 0) & (event_orders >= known[:, number])
        changed |= takes
        kept = ~takes & after.survives & (known[:, number] > after.cut)
        stays = np.where(kept, np.arange(len(kept)), -1)
        before = stored.column(field) if kept.any() else incoming.slice(0, 0)
        columns[field.name] = chosen(incoming, events.rows_at(np.where(takes, event, -1)), before, stays)
        orders[:, number] = np.where(takes, event_orders, np.where(kept, known[:, number], after.floor))
    lives = after.row >= 0
    columns[ORDER_FIELD] = pa.array(np.full(len(lives), WRITER_ORDER, dtype=np.int64))
    columns[ROW_GROUP.order_field] = pa.array(np.where(lives, after.row, -after.floor - 1))
    columns[STATE_FIELD] = pack([_FLOOR, *(f.name for f in fields)], np.column_stack([after.floor, orders]))
    rows = pa.table(columns)
    upserts, dead = (_those(rows, flags) for flags in (lives & changed, ~lives & changed))
    write = FileGroupWrite(
        place[0],
        file_id,
        upserts if len(upserts) else None,
        dead.select([KEY, ORDER_FIELD]) if len(dead) else None,
    )
    return write, dead.select([KEY, ROW_GROUP.order_field]) if len(dead) else None


def _those(rows: pa.Table, wanted: Flags) -> pa.Table:
    """The rows that are wanted; mostly all or none are."""
    if wanted.all():
        return rows
    return rows.filter(pa.array(wanted)) if wanted.any() else rows.slice(0, 0)
