"""Wide rows: one row for each row of the store, made of its visible cells.

A row of the store that has a visible cell is a wide row, also if no column of the wide table holds one of its cells
(the row key stands alone then), as a scan of the store shows it. A row without visible cells does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.cells.buffers import Int64s, Mask, mask_of
from pipeline.cells.faults import FAULT_SCHEMA, key_faults, undeclared_faults, value_faults
from pipeline.cells.newest import Newest, newest_cells
from pipeline.cells.piecewise import Converted
from pipeline.cells.places import NOWHERE, place_of_columns
from pipeline.cells.values import decode_values, value_type
from pipeline.decode.cells import TIMESTAMP, VALUE
from pipeline.decode.types.cell_text import bytes_of
from pipeline.settings.cells.columns import WideColumn
from pipeline.settings.cells.rules import WideRule


@dataclass(frozen=True, slots=True)
class WideRows:
    """What became of rows of a store.

    Args:
        upserts: a row for each row with visible cells; the columns of ``wide_schema``.
        gone: the keys of the rows without visible cells, in the type of the key column.
        faults: the columns of ``FAULT_SCHEMA``: cells that did not decode (their column is null) or that no column
            holds, and rows whose key did not decode (they are not in ``upserts``; their cell is null).
    """

    upserts: pa.Table
    gone: pa.Array
    faults: pa.Table


def wide_schema(rule: WideRule) -> pa.Schema:
    """The columns of a wide table, the key first; all others are nullable."""
    return pa.schema([_field(column) for column in rule.columns])


def _field(column: WideColumn) -> pa.Field:
    kind = value_type(column)
    if column.is_map:
        kind = pa.map_(pa.string(), kind)
    return pa.field(column.name, kind, nullable=not column.is_key)


def wide_rows(cells: pa.Table, rows: pa.Array, rule: WideRule) -> WideRows:
    """The wide rows of rows of the store.

    Args:
        cells: n visible cells, in any order, with the columns of ``CELL_FIELDS``: all of each row in ``rows``, and of
            no other row. The values together have less than 2 GiB.
        rows: the text form of the row keys, each once.
        rule: of the wide table.

    Raises ValueError if a cell is of another row, or a key has no text form.
    """
    newest = newest_cells(cells, rows)
    keys = _keys(rows, rule.key)
    visible = np.zeros(len(rows), dtype=bool)
    visible[newest.row] = True
    lost = visible & keys.bad
    kept = visible & ~keys.bad
    newest = newest.where(~lost[newest.row])
    places = place_of_columns(newest, rule.columns)
    number = np.cumsum(kept) - 1
    columns: list[pa.Array] = []
    faults = [key_faults(rows.filter(pa.array(lost)), rule.key)] if lost.any() else []
    for at, column in enumerate(rule.columns):
        if column.is_key:
            columns.append(keys.values.filter(pa.array(kept)))
        elif column.is_timestamp:
            columns.append(_timestamps(cells, newest, number, int(kept.sum())))
        else:
            made, fault = _column(cells, newest.where(places == at), number, int(kept.sum()), column)
            columns.append(made)
            faults += fault
    if rule.undeclared == "quarantine" and (places == NOWHERE).any():
        faults.append(undeclared_faults(cells.take(pa.array(newest.cell[places == NOWHERE]))))
    gone = keys.values.filter(pa.array(~visible & ~keys.bad))
    return WideRows(
        pa.Table.from_arrays(columns, schema=wide_schema(rule)),
        gone,
        pa.concat_tables(faults) if faults else FAULT_SCHEMA.empty_table(),
    )


def _keys(rows: pa.Array, key: WideColumn) -> Converted:
    """Row keys, each another value: a number in another spelling than its own (007) is bad."""
    stored = bytes_of(rows)
    decoded = decode_values(stored, key)
    if not key.as_text or key.type == "utf8":
        return decoded
    strange = ~mask_of(pc.equal(decoded.values.cast(pa.string()).cast(pa.binary()), stored))
    return Converted(pc.if_else(pa.array(~strange), decoded.values, pa.scalar(None, decoded.values.type)), strange)


def _column(
    cells: pa.Table, chosen: Newest, number: Int64s, count: int, column: WideColumn
) -> tuple[pa.Array, list[pa.Table]]:
    values = _flat(cells.column(VALUE).take(pa.array(chosen.cell)))
    decoded = decode_values(values, column)
    at = number[chosen.row]
    made = _maps(chosen, decoded.values, at, count) if column.is_map else _spread(decoded.values, at, count)
    if not decoded.bad.any():
        return made, []
    return made, [value_faults(cells.take(pa.array(chosen.cell[decoded.bad])), column)]


def _spread(values: pa.Array, at: Int64s, count: int) -> pa.Array:
    """``count`` values: ``values`` at ``at``, null elsewhere."""
    index = np.zeros(count, dtype=np.int64)
    index[at] = np.arange(len(at))
    absent = np.ones(count, dtype=bool)
    absent[at] = False
    return values.take(pa.array(index, mask=absent))


def _maps(chosen: Newest, items: pa.Array, at: Int64s, count: int) -> pa.Array:
    """A map for each row, its entries by qualifier; null for a row without entries. The cells are in that order."""
    sizes = np.bincount(at, minlength=count)
    bounds = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(sizes, out=bounds[1:])
    empty: Mask = sizes == 0
    keys = chosen.qualifiers.take(pa.array(chosen.qualifier))
    offsets = pa.array(bounds, mask=np.append(empty, False)) if empty.any() else pa.array(bounds)
    return pa.MapArray.from_arrays(offsets, keys, items)


def _timestamps(cells: pa.Table, newest: Newest, number: Int64s, count: int) -> pa.Array:
    """The newest timestamp of each row."""
    stamps = cells.column(TIMESTAMP).take(pa.array(newest.cell)).to_numpy()
    out = np.full(count, np.iinfo(np.int64).min, dtype=np.int64)
    np.maximum.at(out, number[newest.row], stamps)
    return pa.array(out)


def _flat(array: pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
