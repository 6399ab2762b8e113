"""Rows that a statement about their partition has removed, and that come after it was carried out.

Such a row was in the lake's place when the statement ran, whether the lake had it by then or not. So in a table with a
key its event is a delete: it also removes an older version that the lake has in another partition of the source. In a
table without a key only the row's former content is left to remove.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from binlake.decode.changes import META_NAMES, ChangeBatch, Mask, Op
from binlake.schema.rules.restatement import REMOVED


def removed_rows(batch: ChangeBatch) -> Mask:
    """A mask of the rows that are marked as removed (``restate_batch``)."""
    return np.asarray(batch.rows.column("__op").to_numpy() >= REMOVED)


def removals_as_deletes(batch: ChangeBatch, *, keyed: bool) -> ChangeBatch:
    """The batch with deletes for its removed rows; rows that delete nothing stay marked.

    ``keyed``: whether the lake table has a key.
    """
    gone = removed_rows(batch)
    if not gone.any():
        return batch
    if keyed:
        return replace(batch, rows=_with_op(batch.rows, gone))
    if batch.before is None:
        return batch
    moved = gone[batch.before_at]
    at, images = batch.before_at[moved], batch.before.filter(pa.array(moved))
    deletes = np.zeros(len(gone), dtype=bool)
    deletes[at] = True
    places = np.arange(len(gone))
    places[at] = len(gone) + np.arange(len(at))
    rows = batch.rows
    for number, name in enumerate(rows.column_names):
        if name not in META_NAMES:
            field = rows.schema.field(number)
            old = images.column(name).cast(field.type) if name in images.column_names else pa.nulls(len(at), field.type)
            both = pa.chunked_array([*rows.column(number).chunks, *pa.chunked_array(old).chunks], field.type)
            rows = rows.set_column(number, field, both.take(pa.array(places)))
    kept = pa.array(~moved)
    return replace(
        batch, rows=_with_op(rows, deletes), before=batch.before.filter(kept), before_at=batch.before_at[~moved]
    )


def _with_op(rows: pa.Table, deletes: Mask) -> pa.Table:
    at = rows.column_names.index("__op")
    ops = np.where(deletes, np.int8(Op.DELETE), rows.column(at).to_numpy())
    return rows.set_column(at, rows.schema.field(at), pa.array(ops, pa.int8()))
