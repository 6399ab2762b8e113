"""The entries that a commit of the data table adds to the metadata table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from hudilake.errors import UnsupportedError
from hudilake.format.files.file_group_write import KeyChanges, WriteResult
from hudilake.metadata.first_base import empty_file, write_first_base
from hudilake.metadata.records.delta import AddedFile
from hudilake.metadata.table import MetadataTable
from hudilake.storage.at_once import at_once


def added_files(
    index: MetadataTable, table_name: str, instant: str, results: Sequence[WriteResult], columns: pa.Schema
) -> tuple[AddedFile, ...]:
    """The written files, and an empty base file, written here, for each new file group without a base file.

    Args:
        index: the table's metadata table.
        table_name: the data table's.
        instant: the commit's requested time.
        results: its log and base files.
        columns: the table's columns as of this commit.
    """
    based = {(r.partition_path, r.file_id) for r in results if r.is_base}
    new = sorted(index.new_groups((r.partition_path, r.file_name) for r in results) - based)
    added = tuple(map(_added, results))
    if not new:
        return added
    empty = empty_file(columns, table_name, tuple(index.columns_under(columns)))
    first = at_once([partial(write_first_base, index.data_storage, group, instant, empty) for group in new])
    return (*first, *added)


def listed_change_logs(results: Sequence[WriteResult]) -> tuple[AddedFile, ...]:
    """The change logs beside the written files, which the metadata table lists."""
    logs = [(result.partition_path, result.change_log) for result in results]
    return tuple(AddedFile(path, *log) for path, log in logs if log is not None)


def _added(result: WriteResult) -> AddedFile:
    return AddedFile(
        result.partition_path, result.file_name, result.size_bytes, result.ranges, result.bloom, result.lacking
    )


def changed_keys(instant: str, results: Sequence[WriteResult]) -> tuple[KeyChanges, ...]:
    """What a commit changes in the record keys of its file groups, for the record index.

    Raises UnsupportedError if a written file does not say it.
    """
    known = tuple(result.keys for result in results if result.keys is not None)
    if len(known) < len(results):
        raise UnsupportedError(
            "a commit does not say which record keys it adds and deletes: the record index would be wrong",
            do_next="report this error: every writer of a table with a record index must say so",
            instant=instant,
        )
    return known
