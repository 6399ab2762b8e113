"""A task's write for one file group: one log file with the upserts, then the deletes, of this commit.

The file's name and bytes depend on the commit and the rows alone, so a retried or speculative task overwrites its own
file with the same bytes. The marker is written first, so that a rollback finds the file of a dead task.

Column statistics for the metadata table come from the Arrow columns as they are written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import UnsupportedError
from pipeline.hudi.definition.schema import META_FIELDS, RECORD_KEY_FIELD
from pipeline.hudi.files.column_stats import ColumnRange, column_ranges
from pipeline.hudi.files.delete_block import encode_deletes
from pipeline.hudi.files.log_file import encode_data_block, encode_delete_block
from pipeline.hudi.files.names import LogFileName, in_partition, marker_path, parse_base_name, parse_log_name
from pipeline.hudi.files.parquet_file import encode_parquet
from pipeline.hudi.timeline.commit_metadata import WriteStat
from pipeline.storage.base import Storage


@dataclass(frozen=True)
class WriteContext:
    """The context that all file groups of a commit share. ``avro_schema_json`` has the meta fields, ``arrow_schema``
    has not.

    ``indexed_columns``: whose statistics the metadata table keeps; None for a table without column statistics.
    ``base_from_rows``: a new file group with at least so many upserts begins with a base file that holds them; None for
    log files only.
    """

    table_name: str
    instant: str
    avro_schema_json: str
    arrow_schema: pa.Schema
    ordering_field: str
    compression: str = "zstd"
    compression_level: int | None = 1
    indexed_columns: tuple[str, ...] | None = None
    base_from_rows: int | None = None


@dataclass(frozen=True)
class FileGroupWrite:
    """The rows of one commit for one file group; keys without nulls, no key twice.

    ``upserts``: ``_hoodie_record_key`` (string) and table columns, the ordering column among them, sorted by key.
    ``deletes``: ``_hoodie_record_key`` and the ordering column (int64), sorted by key.
    """

    partition_path: str
    bucket: int
    file_id: str
    upserts: pa.Table | None = None
    deletes: pa.Table | None = None


@dataclass(frozen=True)
class WriteResult:
    """The commit's data about a written log or base file; nothing is read back.

    ``ranges``: statistics of the indexed columns; None for a table without column statistics. ``bloom``: of a base
    file, the filter of its record keys as (kind, base64 text). ``columns``: those that the file changes in rows that
    live; None for whole rows. ``inserts``: whether it may add rows.
    """

    partition_path: str
    file_id: str
    file_name: str
    size_bytes: int
    num_upserts: int
    num_deletes: int
    min_record_key: str
    max_record_key: str
    ranges: tuple[ColumnRange, ...] | None = None
    bloom: tuple[str, str] | None = None
    columns: frozenset[str] | None = None
    inserts: bool = True

    @property
    def is_base(self) -> bool:
        """Whether it is a base file."""
        return parse_base_name(self.file_name) is not None

    @property
    def path(self) -> str:
        """The file, relative to the table's root."""
        return in_partition(self.partition_path, self.file_name)

    def stat(self, instant: str) -> WriteStat:
        """Its entry in the commit."""
        if self.is_base:
            return WriteStat(
                partition_path=self.partition_path,
                file_id=self.file_id,
                path=self.path,
                prev_commit="null",
                num_writes=self.num_upserts,
                num_inserts=self.num_upserts,
                file_size=self.size_bytes,
            )
        return WriteStat(
            partition_path=self.partition_path,
            file_id=self.file_id,
            path=self.path,
            prev_commit=instant,
            num_writes=self.num_upserts,
            num_update_writes=self.num_upserts,
            num_deletes=self.num_deletes,
            file_size=self.size_bytes,
            log_version=1,
            log_files=(self.file_name,),
        )


def write_file_group(storage: Storage, context: WriteContext, group: FileGroupWrite) -> WriteResult:
    """Write the group's marker and log file.

    Raises UnsupportedError for columns that the schema lacks or values it cannot hold, StorageError.
    """
    rows = data_rows(context, group)
    data = _encode(context, group, rows)
    name = str(LogFileName(group.file_id, context.instant))
    storage.write(marker_path(context.instant, group.partition_path, name), b"")
    storage.write(in_partition(group.partition_path, name), data)
    low, high = _key_range(group)
    return WriteResult(
        partition_path=group.partition_path,
        file_id=group.file_id,
        file_name=name,
        size_bytes=len(data),
        num_upserts=group.upserts.num_rows if group.upserts is not None else 0,
        num_deletes=group.deletes.num_rows if group.deletes is not None else 0,
        min_record_key=low,
        max_record_key=high,
        ranges=None if context.indexed_columns is None else column_ranges(rows, context.indexed_columns),
    )


