"""The empty base file that every file group of an indexed table begins with.

If hudi-rs 0.5.0 lists files by the metadata table, it finds only file groups with a base file: rows of other groups are
silently missing (``file_groups_from_files_partition_records``, measured). So the commit that creates a file group
also writes a base file without rows, under its own instant: the commit's log file is in the slice of that base file,
because it completes later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from hudilake.format.definition.schema import META_FIELDS, avro_schema
from hudilake.format.files.base_file import encode_base_file
from hudilake.format.files.column_stats import ColumnRange, column_ranges
from hudilake.format.files.names import BaseFileName, in_partition, marker_path, parse_base_name, parse_log_name
from hudilake.metadata.records.delta import AddedFile, FileKey, Group
from hudilake.storage.base import Storage


@dataclass(frozen=True, slots=True)
class EmptyFile:
    """The bytes of an empty base file, the same for each file group, and the statistics of its columns."""

    data: bytes
    ranges: tuple[ColumnRange, ...]


@lru_cache(maxsize=64)  # commits write them under the table's lock
def empty_file(schema: pa.Schema, table_name: str, columns: tuple[str, ...]) -> EmptyFile:
    """The empty base file of a table's file groups.

    Args:
        schema: the table's columns, without the meta fields.
        table_name: names the Avro record.
        columns: the indexed columns.
    """
    rows = pa.schema([*(pa.field(field, pa.string()) for field in META_FIELDS), *schema]).empty_table()
    data = encode_base_file(rows, avro_schema(schema, table_name, with_meta=True))
    return EmptyFile(data, column_ranges(rows, columns))


def write_first_base(storage: Storage, group: Group, instant: str, empty: EmptyFile) -> AddedFile:
    """Write a file group's empty base file and its marker; the bytes depend on the arguments only.

    Args:
        storage: rooted at the data table.
        group: partition path and file id.
        instant: the commit that creates the group.
        empty: the file.
    """
    path, file_id = group
    name = str(BaseFileName(file_id, instant))
    storage.write(marker_path(instant, path, name), b"")
    storage.write(in_partition(path, name), empty.data)
    return AddedFile(path, name, len(empty.data), empty.ranges)


def groups_without_base(files: Iterable[FileKey]) -> dict[Group, str]:
    """The file groups that have log files and no base file, with the instant of their oldest log file.

    Args:
        files: base and log files as (partition path, bare name); others are left out.
    """
    oldest: dict[Group, str] = {}
    based: set[Group] = set()
    for path, text in files:
        if (log := parse_log_name(text)) is not None:
            group = path, log.file_id
            oldest[group] = min(log.instant, oldest.get(group, log.instant))
        elif (base := parse_base_name(text)) is not None:
            based.add((path, base.file_id))
    return {group: instant for group, instant in oldest.items() if group not in based}
