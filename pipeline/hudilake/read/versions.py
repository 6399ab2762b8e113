"""Every stored version of record keys: the rows and deletes of all files of a file group that cleaning has kept.

A reader merges the newest file slice and shows one row for a key. Here nothing is merged, and older slices count too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.definition.bucketing import bucket_or_none
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.base_file import read_base_file
from hudilake.format.files.data_block import decode_data_block
from hudilake.format.files.delete_block import decode_deletes
from hudilake.format.files.log_file import BlockType, iter_blocks
from hudilake.format.files.log_rows import without_row
from hudilake.format.files.names import parse_base_name, parse_log_name
from hudilake.format.files.stored_rows import aligned
from hudilake.format.files.view import BaseFile, FileSlice, LogFile, slices_of_partition
from hudilake.read.index import TableIndex
from hudilake.read.listing import Listing
from hudilake.read.window import COMMIT_TIME_FIELD
from hudilake.storage.base import FileInfo
from hudilake.table.table import HudiTable

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
    table: HudiTable,
    buckets: Callable[[str], Collection[int]] | None = None,
    partitions: Sequence[str] | None = None,
) -> list[GroupFiles]:
    """The file groups of some buckets in some partitions; None for all. Lists files and reads none of them.

    ``buckets``: the wanted buckets of a partition path.

    Raises CorruptDataError, StorageError.
    """
    table.config.refuse_older("the history of a row")
    kept = table.config.metadata_partitions
    index = TableIndex(table.storage, kept, table.timeline) if kept else None
    listing = Listing.of(table.storage, index, table.timeline)
    paths = [path for path in listing.partitions() if partitions is None or path in partitions]
    return [
        _group(table, piece, infos)
        for path, infos in listing.files(paths).items()
        for piece in slices_of_partition(path, infos, table.timeline)
        if buckets is None or bucket_or_none(table.config.bucketing, path, piece.file_id) in buckets(path)
    ]


def still_there(table: HudiTable, files: GroupFiles) -> GroupFiles:
    """Those of the files that are on storage: a clean that has died may have deleted some that are still listed. Raises
    StorageError."""
    bases = tuple(file for file in files.base_files if table.storage.stat(file.path))
    logs = tuple(file for file in files.log_files if table.storage.stat(file.path))
    return replace(files, base_files=bases, log_files=logs)


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
        columns: value columns of the table's newest schema; a file that lacks one gives null, but a partial row has
            the value of the version that it changed.

    Returns n rows of VERSION_FIELDS and the columns. A row in a base file has the instant of the commit that wrote the
    row, in a log file that of its block. Raises CorruptDataError, UnsupportedError, StorageError.
    """
    values = pa.schema([table.schema.field(name) for name in columns])
    schema = pa.schema([*VERSION_FIELDS, *values])
    parts = [_Part(schema.empty_table(), 0)]
    for part in _parts(table, files, values):
        rows = part.rows if keys is None else part.rows.filter(pc.is_in(part.rows.column(RECORD_KEY_FIELD), keys))
        parts.append(replace(part, rows=aligned(rows, schema)))
    return _completed(parts)


@dataclass(frozen=True)
class _Part:
    """Versions in one file or block: its file slice by number, and the value columns that partial rows lack."""

    rows: pa.Table
    slice: int
    lacking: frozenset[str] = frozenset()


def _completed(parts: list[_Part]) -> pa.Table:
    """The versions of all parts; a partial row gets the columns that it lacks from the version that it changed."""
    versions = pa.concat_tables([part.rows for part in parts])
    lacking = frozenset[str]().union(*(part.lacking for part in parts))
    if not lacking:
        return versions
    keys = np.asarray(versions.column(RECORD_KEY_FIELD).combine_chunks().dictionary_encode().indices.to_numpy())
    sizes = [part.rows.num_rows for part in parts]
    order = np.lexsort((np.repeat([part.slice for part in parts], sizes), keys))
    for name in sorted(lacking):
        lacks = np.repeat([name in part.lacking for part in parts], sizes)[order]
        source = np.maximum.accumulate(np.where(lacks, -1, np.arange(len(order))))
        if (source < 0).any() or (keys[order[source]] != keys[order]).any():
            raise without_row(versions.column(RECORD_KEY_FIELD)[int(order[np.flatnonzero(lacks)[0]])].as_py())
        places = np.empty_like(order)
        places[order] = order[source]
        filled = versions.column(name).take(pa.array(places))
        versions = versions.set_column(versions.schema.get_field_index(name), versions.schema.field(name), filled)
    return versions


def _parts(table: HudiTable, files: GroupFiles, values: pa.Schema) -> Iterator[_Part]:
    order = table.config.ordering_field
    wanted = list(dict.fromkeys([RECORD_KEY_FIELD, COMMIT_TIME_FIELD, *([order] if order else []), *values.names]))
    for number, base in enumerate(files.base_files, 1):
        rows = read_base_file(table.storage, base.path, wanted, base.size)
        yield _Part(_rows(rows, values, order, base.path, None), number)
    begun = [base.name.instant for base in files.base_files]
    for log in files.log_files:
        number = bisect_right(begun, table.timeline.completion_time(log.name.instant) or "")
        for block in iter_blocks(table.storage.read(log.path), log.path):
            if block.instant is None or not table.timeline.is_completed(block.instant):
                continue
            if block.block_type is BlockType.DELETE:
                deletes = decode_deletes(block.content, log.path)
                yield _Part(_named(deletes, log.path, block.instant, deleted=True), number)
            else:
                rows = decode_data_block(block, wanted, log.path)
                lacking = frozenset(values.names) - set(rows.column_names) if block.is_partial else frozenset[str]()
                yield _Part(_rows(rows, values, order, log.path, block.instant), number, lacking)


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
