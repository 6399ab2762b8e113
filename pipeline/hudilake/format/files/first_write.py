"""The first rows of a file group: a base file in place of a log file, if there are enough rows.

Otherwise the first load of a table would be in log files only, and every reader would merge them until a compaction has
rewritten them. The rows of a new file group have nothing to be merged with, so they can be written as the base file
that the compaction would make. Their deletes go to a log file over it, under the same instant: they keep late, older
events out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from hudilake.errors import UnsupportedError
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.digest.content_sum import ContentSum
from hudilake.format.files.base_file import base_footer, naming_file, rows_at_once
from hudilake.format.files.bloom import BloomFilter
from hudilake.format.files.column_stats import column_ranges
from hudilake.format.files.file_group_write import FileGroupWrite, WriteContext, WriteResult, write_file_group
from hudilake.format.files.names import BaseFileName, in_partition, marker_path
from hudilake.format.files.parquet_file import parquet_writer
from hudilake.format.files.stored_rows import stored_rows
from hudilake.storage.base import Storage

#: Writes the upserts of a file group as a base file.
WriteBase: TypeAlias = Callable[[Storage, WriteContext, FileGroupWrite], WriteResult]

_FILE_NAME = "_hoodie_file_name"
_BLOOM_FPP = 1e-3
#: The most that a row group holds, in rows and in decoded bytes: as compaction writes them by default.
_ROW_GROUP_ROWS, _ROW_GROUP_BYTES = 250_000, 64 << 20


def write_new_file_group(
    storage: Storage, context: WriteContext, group: FileGroupWrite, write_base: WriteBase | None = None
) -> list[WriteResult]:
    """Write the rows of a file group that does not exist yet: a base file if there are ``context.base_from_rows``
    upserts, else a log file. Bytes and errors as ``write_file_group``; UnsupportedError also for partial rows, for none
    of its rows lives yet.

    ``write_base``: writes the base file; None for one in key order."""
    least = context.base_from_rows
    if least is None or group.upserts is None or group.upserts.num_rows < max(least, 1):
        refuse_partials(group)
        return [write_file_group(storage, context, group)]
    return write_base_anew(storage, context, group, write_base)


def write_base_anew(
    storage: Storage, context: WriteContext, group: FileGroupWrite, write_base: WriteBase | None = None
) -> list[WriteResult]:
    """Write all rows of a file group that may exist as a new base file, which begins a new file slice, and the deletes
    over it. So a column can take a type as which neither reader reads the older files (measured).

    ``group.upserts``: all rows, none if the group has lost its rows. ``write_base`` as ``write_new_file_group``. Bytes
    and errors as ``write_file_group``."""
    refuse_partials(group)
    written = [(write_base or _write_base)(storage, context, group)]
    if group.deletes is not None and group.deletes.num_rows:
        written.append(write_file_group(storage, context, dataclasses.replace(group, upserts=None)))
    return written


def refuse_partials(group: FileGroupWrite) -> None:
    """Raise UnsupportedError if a write that begins a file slice has partial rows: none of its rows lives yet."""
    if group.num_partials:
        raise UnsupportedError(
            "partial rows cannot be the first rows of a file slice",
            do_next="report this error: rows of new keys must be whole rows",
            file_group=group.file_id,
        )


def _write_base(storage: Storage, context: WriteContext, group: FileGroupWrite) -> WriteResult:
    name = str(BaseFileName(group.file_id, context.instant))
    assert group.upserts is not None
    plain = stored_rows(group.upserts, context.arrow_schema, context.instant, group.partition_path, group.file_id)
    rows = naming_file(plain, name, plain.schema.field(_FILE_NAME))
    keys = rows.column(RECORD_KEY_FIELD)
    span = (keys[0].as_py(), keys[-1].as_py()) if rows.num_rows else None
    bloom = BloomFilter.simple(rows.num_rows, _BLOOM_FPP)
    bloom.add(keys)
    stored = bloom.kind, bloom.to_base64()
    contents = ContentSum.of_rows(rows)
    data = _encode(rows, context, base_footer(context.avro_schema_json, span, stored, contents))
    storage.write(marker_path(context.instant, group.partition_path, name), b"")
    storage.write(in_partition(group.partition_path, name), data)
    return WriteResult(
        partition_path=group.partition_path,
        file_id=group.file_id,
        file_name=name,
        size_bytes=len(data),
        num_upserts=rows.num_rows,
        num_deletes=0,
        min_record_key=span[0] if span else "",
        max_record_key=span[1] if span else "",
        ranges=None if context.indexed_columns is None else column_ranges(rows, context.indexed_columns),
        bloom=stored,
        contents=contents,
    )


def _encode(rows: pa.Table, context: WriteContext, footer: dict[str, str]) -> bytes:
    sink = pa.BufferOutputStream()
    at_once = rows_at_once(rows, _ROW_GROUP_ROWS, _ROW_GROUP_BYTES) if rows.num_rows else _ROW_GROUP_ROWS
    with parquet_writer(sink, rows.schema, context.compression, context.compression_level) as writer:
        writer.write_table(rows, row_group_size=at_once)
        writer.add_key_value_metadata(footer)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
