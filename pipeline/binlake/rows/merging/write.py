"""Writes what events made of a file group: the orders of deletes that its files forget, then its files."""

from __future__ import annotations

import pyarrow as pa

from binlake.rows.merging.deleted_keys import DeletedKeys
from binlake.rows.merging.states import MergeResult
from binlake.rows.merging.tombstones import write_tombstones
from hudilake.format.files.file_group_write import FileGroupWrite, WriteResult
from hudilake.storage.base import Storage
from hudilake.write.group_writer import NO_KEYS, GroupWriter


def write_merged(storage: Storage, writer: GroupWriter, merged: MergeResult) -> list[WriteResult]:
    """Write the file group's files for a commit; no file if no row changes. Errors as ``GroupWriter.write``.

    Args:
        storage: the table's root.
        writer: of the commit.
        merged: the write.
    """
    if merged.tombstones is not None:
        write_tombstones(storage, merged.write.file_id, writer.context.instant, merged.tombstones)
    return write_group(storage, writer, merged.write)


def write_group(storage: Storage, writer: GroupWriter, group: FileGroupWrite) -> list[WriteResult]:
    """Write rows of a file group that no merger has made. Arguments and errors as ``write_merged``."""
    _keep_deletes(storage, writer, group)
    return writer.write(storage, group)


def write_anew(
    storage: Storage, writer: GroupWriter, group: FileGroupWrite, gone: pa.Array = NO_KEYS
) -> list[WriteResult]:
    """Write all rows that a file group shall have. ``gone`` as ``GroupWriter.write_anew``, other arguments as
    ``write_merged``, errors as ``GroupWriter.write``."""
    _keep_deletes(storage, writer, group)
    return writer.write_anew(storage, group, gone)


def _keep_deletes(storage: Storage, writer: GroupWriter, group: FileGroupWrite) -> None:
    if writer.keeps_deletes and group.deletes is not None and group.deletes.num_rows:
        DeletedKeys.write(storage, group.file_id, writer.context.instant, group.deletes)
