"""Every stored version of record keys: the rows and deletes of all files of a file group that cleaning has kept.

A reader merges the newest file slice and shows one row for a key. Here nothing is merged, and older slices count too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import UnsupportedError
from pipeline.hudi.definition.schema import RECORD_KEY_FIELD
from pipeline.hudi.files.base_file import read_base_file
from pipeline.hudi.files.data_block import decode_data_block
from pipeline.hudi.files.delete_block import decode_deletes
from pipeline.hudi.files.log_file import BlockType, iter_blocks
from pipeline.hudi.files.names import parse_base_name, parse_log_name
from pipeline.hudi.files.stored_rows import aligned
from pipeline.hudi.files.view import BaseFile, FileSlice, LogFile, slices_of_partition
from pipeline.hudi.read.index import TableIndex
from pipeline.hudi.read.listing import Listing
from pipeline.hudi.read.window import COMMIT_TIME_FIELD
from pipeline.hudi.table.table import HudiTable
from pipeline.storage.base import FileInfo

#: Columns of ``read_versions`` before the value columns. ``ordering`` is null for a delete of all versions before it.
VERSION_FIELDS: tuple[pa.Field, ...] = (
    pa.field(RECORD_KEY_FIELD, pa.string()),
    pa.field("ordering", pa.int64()),
    pa.field("instant", pa.string()),
    pa.field("file", pa.string()),
    pa.field("deleted", pa.bool_()),
)
VERSION_NAMES = tuple(field.name for field in VERSION_FIELDS)


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """The committed files of one file group on storage, of all file slices. ``newest``: the slice that readers see."""

    partition_path: str
    file_id: str
    base_files: tuple[BaseFile, ...]
    log_files: tuple[LogFile, ...]
    newest: FileSlice

    @property
    def paths(self) -> tuple[str, ...]:
        """All files, relative to the table's root."""
        return (*(file.path for file in self.base_files), *(file.path for file in self.log_files))

    @property
    def newest_paths(self) -> frozenset[str]:
        """The files of the newest slice."""
        base = self.newest.base_file
        return frozenset([file.path for file in self.newest.log_files] + ([base.path] if base is not None else []))


def group_files(
    table: HudiTable, buckets: set[int] | None = None, partitions: Sequence[str] | None = None
) -> list[GroupFiles]:
    """The file groups of some buckets in some partitions; None for all. Lists files and reads none of them.

    Raises UnsupportedError for a table with replaced file groups, CorruptDataError, StorageError.
    """
    kept = table.config.metadata_partitions
    index = TableIndex(table.storage, kept, table.timeline) if kept else None
    listing = Listing.of(table.storage, index, table.timeline)
    paths = [path for path in listing.partitions() if partitions is None or path in partitions]
    return [
        _group(table, piece, infos)
        for path, infos in listing.files(paths).items()
        for piece in slices_of_partition(path, infos, table.timeline)
        if buckets is None or piece.bucket in buckets
    ]


def _group(table: HudiTable, newest: FileSlice, infos: Sequence[FileInfo]) -> GroupFiles:
    path, bases, logs = newest.partition_path, [], []
    for info in infos:
        name = info.path.rpartition("/")[2]
        base, log = parse_base_name(name), parse_log_name(name)
        if base is not None and base.file_id == newest.file_id and table.timeline.is_completed(base.instant):
            bases.append(BaseFile(path, base, info.size))
        elif log is not None and log.file_id == newest.file_id and table.timeline.is_completed(log.instant):
            logs.append(LogFile(path, log, info.size))
    bases.sort(key=lambda file: file.name.instant)
    logs.sort(key=lambda file: file.name.order)
    return GroupFiles(path, newest.file_id, tuple(bases), tuple(logs), newest)


def read_versions(
    table: HudiTable, files: GroupFiles, keys: pa.Array | None = None, columns: Sequence[str] = ()
) -> pa.Table:
    """The versions of some record keys in a file group's files: base files first, each in its own order.

    Args:
        table: open.
        files: of one file group.
        keys: string array; None for all keys.
        columns: value columns of the table's newest schema; a file that lacks one gives null.

    Returns n rows of VERSION_FIELDS and the columns. A row in a base file has the instant of the commit that wrote the
    row, in a log file that of its block. Raises CorruptDataError, UnsupportedError, StorageError.
    """
    values = pa.schema([table.schema.field(name) for name in columns])
    schema = pa.schema([*VERSION_FIELDS, *values])
    parts = [schema.empty_table()]
    for part in _parts(table, files, values):
        chosen = part if keys is None else part.filter(pc.is_in(part.column(RECORD_KEY_FIELD), keys))
        parts.append(aligned(chosen, schema))
    return pa.concat_tables(parts)


def _parts(table: HudiTable, files: GroupFiles, values: pa.Schema) -> Iterator[pa.Table]:
    order = table.config.ordering_field
    wanted = list(dict.fromkeys([RECORD_KEY_FIELD, COMMIT_TIME_FIELD, *([order] if order else []), *values.names]))
    for base in files.base_files:
        rows = read_base_file(table.storage, base.path, wanted, base.size)
        yield _rows(rows, values, order, base.path, None)
    for log in files.log_files:
        for block in iter_blocks(table.storage.read(log.path), log.path):
            if block.instant is None or not table.timeline.is_completed(block.instant):
                continue
            if block.is_partial:
                raise UnsupportedError(
                    "a log file has partial rows: the versions of a row are not stored as whole rows",
                    do_next="read the table as of the instants that changed the row (as_of)",
                    path=log.path,
                )
            if block.block_type is BlockType.DELETE:
                yield _named(decode_deletes(block.content, log.path), log.path, block.instant, deleted=True)
            else:
                rows = decode_data_block(block, wanted, log.path)
                yield _rows(rows, values, order, log.path, block.instant)


def _rows(rows: pa.Table, values: pa.Schema, order: str, path: str, instant: str | None) -> pa.Table:
    ordering = rows.column(order) if order else pa.nulls(len(rows), pa.int64())
    kept = rows.select([RECORD_KEY_FIELD, *(n for n in values.names if n in rows.column_names)])
    kept = kept.append_column(pa.field("ordering", ordering.type), ordering)
    if instant is not None:
        return _named(kept, path, instant, deleted=False)
    instants = rows.column(COMMIT_TIME_FIELD).cast(pa.string())
    return _named(kept, path, "", deleted=False).drop_columns(["instant"]).append_column("instant", instants)


def _named(rows: pa.Table, path: str, instant: str, *, deleted: bool) -> pa.Table:
    count = len(rows)
    for name, value in (("instant", instant), ("file", path), ("deleted", deleted)):
        rows = rows.append_column(name, pa.repeat(pa.scalar(value), count))
    return rows
