"""Wide rows: one row for each row of the store, made of its visible cells.

A row of the store that has a visible cell is a wide row, also if no column of the wide table holds one of its cells
(the row key stands alone then), as a scan of the store shows it. A row without visible cells does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import CELL_SCHEMA, FAMILY, QUALIFIER, ROW, TIMESTAMP, VALUE
from binlake.decode.quarantine import Reason
from binlake.decode.types.cell_text import bytes_of
from binlake.hbase.rules.newest import NOWHERE, Newest, newest_cells, place_of_columns
from binlake.hbase.rules.piecewise import ConvertedValues, Int64s, Mask, mask_of
from binlake.hbase.rules.values import decode_values, expectation, value_type
from binlake.hbase.settings.declared import WideColumn
from binlake.hbase.settings.rules import WideRule

# Cells that have no place in a wide row, and rows that have none in a wide table.

REASON: Final = "reason"
DETAIL: Final = "detail"
_CELL: Final = (FAMILY, QUALIFIER, TIMESTAMP, VALUE)

#: A fault a row. Of a row whose key does not decode, the columns of the cell are null. ``reason``: ``Reason``.
FAULT_SCHEMA: Final = pa.schema(
    [
        CELL_SCHEMA.field(ROW),
        *(CELL_SCHEMA.field(name).with_nullable(True) for name in _CELL),
        pa.field(REASON, pa.string(), nullable=False),
        pa.field(DETAIL, pa.string(), nullable=False),
    ]
)


def value_faults(cells: pa.Table, column: WideColumn) -> pa.Table:
    """Faults of n cells whose values are none of their column's type."""
    sizes = pc.binary_length(cells.column(VALUE)).to_pylist()
    details = [f"column {column.name} takes {expectation(column)}; the value has {size} bytes" for size in sizes]
    return _faults(cells, Reason.BAD_VALUE, details)


def undeclared_faults(cells: pa.Table) -> pa.Table:
    """Faults of n cells that no column holds."""
    names = zip(cells.column(FAMILY).to_pylist(), cells.column(QUALIFIER).to_pylist(), strict=True)
    return _faults(cells, Reason.UNKNOWN_COLUMN, [f"no column holds {family}:{name}" for family, name in names])


def key_faults(rows: pa.Array, key: WideColumn) -> pa.Table:
    """Faults of n rows whose keys are none of the key column's type."""
    cells = {ROW: rows, **{name: pa.nulls(len(rows), CELL_SCHEMA.field(name).type) for name in _CELL}}
    detail = f"column {key.name} takes {expectation(key)}; the row is not in the wide table"
    return _faults(pa.table(cells), Reason.BAD_VALUE, [detail] * len(rows))


def _faults(cells: pa.Table, reason: Reason, details: list[str]) -> pa.Table:
    columns = [*(cells.column(name) for name in (ROW, *_CELL)), [reason.value] * len(details), details]
    return pa.table(columns, schema=FAULT_SCHEMA)


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
    kept, lost = visible & ~keys.bad, visible & keys.bad
    held = _WideCells(cells, newest.where(~lost[newest.row]), np.cumsum(kept) - 1, int(kept.sum()))
    places = place_of_columns(held.newest, rule.columns)
    columns = [keys.values.filter(pa.array(kept))]
    faults = [key_faults(rows.filter(pa.array(lost)), rule.key)]
    for place, column in enumerate(rule.columns[1:], 1):
        if column.is_timestamp:
            columns.append(_timestamps(held))
        else:
            made, fault = _column(held.where(places == place), column)
            columns.append(made)
            faults += fault
    if rule.undeclared == "quarantine":
        faults.append(undeclared_faults(held.where(places == NOWHERE).own()))
    return WideRows(
        pa.Table.from_arrays(columns, schema=wide_schema(rule)),
        keys.values.filter(pa.array(~visible & ~keys.bad)),
        pa.concat_tables(faults),
    )


@dataclass(frozen=True, slots=True)
class _WideCells:
    """Newest cells that wide rows hold.

    Args:
        cells: the table that they are of.
        newest: the cells.
        number: for each row that was asked for, its place among the wide rows, if it is one of them.
        count: of wide rows.
    """

    cells: pa.Table
    newest: Newest
    number: Int64s
    count: int

    def where(self, mask: Mask) -> _WideCells:
        """Those of the cells."""
        return replace(self, newest=self.newest.where(mask))

    def own(self, mask: Mask | None = None) -> pa.Table:
        """The cells as a table; ``mask``: which of them."""
        cell = self.newest.cell if mask is None else self.newest.cell[mask]
        return self.cells.take(pa.array(cell))

    @property
    def at(self) -> Int64s:
        """The wide row of each cell."""
        return self.number[self.newest.row]


def _keys(rows: pa.Array, key: WideColumn) -> ConvertedValues:
    """Row keys, each another value: a number in another spelling than its own (007) is bad."""
    stored = bytes_of(rows)
    decoded = decode_values(stored, key)
    if not key.as_text or key.type == "utf8":
        return decoded
    strange = ~mask_of(pc.equal(decoded.values.cast(pa.string()).cast(pa.binary()), stored))
    return ConvertedValues(
        pc.if_else(pa.array(~strange), decoded.values, pa.scalar(None, decoded.values.type)), strange
    )


def _column(held: _WideCells, column: WideColumn) -> tuple[pa.Array, list[pa.Table]]:
    """The column of the wide rows, and the faults of its cells."""
    values = _flat(held.cells.column(VALUE).take(pa.array(held.newest.cell)))
    decoded = decode_values(values, column)
    made = _maps(held, decoded.values) if column.is_map else _spread(decoded.values, held.at, held.count)
    return made, [value_faults(held.own(decoded.bad), column)] if decoded.bad.any() else []


def _spread(values: pa.Array, at: Int64s, count: int) -> pa.Array:
    """``count`` values: ``values`` at ``at``, null elsewhere."""
    index = np.zeros(count, dtype=np.int64)
    index[at] = np.arange(len(at))
    absent = np.ones(count, dtype=bool)
    absent[at] = False
    return values.take(pa.array(index, mask=absent))


def _maps(held: _WideCells, items: pa.Array) -> pa.Array:
    """A map for each row, its entries by qualifier; null for a row without entries. The cells are in that order."""
    sizes = np.bincount(held.at, minlength=held.count)
    bounds = np.zeros(held.count + 1, dtype=np.int32)
    np.cumsum(sizes, out=bounds[1:])
    keys = held.newest.qualifiers.take(pa.array(held.newest.qualifier))
    return pa.MapArray.from_arrays(pa.array(bounds, mask=np.append(sizes == 0, False)), keys, items)


def _timestamps(held: _WideCells) -> pa.Array:
    """The newest timestamp of each row."""
    out = np.full(held.count, np.iinfo(np.int64).min, dtype=np.int64)
    np.maximum.at(out, held.at, held.cells.column(TIMESTAMP).take(pa.array(held.newest.cell)).to_numpy())
    return pa.array(out)


def _flat(array: pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
