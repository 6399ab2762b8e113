"""A task's write for one file group: one log file with the upserts, the partial rows and the deletes of this commit.

Partial rows have some of the table's columns. Their blocks are marked IS_PARTIAL: readers change these columns of the
row that the key has, null included. They need a row that lives: a row that readers do not know cannot be made of a
partial one (measured: nulls in hudi-rs 0.5.0, shifted columns in Hudi Spark 1.2.0).

The file's name and bytes depend on the commit and the rows alone, so a retried or speculative task overwrites its own
file with the same bytes. The marker is written first, so that a rollback finds the file of a dead task.

Column statistics for the metadata table come from the Arrow columns as they are written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import UnsupportedError
from hudilake.format.definition.schema import META_FIELDS, RECORD_KEY_FIELD, avro_schema
from hudilake.format.digest.content_sum import NOTHING, ContentSum, total
from hudilake.format.files.column_stats import ColumnRange, LogRanges, log_ranges
from hudilake.format.files.delete_block import encode_deletes
from hudilake.format.files.log_file import encode_data_block, encode_delete_block
from hudilake.format.files.names import (
    DELETING_TOKEN,
    STEADY_TOKEN,
    LogFileName,
    in_partition,
    marker_list,
    marker_path,
    parse_base_name,
    parse_log_name,
)
from hudilake.format.files.parquet_file import encode_parquet
from hudilake.format.files.stored_rows import stored_rows
from hudilake.format.timeline.commit_metadata import WriteStat
from hudilake.policies import ChangeLog
from hudilake.storage.at_once import at_once
from hudilake.storage.base import Storage

#: From so many files on their markers are two files: a list, and one that says so.
_MANY_FILES = 4


@dataclass(frozen=True)
class WriteContext:
    """The context that all file groups of a commit share. ``avro_schema_json`` has the meta fields, ``arrow_schema``
    has not.

    ``indexed_columns``: whose statistics the metadata table keeps; None for a table without column statistics.
    ``base_from_rows``: a new file group with at least so many upserts begins with a base file that holds them; None for
    log files only. ``states_keys``: whether results say which keys a base file gains and loses, for an index.
    ``has_markers``: whether all log files have markers before they are written (``with_markers``). ``change_log``: what
    a change log beside a rewritten base file has; None for a table without change logs.
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
    states_keys: bool = False
    has_markers: bool = False
    change_log: ChangeLog | None = None

    @property
    def file_schema(self) -> pa.Schema:
        """The columns of a file, meta fields first."""
        return pa.schema([*(pa.field(name, pa.string()) for name in META_FIELDS), *self.arrow_schema])


@dataclass(frozen=True)
class FileGroupWrite:
    """The rows of one commit for one file group; keys without nulls, no key twice.

    ``upserts``: ``_hoodie_record_key`` (string) and table columns, the ordering column among them, sorted by key.
    ``deletes``: ``_hoodie_record_key`` and the ordering column (int64), sorted by key; all orders null for deletes that
    take the row whatever its order is.
    ``partials``: tables of rows that live, each with ``_hoodie_record_key``, the ordering column without nulls, and the
    columns to change, sorted by key. ``only_inserts``: every upsert has a key that has no row.
    """

    partition_path: str
    file_id: str
    upserts: pa.Table | None = None
    deletes: pa.Table | None = None
    partials: tuple[pa.Table, ...] = ()
    only_inserts: bool = False

    @property
    def num_partials(self) -> int:
        """The number of partial rows."""
        return sum(rows.num_rows for rows in self.partials)

    @property
    def is_empty(self) -> bool:
        """Whether it changes no row."""
        return self.upserts is None and self.deletes is None and not self.partials


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """What a commit changes in the record keys of a file group, for indexes that are kept.

    Args:
        partition_path: of the file group.
        file_id: its id.
        inserted: keys that are new in the file group, string array.
        deleted: keys whose rows the commit deletes, string array.
    """

    partition_path: str
    file_id: str
    inserted: pa.Array
    deleted: pa.Array


