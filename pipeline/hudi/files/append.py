"""Rows of an append table: they have no key, so they go to the end of any open file group.

A file group is open while its files are small. A commit of a writer adds one file to a file group: a log file, or the
base file that a new file group begins with. Nothing is looked up, and no row is merged with another.

Names and bytes depend on the commit, the writer's number and the rows alone, so a retried or speculative task
overwrites its own files with the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.hudi.definition.new_file_id import new_file_id
from pipeline.hudi.definition.schema import RECORD_KEY_FIELD
from pipeline.hudi.files.base_file import base_footer, naming_file, rows_at_once
from pipeline.hudi.files.column_stats import column_ranges
from pipeline.hudi.files.file_group_write import FileGroupWrite, WriteContext, WriteResult, write_file_group
from pipeline.hudi.files.names import STEADY_TOKEN, BaseFileName, in_partition, marker_path, parse_log_name
from pipeline.hudi.files.parquet_file import parquet_writer
from pipeline.hudi.files.stored_rows import stored_rows
from pipeline.hudi.files.view import FileSlice
from pipeline.policies import FileSizePolicy
from pipeline.storage.base import Storage

#: ``FileGroupWrite.bucket`` of the file groups of append tables.
NO_BUCKET = -3
_FILE_NAME = "_hoodie_file_name"
_ROW_GROUP_ROWS, _ROW_GROUP_BYTES = 250_000, 64 << 20
#: How many decoded bytes make one stored byte at least: a piece of so many times the room of a file group fits in it.
_LEAST_COMPRESSION = 2


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """A file group that takes further rows. ``size``: the bytes of its newest slice."""

    file_id: str
    size: int


def open_groups(slices: Iterable[FileSlice], sizes: FileSizePolicy) -> dict[str, tuple[OpenGroup, ...]]:
    """The open file groups by partition path, the largest first, so that they become full one after the other."""
    found: dict[str, list[OpenGroup]] = {}
    for piece in slices:
        size = piece.base_size + piece.log_size
        if size < sizes.small_bytes:
            found.setdefault(piece.partition_path, []).append(OpenGroup(piece.file_id, size))
    return {path: tuple(sorted(groups, key=lambda g: (-g.size, g.file_id))) for path, groups in found.items()}


def rows_never_merge(log_files: Iterable[str]) -> bool:
    """Whether an append table's slice with these log files (bare names) has every row that was written to it.

    Log files of binlake hold added rows only. Hudi Spark can update and delete rows by their generated keys; its log
    files have another write token.
    """
    parsed = [parse_log_name(name) for name in log_files]
    return all(name is not None and name.write_token == STEADY_TOKEN for name in parsed)


def append_keys(instant: str, number: int, first: int, count: int) -> pa.Array:
    """Record keys as Hudi generates them for rows without a key: ``<instant>_<writer>_<row>``, string array.

    Args:
        instant: of the commit.
        number: of the writer, unique in the commit.
        first: the writer's number of the first row; it counts over all partitions.
        count: how many.
    """
    numbers = pa.array(np.arange(first, first + count, dtype=np.int64)).cast(pa.string())
    return pc.binary_join_element_wise(pa.scalar(f"{instant}_{number}_"), numbers, "")


@dataclass(frozen=True)
class AppendedRows:
    """Rows of one writer for one partition. ``rows``: the record key and columns of the table."""

    number: int
    partition_path: str
    rows: pa.Table


@dataclass(frozen=True)
class AppendWriter:
    """Writes rows of one commit of an append table. It can be pickled; several writers of a commit have numbers.

    Args:
        context: of the commit.
        sizes: how large files become.
        groups: the open file groups by partition path; writer n takes the n-th.
    """

    context: WriteContext
    sizes: FileSizePolicy
    groups: Mapping[str, tuple[OpenGroup, ...]] = field(default_factory=dict)

    def keyed(self, number: int, by_path: Mapping[str, pa.Table]) -> list[AppendedRows]:
        """The rows of one writer with their record keys.

        Args:
            number: of the writer, unique in the commit.
            by_path: rows by partition path: columns of the table.
        """
        parts, first = [], 0
        for path, rows in by_path.items():
            keys = append_keys(self.context.instant, number, first, rows.num_rows)
            keyed = rows.add_column(0, pa.field(RECORD_KEY_FIELD, pa.string()), keys)
            parts.append(AppendedRows(number, path, keyed))
            first += rows.num_rows
        return parts

    def write(self, storage: Storage, part: AppendedRows) -> list[WriteResult]:
        """Write rows of one partition: to the writer's open file group as far as they fit, and to new ones.

        Args:
            storage: the table's root.
            part: n rows; no file for none.

        Errors as ``write_file_group``.
        """
        return list(self._written(storage, part.number, part.partition_path, part.rows))

    def group_of(self, number: int, path: str) -> OpenGroup | None:
        """The open file group that a writer takes in a partition; None if it begins a new one."""
        groups = self.groups.get(path, ())
        return groups[number] if number < len(groups) else None

    def _written(self, storage: Storage, number: int, path: str, rows: pa.Table) -> Iterator[WriteResult]:
        held = self.group_of(number, path)
        at = piece = 0
        while at < rows.num_rows:
            room = self.sizes.target_bytes - (held.size if held is not None else 0)
            taken = rows.slice(at, rows_at_once(rows, rows.num_rows, max(room, 1) * _LEAST_COMPRESSION))
            if held is not None:
                yield self._log(storage, FileGroupWrite(path, NO_BUCKET, held.file_id, taken, only_inserts=True))
            else:
                name = new_file_id(self.context.table_name, self.context.instant, path, f"{number}.{piece}")
                yield self._base(storage, FileGroupWrite(path, NO_BUCKET, name, taken, only_inserts=True))
            held, at, piece = None, at + taken.num_rows, piece + 1

    def _log(self, storage: Storage, group: FileGroupWrite) -> WriteResult:
        written = write_file_group(storage, self.context, group)
        return replace(written, num_inserts=written.num_upserts)

    def _base(self, storage: Storage, group: FileGroupWrite) -> WriteResult:
        context, name = self.context, str(BaseFileName(group.file_id, self.context.instant))
        assert group.upserts is not None
        plain = stored_rows(group.upserts, context.arrow_schema, context.instant, group.partition_path, group.file_id)
        rows = naming_file(plain, name, plain.schema.field(_FILE_NAME))
        low_high = pc.min_max(rows.column(RECORD_KEY_FIELD)).as_py()
        span = low_high["min"], low_high["max"]
        data = _encoded(rows, context, base_footer(context.avro_schema_json, span, None))
        storage.write(marker_path(context.instant, group.partition_path, name), b"")
        storage.write(in_partition(group.partition_path, name), data)
        return WriteResult(
            partition_path=group.partition_path,
            file_id=group.file_id,
            file_name=name,
            size_bytes=len(data),
            num_upserts=rows.num_rows,
            num_deletes=0,
            min_record_key=span[0],
            max_record_key=span[1],
            ranges=None if context.indexed_columns is None else column_ranges(rows, context.indexed_columns),
        )


def _encoded(rows: pa.Table, context: WriteContext, footer: dict[str, str]) -> bytes:
    sink = pa.BufferOutputStream()
    with parquet_writer(sink, rows.schema, context.compression, context.compression_level) as writer:
        writer.write_table(rows, row_group_size=rows_at_once(rows, _ROW_GROUP_ROWS, _ROW_GROUP_BYTES))
        writer.add_key_value_metadata(footer)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
