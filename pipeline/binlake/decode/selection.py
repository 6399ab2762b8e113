"""Selects rows of a change batch with their before images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.changes import ChangeBatch

#: One truth value a row.
Mask = npt.NDArray[np.bool_]
#: Before images, and the number of the row that each belongs to; None where a batch has none.
Moves = tuple[pa.Table, npt.NDArray[np.int64]] | None


def rows_where(batch: ChangeBatch, mask: Mask) -> ChangeBatch:
    """The rows of a batch for which the mask holds, with their before images."""
    moves = None if batch.before is None else (batch.before, batch.before_at)
    rows, moves = select_rows(batch.rows, moves, mask)
    return (
        replace(batch, rows=rows) if moves is None else replace(batch, rows=rows, before=moves[0], before_at=moves[1])
    )


def select_rows(rows: pa.Table, moves: Moves, mask: Mask) -> tuple[pa.Table, Moves]:
    """The rows for which the mask holds, and their before images by their new row numbers."""
    kept = rows.filter(pa.array(mask))
    if moves is None:
        return kept, None
    before, at = moves
    inside = mask[at]
    new_position = np.cumsum(mask) - 1
    return kept, (before.filter(pa.array(inside)), new_position[at[inside]])