@dataclass(frozen=True)
class WriteResult:
    """The commit's data about a written log or base file; nothing is read back.

    ``ranges``: statistics of the indexed columns over the rows that have them; None for a table without column
    statistics. ``lacking``: indexed columns that some rows of the file lack, because they are partial. ``bloom``: of a
    base file, the filter of its record keys as (kind, base64 text).

    ``num_upserts`` counts partial rows too. ``columns``: the columns of rows that live that the file changes; None if
    it has whole rows of them. ``inserts``: whether it may have rows of new keys.
    ``keys``: what changes in the file group's keys; None where no index needs it.
    ``replaces``: of a base file, the name of the base file of the same file group before; None for the first one.
    ``num_inserts``: how many of its rows are new; None for all rows of a base file, and none of a log file.
    ``num_updates``: of a base file, how many are changed. ``contents``: what the file shall hold. ``change_log``: the
    name and the bytes of the change log beside a base file; None for none.
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
    lacking: frozenset[str] = frozenset()
    columns: frozenset[str] | None = None
    inserts: bool = True
    keys: KeyChanges | None = None
    replaces: str | None = None
    num_inserts: int | None = None
    num_updates: int = 0
    contents: ContentSum | None = None
    change_log: tuple[str, int] | None = None

    @property
    def is_base(self) -> bool:
        """Whether it is a base file."""
        return parse_base_name(self.file_name) is not None

    @property
    def path(self) -> str:
        """The file, relative to the table's root."""
        return in_partition(self.partition_path, self.file_name)

    @property
    def paths(self) -> list[str]:
        """The file, and its change log."""
        log = [] if self.change_log is None else [in_partition(self.partition_path, self.change_log[0])]
        return [self.path, *log]

    def stat(self, instant: str) -> WriteStat:
        """Its entry in the commit."""
        if self.is_base:
            return WriteStat(
                partition_path=self.partition_path,
                file_id=self.file_id,
                path=self.path,
                prev_commit=_instant_of(self.replaces) if self.replaces is not None else "null",
                num_writes=self.num_upserts,
                num_deletes=self.num_deletes,
                num_update_writes=self.num_updates,
                num_inserts=self.num_upserts if self.num_inserts is None else self.num_inserts,
                file_size=self.size_bytes,
                prev_base_file=self.replaces,
                change_log=() if self.change_log is None else ((self.paths[1], self.change_log[1]),),
                contents=self.contents,
            )
        return WriteStat(
            partition_path=self.partition_path,
            file_id=self.file_id,
            path=self.path,
            prev_commit=instant,
            num_writes=self.num_upserts,
            num_update_writes=self.num_upserts - (self.num_inserts or 0),
            num_inserts=self.num_inserts or 0,
            num_deletes=self.num_deletes,
            file_size=self.size_bytes,
            log_version=1,
            log_files=(self.file_name,),
            contents=self.contents,
        )


def _instant_of(base_file: str) -> str:
    name = parse_base_name(base_file)
    return name.instant if name is not None else "null"


def write_file_group(storage: Storage, context: WriteContext, group: FileGroupWrite) -> WriteResult:
    """Write the group's marker and log file.

    Raises UnsupportedError for columns that the schema lacks or values it cannot hold, StorageError.
    """
    whole, partial = data_rows(context, group)
    data = _encode(context, group, [*whole, *partial])
    token = STEADY_TOKEN if context.ordering_field or group.deletes is None else DELETING_TOKEN
    name = str(LogFileName(group.file_id, context.instant, write_token=token))
    if not context.has_markers:
        storage.write(marker_path(context.instant, group.partition_path, name), b"")
    storage.write(in_partition(group.partition_path, name), data)
    low, high = _key_range(group)
    upserts = group.upserts.num_rows if group.upserts is not None else 0
    indexed = context.indexed_columns
    stats = LogRanges(None) if indexed is None else log_ranges(whole, partial, indexed)
    return WriteResult(
        partition_path=group.partition_path,
        file_id=group.file_id,
        file_name=name,
        size_bytes=len(data),
        num_upserts=upserts + group.num_partials,
        num_deletes=group.deletes.num_rows if group.deletes is not None else 0,
        min_record_key=low,
        max_record_key=high,
        ranges=stats.ranges,
        lacking=stats.lacking,
        columns=None if upserts and not group.only_inserts else _written_columns(context, group.partials),
        inserts=upserts > 0,
        contents=_contents(context, group, whole, partial),
    )


def with_markers(storage: Storage, context: WriteContext, groups: Collection[tuple[str, str]]) -> WriteContext:
    """The context of a commit's log files, after the markers of all of them were written, as a list if they are many.

    Whoever writes an instant's files beside these needs no marker other than the list: Hudi reads nothing else then.

    Args:
        storage: the table's root.
        context: of the commit, which writes no base files.
        groups: partition path and file id of each file group that may be written.

    Raises StorageError.
    """
    paths = [in_partition(path, str(LogFileName(file_id, context.instant))) for path, file_id in groups]
    if len(paths) < _MANY_FILES or context.base_from_rows is not None or not all(map(str.isprintable, paths)):
        return context
    files = marker_list(context.instant, paths)
    at_once([partial(storage.write, path, data) for path, data in files.items()])
    return replace(context, has_markers=True)


