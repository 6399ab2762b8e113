"""The orders of deleted rows of tables whose files forget them: base files have no deletes.

An event that is older than the delete of its key, and comes late, must not bring the row back. So a commit writes the
orders of the keys that it deletes as tombstones, and a later write leaves out the rows that are older.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.columns import Flags
from binlake.rows.merging.tombstones import TombstoneFiles, Tombstones, write_tombstones
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import Storage


@dataclass(frozen=True, slots=True)
class DeletedKeys:
    """The keys of a file group (or of another part of a table that has an id) that completed commits have deleted.

    Args:
        keys: n distinct record keys, string array; a key may live again.
        orders: the highest order of their deletes, int64 array of n.
    """

    keys: pa.Array
    orders: Int64s

    @classmethod
    def of(cls, storage: Storage, timeline: Timeline, file_id: str, files: TombstoneFiles | None = None) -> DeletedKeys:
        """Read them.

        Args:
            storage: the table's root.
            timeline: loaded; decides which deletes count.
            file_id: of the file group.
            files: those of it that were read before; None to read all.

        Raises CorruptDataError, StorageError.
        """
        rows = Tombstones(storage, timeline, files).counted(file_id)
        if rows is None or ORDER_FIELD not in rows.column_names:
            return cls(pa.array([], pa.string()), np.empty(0, dtype=np.int64))
        rows = rows.select([RECORD_KEY_FIELD, ORDER_FIELD]).filter(rows.column(ORDER_FIELD).is_valid())
        newest = rows.group_by(RECORD_KEY_FIELD).aggregate([(ORDER_FIELD, "max")])
        keys = newest.column(RECORD_KEY_FIELD).combine_chunks()
        return cls(keys, np.asarray(newest.column(f"{ORDER_FIELD}_max").to_numpy(), dtype=np.int64))

    def superseded(self, keys: pa.Array | pa.ChunkedArray, orders: Int64s) -> Flags:
        """Which of n rows are older than the delete of their key, bool array of n.

        Args:
            keys: their record keys.
            orders: their orders.
        """
        if not len(self.keys):
            return np.zeros(len(orders), dtype=np.bool_)
        positions = np.asarray(pc.fill_null(pc.index_in(keys, value_set=self.keys), -1).to_numpy(), dtype=np.int64)
        return np.asarray((positions >= 0) & (orders < self.orders[positions]), dtype=np.bool_)

    @staticmethod
    def write(storage: Storage, file_id: str, instant: str, deletes: pa.Table) -> None:
        """Write the deletes of one commit; a task that runs again replaces its own file. Raises StorageError.

        Args:
            storage: the table's root.
            file_id: of the file group.
            instant: the requested time of the commit, which has not completed.
            deletes: ``_hoodie_record_key`` and the ordering column, n > 0 rows.
        """
        write_tombstones(storage, file_id, instant, deletes.select([RECORD_KEY_FIELD, ORDER_FIELD]))
