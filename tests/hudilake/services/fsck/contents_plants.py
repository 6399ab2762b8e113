"""Faults in files that every other check takes for sound: valid Parquet, valid blocks, the same footer entries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudilake.format.definition.schema import META_FIELDS, RECORD_KEY_FIELD
from hudilake.format.files.data_block import decode_data_block
from hudilake.format.files.delete_block import decode_deletes, encode_deletes
from hudilake.format.files.log_file import (
    BlockType,
    Header,
    LogBlock,
    encode_data_block,
    encode_delete_block,
    iter_blocks,
)
from hudilake.format.files.parquet_file import encode_parquet

#: What a plant makes of rows; None where there are too few.
RowPlant = Callable[[pa.Table], pa.Table | None]


def unchanged(rows: pa.Table) -> pa.Table:
    """The control: the same rows, encoded again."""
    return rows


def one_cell(rows: pa.Table) -> pa.Table | None:
    """Another value in one cell: the last column that is no meta field."""
    return _with_cell(rows, rows.num_rows // 2, _last(rows))


def one_commit_time(rows: pa.Table) -> pa.Table | None:
    """Another commit time of one row."""
    return _with_cell(rows, 0, "_hoodie_commit_time") if rows.num_rows else None


def one_null(rows: pa.Table) -> pa.Table | None:
    """Null in place of a value."""
    name = _last(rows)
    column = rows.column(name)
    if column.null_count == rows.num_rows:
        return None
    place = pc.index(pc.is_valid(column), True).as_py()
    cells = column.to_pylist()
    cells[place] = None
    return rows.set_column(rows.column_names.index(name), rows.schema.field(name), pa.array(cells, column.type))


def lost_row(rows: pa.Table) -> pa.Table | None:
    """Without its last row."""
    return rows.slice(0, rows.num_rows - 1) if rows.num_rows else None


def doubled_row(rows: pa.Table) -> pa.Table | None:
    """One row in place of another one: their number and the statistics may be the same."""
    if rows.num_rows < 2:
        return None
    places = np.arange(rows.num_rows)
    places[-1] = places[0]
    return rows.take(pa.array(places))


def swapped_cells(rows: pa.Table) -> pa.Table | None:
    """Two rows exchange their values of one column: sums, counts and statistics of the column stay as they are."""
    for name in [n for n in rows.column_names if n not in META_FIELDS]:
        cells = rows.column(name).to_pylist()
        other = next((i for i, cell in enumerate(cells) if cell != cells[0]), None)
        keys = rows.column(RECORD_KEY_FIELD)
        if other is not None and keys[0] != keys[other]:
            cells[0], cells[other] = cells[other], cells[0]
            column = pa.array(cells, rows.schema.field(name).type)
            return rows.set_column(rows.column_names.index(name), rows.schema.field(name), column)
    return None


PLANTS: Final[tuple[RowPlant, ...]] = (one_cell, one_commit_time, one_null, lost_row, doubled_row, swapped_cells)


def plant(file: Path, change: RowPlant) -> bool:
    """Write a file anew with changed rows; False if it has too few rows for that."""
    return _in_base(file, change) if file.suffix == ".parquet" else _in_log(file, change)


def _in_base(file: Path, change: RowPlant) -> bool:
    with pq.ParquetFile(file) as opened:
        footer = {k.decode(): v.decode() for k, v in opened.metadata.metadata.items()}
        rows = change(opened.read().replace_schema_metadata(None))
    if rows is None:
        return False
    file.write_bytes(encode_parquet(rows, "zstd", 1, footer))
    return True


def _in_log(file: Path, change: RowPlant) -> bool:
    parts, changed = [], False
    for block in iter_blocks(file.read_bytes(), str(file)):
        data = None if changed else _block(block, change)
        changed |= data is not None
        parts.append(_block(block, unchanged) if data is None else data)
    file.write_bytes(b"".join(part for part in parts if part is not None))
    return changed


def _block(block: LogBlock, change: RowPlant) -> bytes | None:
    instant, schema = block.header[Header.INSTANT_TIME], block.header[Header.SCHEMA]
    if block.block_type is BlockType.DELETE:
        deletes = decode_deletes(block.content)
        if change is not unchanged:
            changed = one_cell(deletes) if change is one_cell else lost_row(deletes)
            if changed is None or not changed.num_rows:
                return None
            deletes = changed
        ordering = deletes.column("ordering").combine_chunks()
        keys = deletes.column(RECORD_KEY_FIELD).combine_chunks()
        content = encode_deletes(keys, None if ordering.null_count else ordering, "")
        return encode_delete_block(instant, schema, content)
    rows = change(decode_data_block(block, None, ""))
    if rows is None:
        return None
    return encode_data_block(instant, schema, encode_parquet(rows, "zstd", 1), partial=block.is_partial)


def _last(rows: pa.Table) -> str:
    return str(rows.column_names[-1])


def _with_cell(rows: pa.Table, place: int, name: str) -> pa.Table | None:
    if not rows.num_rows:
        return None
    cells, column = rows.column(name).to_pylist(), rows.column(name)
    old = cells[place]
    if isinstance(old, str):
        cells[place] = f"{old[:-1]}{'1' if old.endswith('0') else '0'}" if old else "x"
    elif isinstance(old, bytes):
        cells[place] = old + b"x"
    elif isinstance(old, int | float):
        cells[place] = old + 1
    else:
        texts = pa.types.is_string(column.type)
        cells[place] = "x" if texts else b"x" if pa.types.is_binary(column.type) else 1
    return rows.set_column(rows.column_names.index(name), rows.schema.field(name), pa.array(cells, column.type))
