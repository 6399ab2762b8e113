"""Cells that have no place in a wide row, and rows that have none in a wide table."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import CELL_SCHEMA, FAMILY, QUALIFIER, ROW, TIMESTAMP, VALUE
from binlake.decode.quarantine import Reason
from binlake.hbase.rules.values import expectation
from binlake.hbase.settings.columns import WideColumn

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
