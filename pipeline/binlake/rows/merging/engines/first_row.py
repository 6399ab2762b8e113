"""The engine ``first_row``: the oldest event of a key is its row.

A later event changes nothing, and a delete neither. An older event that comes late replaces the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.columns import column_of, longs
from binlake.rows.merging.engines.heights import FactHeights, FeedHeight
from binlake.rows.merging.engines.sequence import sequence
from binlake.rows.merging.engines.state import ROW_ORDER
from binlake.rows.merging.states import MergeResult, RowStates
from binlake.rows.merging.truncate import StatesAfterTruncate, split_truncated, with_truncated
from binlake.rows.upsert.merge import Place, records
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.merging import ROW_GROUP, WRITER_ORDER
from hudilake.format.files.file_group_write import FileGroupWrite

#: The height of the table, whatever the partition: a TRUNCATE must not come before it.
_ALL: Final = 0
_LATEST: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class FirstRow:
    """The merger of a table.

    Args:
        schema: the table's columns without meta fields, hidden ones among them.
        states: of its rows.
    """

    schema: pa.Schema
    states: RowStates

    def merge(self, place: Place, file_id: str, rows: pa.Table) -> MergeResult:
        """Returns the write of the events that are older than their keys' stored rows. Errors as ``Merger.merge``."""
        newest = int(pc.max(rows.column("__order")).as_py())
        rows, gone = split_truncated(rows)
        reached = FactHeights({_ALL: FeedHeight(newest)})
        if not len(rows):
            return MergeResult(with_truncated(FileGroupWrite(place[0], file_id), gone), 0, heights=reached)
        events = sequence(rows)
        first = events.first(events.upserts)
        stored = StatesAfterTruncate(self.states, gone).of(place, file_id, events.keys, [ROW_GROUP.order_field])
        known = np.where(stored.alive, longs(stored.column(ROW_ORDER), _LATEST), _LATEST)
        applies = np.flatnonzero((first >= 0) & (events.orders_at(first, _LATEST) < known))
        positions = first[applies]
        taken = rows.take(pa.array(events.positions[positions]))
        columns: dict[str, pa.Array | pa.ChunkedArray] = {KEY: taken.column(KEY)}
        columns |= {field.name: column_of(taken, field) for field in self.schema}
        columns[ORDER_FIELD] = pa.array(np.full(len(positions), WRITER_ORDER, dtype=np.int64))
        columns[ROW_GROUP.order_field] = pa.array(events.orders[positions])
        write = FileGroupWrite(place[0], file_id, pa.table(columns) if len(positions) else None)
        return MergeResult(with_truncated(write, gone), records(rows) - len(positions), heights=reached)
