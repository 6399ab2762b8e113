"""The orders of deleted rows of tables that look keys up.

Their files may forget a delete, and the index forgets where the row was. So the deletes of the whole table are kept
together (``merging.deleted_keys``), by what names a row in it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from pipeline.hudi.definition.schema import RECORD_KEY_FIELD
from pipeline.hudi.table.table import HudiTable
from pipeline.merging.deleted_keys import DeletedKeys
from pipeline.tagging.events import KeyEvents
from pipeline.tagging.placing import Placed
from pipeline.upsert.target import ORDER_FIELD

#: In place of a file id: the deletes of the whole table.
DELETED: Final = "deleted"


def without_late(table: HudiTable, events: KeyEvents) -> KeyEvents:
    """The events that are not older than the delete of their row. Deletes too: an older one must not take the place of
    the newer one. Raises CorruptDataError, StorageError."""
    known = DeletedKeys.of(table.storage, table.timeline, DELETED)
    if not len(known.keys):
        return events
    late = known.superseded(events.names(is_global=table.config.kind.is_global), events.orders)
    return events.take(np.flatnonzero(~late)) if late.any() else events


def keep_deletes(table: HudiTable, instant: str, events: KeyEvents, placed: Placed) -> None:
    """Write the deletes of a commit, before it completes. Raises StorageError."""
    if not len(placed.deletes):
        return
    deletes = events.take(placed.deletes)
    names = deletes.names(is_global=table.config.kind.is_global)
    rows = pa.table({RECORD_KEY_FIELD: names, ORDER_FIELD: pa.array(deletes.orders)})
    DeletedKeys.write(table.storage, DELETED, instant, rows)
