"""The stored rows of a lake table after pending statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.hudi.definition.column_names import lake_name
from pipeline.hudi.files.log_merge import Flags
from pipeline.hudi.files.view import FileSlice
from pipeline.hudi.read.slice import read_file_slice
from pipeline.lake.lake_table import LakeTable
from pipeline.schema_changes.rules.restatement import Restatement, deleted, restated, stored_step
from pipeline.schema_changes.rules.row_places import RowPlaces
from pipeline.schema_changes.rules.table_ddl import Entry
from pipeline.settings.fanout import ShardRule
from pipeline.upsert.keyless import DIGEST_FIELD, ROW_FIELD
from pipeline.upsert.route import KEY
from pipeline.upsert.target import ORDER_FIELD

#: The columns that binlake adds, besides the record key.
OWN = (ORDER_FIELD, ROW_FIELD, DIGEST_FIELD)


@dataclass(frozen=True, slots=True)
class Pending:
    """A statement to carry out. ``shard``: which rows of a merged table are its source's; None for all rows."""

    entry: Entry
    shard: ShardRule | None = None


def ddl_stream(name: str) -> str:
    """The stream name in the commits of DDL; these commits cover no offsets."""
    return f"{name}.ddl"


def stored_rows(table: LakeTable, piece: FileSlice) -> pa.Table:
    """The rows of a file slice: the record key and the table's columns."""
    return read_file_slice(table.table, piece, columns=[KEY, *table.table.schema.names])


def values_after(table: LakeTable, rows: pa.Table, news: Sequence[Pending]) -> pa.Table:
    """The value columns of stored rows after the statements."""
    values = rows.drop_columns([n for n in rows.column_names if n == KEY or n in OWN])
    for one in news:
        if one.entry.steps:
            steps = tuple(stored_step(step) for step in one.entry.steps)
            effect = Restatement(one.entry.order, one.entry.seconds, steps)
            values = restated(values, places_of(table, rows, one.shard), [effect])
    return values


def dropped(table: LakeTable, rows: pa.Table, news: Sequence[Pending]) -> Flags:
    """A mask of the stored rows that were removed with a dropped table."""
    found = np.zeros(len(rows), dtype=bool)
    for one in news:
        found |= deleted(places_of(table, rows, one.shard), one.entry.restatements())
    return found


def rows_after(table: LakeTable, piece: FileSlice, schema: pa.Schema, news: Sequence[Pending]) -> pa.Table:
    """The rows of a file slice that are left after the statements, with the columns of ``schema``."""
    rows = stored_rows(table, piece)
    values = values_after(table, rows, news)
    whole = {n: rows.column(n) for n in rows.column_names if n == KEY or n in OWN}
    whole |= {n: values.column(n).cast(schema.field(n).type) for n in values.column_names}
    whole |= {f.name: pa.nulls(len(rows), f.type) for f in schema if f.name not in whole}
    return pa.table(whole).filter(pa.array(~dropped(table, rows, news)))


def places_of(table: LakeTable, rows: pa.Table, shard: ShardRule | None) -> RowPlaces:
    """The moments of stored rows; in a merged table the rows of other sources come after all statements."""
    orders = np.asarray(rows.column(ORDER_FIELD).to_numpy(), dtype=np.int64)
    if shard is not None:
        mine = pc.fill_null(pc.equal(rows.column(lake_name(shard.column)), shard.value), False).to_numpy()
        orders = np.where(mine, orders, np.iinfo(np.int64).max)
    return table.snapshots.stored(orders)
