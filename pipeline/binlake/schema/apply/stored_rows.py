"""The stored rows of a lake table after pending statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.upsert.keyless import DIGEST_FIELD
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD, ROW_FIELD
from binlake.schema.rules.entries import DdlEntry
from binlake.schema.rules.restatement import Restatement, deleted, removed, restated
from binlake.schema.rules.retyping import is_rewritten
from binlake.schema.rules.row_places import RowPlaces
from binlake.schema.rules.stepping import as_type
from binlake.schema.rules.steps import stored_step
from binlake.settings.fanout import ShardRule
from binlake.tables.lake_table import LakeTable
from hudilake.format.definition.column_names import lake_name
from hudilake.format.files.log_rows import Flags
from hudilake.format.files.view import FileSlice
from hudilake.read.slice import read_file_slice

#: The columns that binlake adds, besides the record key.
OWN = (ORDER_FIELD, ROW_FIELD, DIGEST_FIELD)


@dataclass(frozen=True, slots=True)
class PendingStatement:
    """A statement to carry out. ``shard``: which rows of a merged table are its source's; None for all rows."""

    entry: DdlEntry
    shard: ShardRule | None = None


def ddl_stream(name: str) -> str:
    """The stream name in the commits of DDL; these commits cover no offsets."""
    return f"{name}.ddl"


def columns_after(current: pa.Schema, judged: pa.Schema) -> pa.Schema:
    """The table's columns after statements: those of ``judged``, in the table's order, and the table's own; ``current``
    itself if they are the same."""
    taken = [judged.field(f.name).with_nullable(f.nullable) if f.name in judged.names else f for f in current]
    known = pa.schema([*taken, *(f.with_nullable(True) for f in judged if f.name not in current.names)])
    return current if known == current else known


def stored_rows(table: LakeTable, piece: FileSlice) -> pa.Table:
    """The rows of a file slice: the record key and the table's columns."""
    return read_file_slice(table.hudi, piece, columns=[KEY, *table.hudi.schema.names])


def after_statements(
    table: LakeTable, rows: pa.Table, news: Sequence[PendingStatement], schema: pa.Schema
) -> tuple[pa.Table, Flags]:
    """The value columns of stored rows after the statements, and a mask of the rows that the statements remove.

    ``schema``: the table's columns after them. A slice without rows from before a statement keeps its types until here.
    """
    values = rows.drop_columns([n for n in rows.column_names if n == KEY or n in OWN])
    gone = np.zeros(len(rows), dtype=bool)
    for one in news:
        entry, places = one.entry, places_of(table, rows, one.shard)
        gone |= deleted(places, entry.restatements())
        gone |= removed(values, places, [Restatement(entry.order, entry.seconds, entry.steps)])
        if entry.steps:
            steps = tuple(stored_step(step) for step in entry.steps)
            values = restated(values, places, [Restatement(entry.order, entry.seconds, steps)])
    for index, field in enumerate(values.schema):
        kind = schema.field(field.name).type if field.name in schema.names else field.type
        if is_rewritten(field.type, kind):
            values = values.set_column(index, field.with_type(kind), as_type(values.column(index), kind))
    return values, gone


def rows_after(table: LakeTable, piece: FileSlice, schema: pa.Schema, news: Sequence[PendingStatement]) -> pa.Table:
    """The rows of a file slice that are left after the statements, with the columns of ``schema``."""
    rows = stored_rows(table, piece)
    values, gone = after_statements(table, rows, news, schema)
    whole = {n: rows.column(n) for n in rows.column_names if n == KEY or n in OWN}
    whole |= {n: values.column(n).cast(schema.field(n).type) for n in values.column_names}
    whole |= {f.name: pa.nulls(len(rows), f.type) for f in schema if f.name not in whole}
    return pa.table(whole).filter(pa.array(~gone))


def places_of(table: LakeTable, rows: pa.Table, shard: ShardRule | None) -> RowPlaces:
    """The moments of stored rows; in a merged table the rows of other sources come after all statements."""
    orders = np.asarray(rows.column(ORDER_FIELD).to_numpy(), dtype=np.int64)
    if shard is not None:
        mine = pc.fill_null(pc.equal(rows.column(lake_name(shard.column)), shard.value), False).to_numpy()
        orders = np.where(mine, orders, np.iinfo(np.int64).max)
    return table.snapshots.stored(orders)
