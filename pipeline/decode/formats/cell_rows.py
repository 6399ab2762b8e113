"""Cells of HBase-like stores -> change batches: each cell, also each delete marker, is one row of a table of cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.decode.cells import CELL_FIELDS, CELL_KEY, CELL_WIRE
from pipeline.decode.changes import META_FIELDS, UNKNOWN_PLACE, ChangeBatch, Column, Op, SourceTable, TableSchema
from pipeline.decode.messages.chunk import Chunk

#: The namespace of HBase tables that are named without one.
DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True)
class CellRows:
    """n cells of one table, in the order of their records.

    Attributes:
        cells: of CELL_SCHEMA.
        at: the index of each cell's record in the chunk, int64.
        number: of the cell in its record, int32.
        orders: the ordering value of each cell, int64.
        source_ms: when the store logged the cell, milliseconds, int64; 0 if unknown.
    """

    cells: pa.Table
    at: npt.NDArray[np.int64]
    number: npt.NDArray[np.int32]
    orders: npt.NDArray[np.int64]
    source_ms: npt.NDArray[np.int64]


def table_of_cells(source: SourceTable) -> TableSchema:
    """The schema of a store's table as a table of cells."""
    return TableSchema(source, tuple(Column(field.name, CELL_WIRE, field.type) for field in CELL_FIELDS), CELL_KEY)


def store_table(name: str) -> SourceTable | None:
    """The table that HBase calls ``namespace:table`` or ``table``; None if that is no name of a table."""
    namespace, colon, table = name.rpartition(":")
    if not table or (colon and not namespace) or ":" in namespace:
        return None
    return SourceTable(namespace or DEFAULT_NAMESPACE, table)


def add_cells(chunk: Chunk, source: SourceTable, rows: CellRows) -> None:
    """Append a change batch of the cells of one table; none for no cells."""
    n = len(rows.at)
    if not n:
        return
    meta = (
        np.full(n, Op.UPSERT, dtype=np.int8),
        rows.orders,
        rows.number,
        np.full(n, chunk.records.partition, dtype=np.int32),
        chunk.records.offsets[rows.at],
        rows.source_ms,
        np.full(n, UNKNOWN_PLACE, dtype=np.int64),
    )
    table = rows.cells
    for field, values in zip(META_FIELDS, meta, strict=True):
        table = table.append_column(field, pa.array(values, field.type))
    chunk.decoded.changes.append(ChangeBatch(table_of_cells(source), chunk.records.topic, table))
