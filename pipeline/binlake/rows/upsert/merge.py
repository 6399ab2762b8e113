"""Merges the parcels of one file group into the rows of its log file."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import Op
from binlake.rows.upsert.collapse import codes_of, newest
from binlake.rows.upsert.route import KEY, MOVED_AWAY, ORDER_COLUMNS
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite

#: (partition path, bucket): the place of a file group in its table.
Place = tuple[str, int]


def merge(place: Place, file_id: str, rows: pa.Table) -> tuple[FileGroupWrite, int]:
    """The newest change of every key in key order, and how many records were superseded.

    Args:
        place: partition path and bucket.
        file_id: of the file group.
        rows: n rows as parcels hold them (record key, value columns, ORDER_COLUMNS), n > 0.
    """
    codes, size = codes_of(rows.column(KEY).combine_chunks())
    if size == len(rows):  # as one task has left them
        return group_write(place[0], file_id, rows), 0
    kept = rows.take(pa.array(newest(rows, codes, size)))
    return group_write(place[0], file_id, kept), records(rows) - records(kept)


def group_write(partition_path: str, file_id: str, newest_rows: pa.Table) -> FileGroupWrite:
    """The rows of a file group as upserts and deletes in key order.

    Args:
        partition_path: of the file group.
        file_id: its id.
        newest_rows: n rows as parcels hold them, no key twice, n > 0.
    """
    kept = newest_rows.take(pc.sort_indices(newest_rows.column(KEY)))
    deleted = pc.not_equal(kept.column("__op"), int(Op.UPSERT))
    values = kept.drop_columns(list(ORDER_COLUMNS)).append_column(
        pa.field(ORDER_FIELD, pa.int64()), kept.column("__order").cast(pa.int64())
    )
    has_deletes = pc.any(deleted).as_py()
    upserts = values.filter(pc.invert(deleted)) if has_deletes else values
    deletes = values.select([KEY, ORDER_FIELD]).filter(deleted) if has_deletes else None
    return FileGroupWrite(partition_path, file_id, upserts if len(upserts) else None, deletes)


def records(rows: pa.Table) -> int:
    """How many of the rows are records of their own, without the deletes that moves and truncates add."""
    return len(rows) - (pc.sum(pc.equal(rows.column("__op"), MOVED_AWAY)).as_py() or 0)
