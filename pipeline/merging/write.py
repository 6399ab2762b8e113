"""Writes what events made of a file group: its tombstones, then its files."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.hudi.files.file_group_write import WriteContext, WriteResult, write_file_group
from pipeline.hudi.files.first_write import write_new_file_group
from pipeline.merging.states import Merged
from pipeline.merging.tombstones import write_tombstones
from pipeline.storage.base import Storage


def write_merged(storage: Storage, context: WriteContext, merged: Merged, *, first: bool) -> Sequence[WriteResult]:
    """Write the file group's files for a commit; no file if no row changes.

    Args:
        storage: the table's root.
        context: of the commit.
        merged: the write.
        first: whether the file group does not exist yet.

    Errors as ``write_file_group``.
    """
    group = merged.write
    if merged.tombstones is not None:
        write_tombstones(storage, group.file_id, context.instant, merged.tombstones)
    if group.upserts is None and group.deletes is None and not group.partials:
        return []
    if first and context.base_from_rows is not None:
        return write_new_file_group(storage, context, group)
    return [write_file_group(storage, context, group)]
