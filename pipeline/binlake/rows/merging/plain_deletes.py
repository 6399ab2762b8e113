"""The deletes of a plain table, kept when it gets column groups: from then on its writer decides what came late.

Log files hold deletes as blocks, which compactions of tables merged by their writer do not restate. A copy-on-write
table has them as tombstones already, without the order column of a group.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.deleted_keys import DeletedKeys
from binlake.rows.merging.tombstones import decode, encode, folder, write_tombstones
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.merging import ColumnGroup
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.read.slice import read_deletes
from hudilake.table.table import HudiTable


def keep_plain_deletes(table: HudiTable, group: ColumnGroup) -> None:
    """Before a plain table gets column groups: keep the deletes that it knows as tombstones of the first group. Done
    again, it changes nothing.

    Args:
        table: loaded, under its lock.
        group: the first one.

    Raises CorruptDataError, UnsupportedError, StorageError.
    """
    newest = table.timeline.last_completed()
    for piece in table.file_slices() if newest is not None else ():
        if table.config.kind.copies:
            _complete(table, piece.file_id, group)
            continue
        deletes = read_deletes(table, piece)
        if newest is not None and len(deletes):
            orders = _group_orders(deletes.column(table.config.ordering_field))
            rows = pa.table({RECORD_KEY_FIELD: deletes.column(RECORD_KEY_FIELD), group.order_field: orders})
            write_tombstones(table.storage, piece.file_id, newest.requested_time, rows)


def _complete(table: HudiTable, file_id: str, group: ColumnGroup) -> None:
    """Give the tombstones of a file group the order column of a column group, each the highest order of its key."""
    deleted = DeletedKeys.of(table.storage, table.timeline, file_id)
    for info in table.storage.list(folder(file_id)):
        rows = decode(table.storage.read(info.path), info.path)
        if group.order_field in rows.column_names:
            continue
        positions = np.asarray(
            pc.fill_null(pc.index_in(rows.column(RECORD_KEY_FIELD), value_set=deleted.keys), -1).to_numpy()
        )
        own = rows.column(ORDER_FIELD).to_numpy()
        highest = np.where(positions >= 0, deleted.orders[positions], own) if len(deleted.orders) else own
        table.storage.write(info.path, encode(rows.append_column(group.order_field, _group_orders(pa.array(highest)))))


def _group_orders(orders: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The orders of deletes as a column group's order column has them."""
    return pc.subtract(pc.negate(orders), 1)
