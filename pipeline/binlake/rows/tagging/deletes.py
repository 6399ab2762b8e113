"""The orders of deleted rows of tables that look keys up.

Their files may forget a delete, and the index forgets where the row was. So the deletes of the whole table are kept
together (``binlake.rows.merging.deleted_keys``), by what names a row in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from binlake.rows.merging.deleted_keys import DeletedKeys
from binlake.rows.merging.tombstones import TombstoneFiles
from binlake.rows.tagging.events import KeyEvents
from binlake.rows.tagging.placing import EventPlaces
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.table.table import HudiTable

#: In place of a file id: the deletes of the whole table.
DELETED: Final = "deleted"


def without_late(table: HudiTable, events: KeyEvents, files: TombstoneFiles) -> KeyEvents:
    """The events that are not older than the delete of their row. Deletes too: an older one must not take the place of
    the newer one. ``files``: of the table's deletes that were read before. Raises CorruptDataError, StorageError."""
    known = DeletedKeys.of(table.storage, table.timeline, DELETED, files)
    if not len(known.keys):
        return events
    late = known.superseded(events.names(table.config.kind.scope), events.orders)
    return events.take(np.flatnonzero(~late)) if late.any() else events


def keep_deletes(table: HudiTable, instant: str, events: KeyEvents, placed: EventPlaces) -> None:
    """Write the deletes of a commit, before it completes. Raises StorageError."""
    if not len(placed.deletes):
        return
    deletes = events.take(placed.deletes)
    names = deletes.names(table.config.kind.scope)
    _keep(table, instant, names, pa.array(deletes.orders))


def keep_removed(table: HudiTable, instant: str, removed: Sequence[tuple[str, pa.Table]]) -> None:
    """Write the deletes of a commit that no event made. Raises StorageError.

    Args:
        table: which looks keys up.
        instant: of the commit, which has not completed.
        removed: partition paths, each with rows of ``_hoodie_record_key`` and the ordering column that were deleted.
    """
    by_path = [(path, rows) for path, rows in removed if rows.num_rows]
    if not by_path:
        return
    rows = pa.concat_tables([some for _, some in by_path])
    paths = np.repeat(np.arange(len(by_path), dtype=np.int32), [some.num_rows for _, some in by_path])
    named = pa.DictionaryArray.from_arrays(pa.array(paths), pa.array([path for path, _ in by_path], pa.string()))
    keys = rows.column(RECORD_KEY_FIELD).combine_chunks()
    names = table.config.kind.scope.names(keys, named)
    _keep(table, instant, names, rows.column(ORDER_FIELD).cast(pa.int64()))


def _keep(table: HudiTable, instant: str, names: pa.Array, orders: pa.Array | pa.ChunkedArray) -> None:
    DeletedKeys.write(table.storage, DELETED, instant, pa.table({RECORD_KEY_FIELD: names, ORDER_FIELD: orders}))
