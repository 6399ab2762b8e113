"""Events that a table's merge engine cannot take."""

from __future__ import annotations

import numpy as np

from binlake.decode.changes import Mask
from binlake.rows.upsert.engines.contributions import irrevocable
from binlake.rows.upsert.place import PlacedRows


def engine_refusals(rows: PlacedRows) -> tuple[Mask, str]:
    """The events that the engine cannot take, bool of n, and why.

    An aggregate cannot take back every value (``irrevocable``). A row of ``partial_update`` cannot move to another
    partition: its other columns would stay behind.
    """
    engine, partition = rows.target.merging.engine, rows.target.partition
    if engine == "aggregate":
        return irrevocable(rows)
    if engine == "partial_update" and partition is not None:
        why = f"the event moves a row to another partition, by {partition.column}, without all its columns"
        return rows.moved(), why
    return np.zeros(len(rows), dtype=np.bool_), ""
