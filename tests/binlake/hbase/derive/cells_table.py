"""Tables of cells for the tests, written with nothing but the table format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import CELL_KEY, ROW
from binlake.hbase.derive.cell_runs import STORED_SCHEMA
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.bucket import bucket_ids, file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.keys import record_keys
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.services.compaction import CompactionConfig, run
from hudilake.table.table import HudiTable
from tests.hudilake.lake import storage_at
from tests.hudilake.services.cleaning.aged import serially

NAME, BUCKETS = "orders_cells", 2


@dataclass(frozen=True)
class Cell:
    """A stored cell; its value tells where it came from."""

    row: str
    family: str
    qualifier: str
    timestamp: int
    kind: str
    order: int
    value: bytes | None


def new_cells_table(path: Path) -> HudiTable:
    """An empty table of two buckets."""
    return HudiTable.create(storage_at(path), TableConfig(NAME, CELL_KEY, ORDER_FIELD, BUCKETS), STORED_SCHEMA)


def cells_table(cells: Iterable[Cell]) -> pa.Table:
    """Cells as a table."""
    found = list(cells)
    columns = {name: [getattr(cell, name) for cell in found] for name in (*CELL_KEY, "value")}
    columns |= {"written": [None] * len(found), ORDER_FIELD: [cell.order for cell in found]}
    return pa.table(columns, schema=STORED_SCHEMA)


def commit_cells(table: HudiTable, upserts: Iterable[Cell], deletes: Iterable[Cell] = (), instant: str = "") -> str:
    """Commit cells of distinct keys as log files. ``deletes``: of these keys, as another writer may write them."""
    instant = instant or table.begin()
    context, results = table.write_context(instant), []
    rows, gone = _keyed(upserts), _keyed(deletes).select([RECORD_KEY_FIELD, ROW, ORDER_FIELD])
    for bucket in range(BUCKETS):
        mine, dead = (_of_bucket(some, bucket) for some in (rows, gone))
        if len(mine) or len(dead):
            removed = dead.drop_columns([ROW]) if len(dead) else None
            group = FileGroupWrite("", file_id(NAME, "", bucket), upserts=mine if len(mine) else None, deletes=removed)
            results.append(write_file_group(table.storage, context, group))
    table.commit(instant, results)
    return instant


def compact_cells(table: HudiTable) -> None:
    """Compact every file group that has log files."""
    run(table, CompactionConfig(after_commits=1, tombstone_retention_hours=0), serially)


def in_order(cells: pa.Table) -> pa.Table:
    """The cells by key."""
    return cells.sort_by([(name, "ascending") for name in CELL_KEY])


def _keyed(cells: Iterable[Cell]) -> pa.Table:
    rows = cells_table(cells)
    return rows.add_column(0, RECORD_KEY_FIELD, record_keys(rows, CELL_KEY)).sort_by(RECORD_KEY_FIELD)


def _of_bucket(rows: pa.Table, bucket: int) -> pa.Table:
    return rows.filter(pa.array(bucket_ids(rows.column(ROW), (ROW,), BUCKETS) == bucket)) if len(rows) else rows


def distinct(cells: Iterable[Cell]) -> list[Cell]:
    """Of each key the last cell."""
    return list({(c.row, c.family, c.qualifier, c.timestamp, c.kind): c for c in cells}.values())


def has_text(column: pa.ChunkedArray, text: str) -> bool:
    """Whether one of the values is that text."""
    return bool(pc.any(pc.equal(column, text)).as_py())