def _contents(
    context: WriteContext, group: FileGroupWrite, whole: Iterable[pa.Table], partial: Iterable[pa.Table]
) -> ContentSum:
    deletes = NOTHING
    if group.deletes is not None and group.deletes.num_rows:
        keys, ordering = group.deletes.column(RECORD_KEY_FIELD), group.deletes.column(context.ordering_field)
        deletes = ContentSum.of_deletes(keys, ordering)
    return total([*map(ContentSum.of_rows, whole), *map(ContentSum.of_partials, partial), deletes])


def _written_columns(context: WriteContext, partials: Iterable[pa.Table]) -> frozenset[str]:
    names = frozenset(name for rows in partials for name in rows.column_names)
    return names - {RECORD_KEY_FIELD, context.ordering_field}


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
    """The bytes of the group's log file: a data block for its upserts, one for each table of partial rows, and
    a delete block for its deletes."""
    whole, partial = data_rows(context, group)
    return _encode(context, group, [*whole, *partial])


def data_rows(context: WriteContext, group: FileGroupWrite) -> tuple[list[pa.Table], list[pa.Table]]:
    """(the upserts, the tables of partial rows) as a file stores them, without empty ones. Raises UnsupportedError."""
    first = group.upserts.num_rows if group.upserts is not None else 0
    whole, partial = [], []
    if first:
        whole.append(_stored(context, group, group.upserts, context.arrow_schema, 0))
    for rows in group.partials:
        if rows.num_rows:
            partial.append(_stored(context, group, rows, _partial_schema(context, rows), first))
            first += rows.num_rows
    return whole, partial


def _stored(context: WriteContext, group: FileGroupWrite, rows: pa.Table, schema: pa.Schema, first: int) -> pa.Table:
    return stored_rows(rows, schema, context.instant, group.partition_path, group.file_id, first)


def _partial_schema(context: WriteContext, partial: pa.Table) -> pa.Schema:
    """The columns that a table of partial rows stores. Spark reads no partial block whose ordering column is missing or
    null (measured: ClassCastException)."""
    field = context.ordering_field
    if field not in partial.column_names or partial.column(field).null_count:
        raise UnsupportedError(
            f"partial rows have no value of the ordering column {field!r}",
            do_next="report this error: partial rows need an ordering value",
        )
    names = set(partial.column_names)
    if unknown := names - {RECORD_KEY_FIELD, *context.arrow_schema.names}:
        raise UnsupportedError(
            f"columns {sorted(unknown)} are not in the table's schema", do_next="commit a schema that has them first"
        )
    return pa.schema([column for column in context.arrow_schema if column.name in names])


def _encode(context: WriteContext, group: FileGroupWrite, tables: Sequence[pa.Table]) -> bytes:
    blocks = [_data_block(context, rows) for rows in tables]
    if group.deletes is not None and group.deletes.num_rows:
        keys = _one_chunk(group.deletes.column(RECORD_KEY_FIELD))
        ordering = _one_chunk(group.deletes.column(context.ordering_field))
        unconditional = ordering.null_count == len(ordering)
        content = encode_deletes(keys, None if unconditional else ordering, group.partition_path)
        blocks.append(encode_delete_block(context.instant, context.avro_schema_json, content))
    if not blocks:
        raise UnsupportedError(
            "a file group without upserts and deletes cannot be written",
            do_next="leave the file group out of the commit",
            file_group=group.file_id,
        )
    return b"".join(blocks)


def _data_block(context: WriteContext, rows: pa.Table) -> bytes:
    parquet = encode_parquet(rows, context.compression, context.compression_level)
    if rows.num_columns == len(META_FIELDS) + len(context.arrow_schema):
        return encode_data_block(context.instant, context.avro_schema_json, parquet)
    schema = pa.schema([context.arrow_schema.field(n) for n in rows.column_names if n not in META_FIELDS])
    schema_json = avro_schema(schema, context.table_name, with_meta=True)
    return encode_data_block(context.instant, schema_json, parquet, partial=True)


def _key_range(group: FileGroupWrite) -> tuple[str, str]:
    ranges = [
        pc.min_max(rows.column(RECORD_KEY_FIELD)).as_py()
        for rows in (group.upserts, *group.partials, group.deletes)
        if rows is not None and rows.num_rows
    ]
    return min(r["min"] for r in ranges), max(r["max"] for r in ranges)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
