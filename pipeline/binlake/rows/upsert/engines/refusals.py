"""Events that a table's merge engine cannot take, split off before they are routed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from binlake.decode.changes import ChangeBatch, Mask, rows_where
from binlake.rows.upsert.engines.contributions import split_irrevocable
from binlake.rows.upsert.route import placed
from binlake.rows.upsert.target import Target


def engine_refusals(batch: ChangeBatch, target: Target) -> tuple[ChangeBatch, ChangeBatch | None, str]:
    """The batch without the events that the engine cannot take, these events (None if there are none), and why.

    An aggregate cannot take back every value (``split_irrevocable``). A row of ``partial_update`` cannot move to
    another partition: its other columns would stay behind.
    """
    engine = target.merging.engine
    if engine == "aggregate":
        return split_irrevocable(batch, dict(target.merging.functions), target)
    if engine != "partial_update" or target.partition is None or batch.before is None or not len(batch.before):
        return batch, None, ""
    moved = _moved(batch, target)
    if not moved.any():
        return batch, None, ""
    why = f"the event moves a row to another partition, by {target.partition.column}, without all its columns"
    return rows_where(batch, ~moved), rows_where(batch, moved), why


def without_moves(batch: ChangeBatch, target: Target) -> tuple[ChangeBatch, pa.Table]:
    """The batch without the updates that move a row to another partition, and the rows of these: the first row stays
    where it is."""
    if target.partition is None or batch.before is None or not len(batch.before):
        return batch, batch.rows.slice(0, 0)
    moved = _moved(batch, target)
    return rows_where(batch, ~moved), batch.rows.filter(pa.array(moved))


def _moved(batch: ChangeBatch, target: Target) -> Mask:
    """The updates that change the partition of a row and not its key, bool of n."""
    images = placed(batch, target)
    after = pa.array(images.before_at)
    keys, paths = (np.asarray(a.take(after)) for a in (images.rows.column("_hoodie_record_key"), images.paths))
    assert images.before is not None
    old_keys, old_paths = np.asarray(images.before.column("_hoodie_record_key")), np.asarray(images.before_paths)
    moved = np.zeros(len(batch.rows), dtype=np.bool_)
    moved[images.before_at[(keys == old_keys) & (paths != old_paths)]] = True
    return moved
