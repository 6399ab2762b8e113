"""Rows that a TRUNCATE removes from a table whose engine takes no deletes of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.states import KeyStates, RowStates
from binlake.rows.upsert.merge import TRUNCATED, Place
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.merging import WRITER_ORDER
from hudilake.format.files.file_group_write import FileGroupWrite


def split_truncated(rows: pa.Table) -> tuple[pa.Table, pa.Array]:
    """The events without the deletes of ``binlake.rows.upsert.merge.truncated``, and the record keys of these."""
    gone = pc.equal(rows.column("__partition"), TRUNCATED)
    if not pc.any(gone).as_py():
        return rows, pa.array([], pa.string())
    keys = rows.column(KEY).filter(gone).combine_chunks()
    return rows.filter(pc.invert(gone)), keys.take(pc.sort_indices(keys))


@dataclass(frozen=True, slots=True)
class StatesAfterTruncate:
    """The row states of a table after a TRUNCATE.

    Args:
        states: before it.
        gone: the record keys that it removes from one file group.
    """

    states: RowStates
    gone: pa.Array

    def of(self, place: Place, file_id: str, keys: pa.Array, columns: Sequence[str]) -> KeyStates:
        """As ``states.RowStates.of``."""
        known = self.states.of(place, file_id, keys, columns)
        if not len(self.gone):
            return known
        stays = ~np.asarray(pc.is_in(keys, value_set=self.gone).to_numpy(zero_copy_only=False), dtype=np.bool_)
        at = pa.array(np.arange(len(keys)), mask=~stays)
        return KeyStates(known.alive & stays, known.rows.take(at))


def with_truncated(write: FileGroupWrite, gone: pa.Array) -> FileGroupWrite:
    """The write with deletes of the truncated keys that it does not write anew; ``write`` has no deletes of them."""
    if write.upserts is not None and len(gone):
        gone = gone.filter(pc.invert(pc.is_in(gone, value_set=write.upserts.column(KEY).combine_chunks())))
    if not len(gone):
        return write
    order = pa.array(np.full(len(gone), WRITER_ORDER, dtype=np.int64))
    deletes = pa.table({KEY: gone, ORDER_FIELD: order})
    if write.deletes is not None:
        deletes = pa.concat_tables([deletes, write.deletes]).sort_by(KEY)
    return replace(write, deletes=deletes)
