"""Every stored version of record keys, deletes that are kept beside a table's files among them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.tombstones import INSTANT, Tombstones, folder
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.definition.merging import WRITER_ORDER
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.stored_rows import aligned
from hudilake.read.versions import GroupFiles, read_versions
from hudilake.table.table import HudiTable


def stored_versions(
    table: HudiTable, files: GroupFiles, keys: pa.Array | None = None, columns: Sequence[str] = ()
) -> pa.Table:
    """As ``read_versions``; of a table whose base files forget deletes, the tombstones are versions too. Their file is
    the folder of the file group's tombstones."""
    versions = read_versions(table, files, keys, columns)
    dead = Tombstones(table.storage, table.timeline).counted(files.file_id) if table.config.kind.copies else None
    if dead is None:
        return versions
    if keys is not None:
        dead = dead.filter(pc.is_in(dead.column(RECORD_KEY_FIELD), keys))
    held = ORDER_FIELD in dead.column_names
    orders = dead.column(ORDER_FIELD) if held else pa.nulls(len(dead), pa.int64())
    rows = pa.table(
        {
            RECORD_KEY_FIELD: dead.column(RECORD_KEY_FIELD),
            "ordering": pc.fill_null(orders, WRITER_ORDER),
            "instant": dead.column(INSTANT),
            "file": pa.repeat(pa.scalar(folder(files.file_id)), len(dead)),
            "deleted": pa.repeat(pa.scalar(True), len(dead)),
        }
    )
    return pa.concat_tables([versions, aligned(rows, versions.schema)])