def write_stats(instant: str, results: Iterable[WriteResult]) -> tuple[WriteStat, ...]:
    """A commit's entries for its files. Raises UnsupportedError for duplicate names and files of other instants."""
    stats = tuple(result.stat(instant) for result in results)
    names = [parse_log_name(stat.file_name) or parse_base_name(stat.file_name) for stat in stats]
    if len({stat.path for stat in stats}) != len(stats) or any(n is None or n.instant != instant for n in names):
        raise UnsupportedError(
            "two files have the same name, or a file has another instant in its name: rows would be lost",
            do_next="report this error with the commit's log: the tasks of one commit must not overlap",
            instant=instant,
        )
    return stats


def encode_log_file(context: WriteContext, group: FileGroupWrite) -> bytes:
    """The bytes of the group's log file: a data block for its upserts, then a delete block for its deletes."""
    return _encode(context, group, data_rows(context, group))


def data_rows(context: WriteContext, group: FileGroupWrite) -> pa.Table | None:
    """The upserts as they are stored, meta fields first; None where there are none."""
    if group.upserts is None or not group.upserts.num_rows:
        return None
    return with_meta(context, group, group.upserts)


def _encode(context: WriteContext, group: FileGroupWrite, rows: pa.Table | None) -> bytes:
    blocks = []
    if rows is not None:
        parquet = encode_parquet(rows, context.compression, context.compression_level)
        blocks.append(encode_data_block(context.instant, context.avro_schema_json, parquet))
    if group.deletes is not None and group.deletes.num_rows:
        keys = _one_chunk(group.deletes.column(RECORD_KEY_FIELD))
        ordering = _one_chunk(group.deletes.column(context.ordering_field))
        content = encode_deletes(keys, ordering, group.partition_path)
        blocks.append(encode_delete_block(context.instant, context.avro_schema_json, content))
    if not blocks:
        raise UnsupportedError(
            "a file group without upserts and deletes cannot be written",
            do_next="leave the file group out of the commit",
            file_group=group.file_id,
        )
    return b"".join(blocks)


def with_meta(context: WriteContext, group: FileGroupWrite, upserts: pa.Table) -> pa.Table:
    """The upserts as they are stored, meta fields first. Raises as ``aligned_columns``."""
    count = upserts.num_rows
    meta = [
        _constant(context.instant, count),
        sequence_numbers(context.instant, group.file_id, count),
        upserts.column(RECORD_KEY_FIELD),
        _constant(group.partition_path, count),
        _constant(group.file_id, count),
    ]
    values = aligned_columns(upserts, context.arrow_schema)
    return pa.Table.from_arrays(meta + values, schema=_file_schema(context.arrow_schema))


def aligned_columns(table: pa.Table, schema: pa.Schema) -> list[pa.Array | pa.ChunkedArray]:
    """The table's columns in the schema's order and types; columns it lacks are null.

    Raises UnsupportedError for a column that the schema lacks, a value that its type cannot hold exactly, or nulls
    where the schema allows none.
    """
    names = set(table.column_names)
    if unknown := names - set(schema.names) - set(META_FIELDS):
        raise UnsupportedError(
            f"columns {sorted(unknown)} are not in the table's schema", do_next="commit a schema that has them first"
        )
    return [_aligned(table, field, field.name in names) for field in schema]


def _aligned(table: pa.Table, field: pa.Field, present: bool) -> pa.Array | pa.ChunkedArray:
    column = table.column(field.name) if present else pa.nulls(table.num_rows, field.type)
    if column.type != field.type:
        try:
            column = column.cast(field.type)
        except pa.ArrowException as error:
            raise UnsupportedError(
                f"column {field.name} cannot be stored as {field.type}: {error}",
                do_next="correct the value, or widen the column's type in the table",
            ) from error
    if not field.nullable and column.null_count:
        raise UnsupportedError(
            f"column {field.name} has nulls, which the table's schema forbids",
            do_next="give the column values, or make it nullable in the table",
        )
    return column


def sequence_numbers(instant: str, file_id: str, count: int) -> pa.Array:
    """``_hoodie_commit_seqno`` of ``count`` rows: ``<instant>_<file group>_<n>``, unique in the commit.

    The file group's number is a 64-bit digest of its id; Hudi has the number of the Spark task in its place.
    """
    digest = int.from_bytes(hashlib.blake2b(file_id.encode(), digest_size=8).digest(), "big")
    numbers = pa.array(np.arange(count, dtype=np.int64)).cast(pa.string())
    return pc.binary_join_element_wise(pa.scalar(f"{instant}_{digest}_"), numbers, "")


def _constant(value: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), pa.array([value]))


@lru_cache(maxsize=256)
def _file_schema(arrow_schema: pa.Schema) -> pa.Schema:
    constant = pa.dictionary(pa.int32(), pa.string())
    types = [constant, pa.string(), pa.string(), constant, constant]
    return pa.schema([pa.field(n, t) for n, t in zip(META_FIELDS, types, strict=True)] + list(arrow_schema))


def _key_range(group: FileGroupWrite) -> tuple[str, str]:
    ranges = [
        pc.min_max(rows.column(RECORD_KEY_FIELD)).as_py()
        for rows in (group.upserts, group.deletes)
        if rows is not None and rows.num_rows
    ]
    return min(r["min"] for r in ranges), max(r["max"] for r in ranges)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
