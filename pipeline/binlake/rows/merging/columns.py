"""Columns of rows that are put together from events and stored rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.rows.upsert.collapse import Int64s

Flags = npt.NDArray[np.bool_]


def column_of(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    """A column of n rows in the field's type; nulls if the rows lack it. Raises ArrowInvalid for a value that the type
    cannot hold."""
    if field.name not in rows.column_names:
        return pa.chunked_array([pa.nulls(len(rows), field.type)])
    column = rows.column(field.name)
    return column if column.type == field.type else column.cast(field.type)


def valid(column: pa.ChunkedArray) -> Flags:
    """Which of n values are not null."""
    return np.asarray(column.is_valid().to_numpy(), dtype=np.bool_)


def chosen(first: pa.ChunkedArray, at: Int64s, second: pa.ChunkedArray, other: Int64s) -> pa.ChunkedArray:
    """The value of ``first`` at an index, or else that of ``second``, or else null; -1 stands for no index."""
    if not (other >= 0).any():
        return first.take(pa.array(at, mask=at < 0))
    both = pa.chunked_array([*first.chunks, *second.chunks], first.type)
    index = np.where(at >= 0, at, np.where(other >= 0, other + len(first), -1))
    return both.take(pa.array(index, mask=index < 0))


def longs(column: pa.ChunkedArray, null: int) -> Int64s:
    """A LONG column as int64 array of n, ``null`` where it has no value."""
    return np.asarray(column.fill_null(null).to_numpy(), dtype=np.int64)
