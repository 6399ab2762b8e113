"""Parquet files of binlake: zstd, page checksums, constants as dictionaries, statistics of record keys alone.

Readers take their statistics from the metadata table, which has none of row groups: those of record keys let a lookup
skip row groups. Page checksums cost nothing that can be measured and turn a flipped bit into an error. Files whose rows
have an order get statistics of further columns, and the page index (``Pages``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from hudilake.errors import CorruptDataError
from hudilake.format.definition.schema import RECORD_KEY_FIELD, arrow_schema

AVRO_SCHEMA_KEY = "parquet.avro.schema"

#: Meta fields with one value per file or per commit: written as dictionaries. Everything else is written plain, which
#: is a third faster than trying dictionaries, and no larger once compressed (25,000 rows, 16 columns).
_CONSTANT = ["_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name"]
_DELTA = {"_hoodie_commit_seqno": "DELTA_BYTE_ARRAY", RECORD_KEY_FIELD: "DELTA_BYTE_ARRAY"}


@dataclass(frozen=True, slots=True)
class Pages:
    """What lets readers skip parts of a file: statistics of row groups, and the page index.

    Args:
        columns: whose statistics are written, besides those of the record key. A column of floats must be without NaN:
            statistics leave NaN out, and Spark, which takes it for the greatest number, then skips its rows (measured,
            Spark 3.5.7).
        rows: the most rows of a page.
    """

    columns: tuple[str, ...]
    rows: int


def ranged_columns(schema: pa.Schema) -> tuple[str, ...]:
    """The columns that have statistics: those without nested types. Text and bytes of more than 4 KiB have none."""
    return tuple(field.name for field in schema if not pa.types.is_nested(field.type))


def encode_parquet(
    table: pa.Table, compression: str, level: int | None, footer: Mapping[str, str] | None = None
) -> bytes:
    """A whole Parquet file.

    Args:
        table: n rows; the meta fields among its columns get their own encodings.
        compression: ``zstd``, ``snappy``, ``gzip`` or ``none``.
        level: the codec's level; None for a codec without one.
        footer: key-value pairs of the footer.
    """
    sink = pa.BufferOutputStream()
    with parquet_writer(sink, table.schema, compression, level) as writer:
        writer.write_table(table)
        if footer:
            writer.add_key_value_metadata(dict(footer))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def parquet_writer(
    sink: pa.NativeFile | str, schema: pa.Schema, compression: str, level: int | None, pages: Pages | None = None
) -> pq.ParquetWriter:
    """A writer of binlake's Parquet; row groups and footer are the caller's. Arguments as ``encode_parquet``.

    ``pages``: what readers skip by besides record keys; None for nothing.
    """
    names = set(schema.names)
    ranged = names & {RECORD_KEY_FIELD, *(pages.columns if pages is not None else ())}
    return pq.ParquetWriter(
        sink,
        schema,
        compression=compression,
        compression_level=level,
        use_dictionary=[name for name in _CONSTANT if name in names],
        column_encoding={name: encoding for name, encoding in _DELTA.items() if name in names} or None,
        write_statistics=sorted(ranged) or False,
        write_page_index=pages is not None,
        max_rows_per_page=pages.rows if pages is not None else None,
        write_page_checksum=True,
        store_schema=False,
    )


def decode_parquet(
    content: bytes | memoryview | pa.NativeFile,
    columns: Sequence[str] | None,
    path: str,
    offset: int = 0,
    schema_json: str | None = None,
) -> pa.Table:
    """The rows of a Parquet file. Columns it lacks are left out.

    Page checksums are verified; a footer has none, so its row counts are compared with each other and its columns with
    the Avro schema that came with the file.

    Args:
        content: the whole file, or an open file of which only the needed ranges are read.
        columns: top-level columns to read; None reads all.
        path, offset: its location, for the error.
        schema_json: the Avro schema it was written under; None takes the one in its footer, if there is one.

    Raises CorruptDataError if the bytes contradict the file's metadata.
    """
    try:
        file = open_parquet(content, schema_json)
        held = set(file.schema_arrow.names)
        names = None if columns is None else [name for name in columns if name in held]
        table = file.read(columns=names, use_threads=False)
        check_keys(table)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise CorruptDataError(
            f"a Parquet file cannot be read: {error}", do_next="run binlake fsck", path=path, offset=offset
        ) from error
    return table.replace_schema_metadata(None)


def open_parquet(content: bytes | memoryview | pa.NativeFile, schema_json: str | None = None) -> pq.ParquetFile:
    """A Parquet file whose footer agrees with itself; page checksums are verified as it is read.

    Raises pyarrow's errors, OSError and ValueError if the bytes contradict the file's metadata.
    """
    is_open = isinstance(content, pa.NativeFile)
    source = content if is_open else pa.py_buffer(content)
    file = pq.ParquetFile(source, page_checksum_verification=True, pre_buffer=is_open)
    _check_counts(file.metadata)
    _check_columns(file, schema_json)
    return file


def check_keys(table: pa.Table) -> None:
    """Raise ValueError for rows without a record key."""
    if RECORD_KEY_FIELD in table.column_names and table.column(RECORD_KEY_FIELD).null_count:
        raise ValueError("rows without a record key")


def _check_counts(metadata: pq.FileMetaData) -> None:
    """A column's own counts are not compared: pyarrow 26 aborts the process on some damaged column metadata."""
    if sum(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)) != metadata.num_rows:
        raise ValueError("its row counts disagree")


def _check_columns(file: pq.ParquetFile, schema_json: str | None) -> None:
    """Readers return nulls for a column that a file lacks, so each column of its own schema must be present."""
    if schema_json is None:
        text = (file.metadata.metadata or {}).get(AVRO_SCHEMA_KEY.encode())
        schema_json = text.decode("utf-8") if text is not None else None
    if schema_json is None:
        return
    held = {field.name: field.type for field in file.schema_arrow}
    for field in arrow_schema(schema_json):
        if field.name not in held or not _same_kind(held[field.name], field.type):
            raise ValueError(f"column {field.name} differs from its Avro schema")


def _same_kind(held: pa.DataType, declared: pa.DataType) -> bool:
    """Equal, or two forms of one type: writers differ in units of time, and in the nulls and names inside of lists."""
    if pa.types.is_struct(held) and pa.types.is_struct(declared):
        names = [[field.name for field in kind] for kind in (held, declared)]
        return names[0] == names[1] and all(
            _same_kind(one.type, other.type) for one, other in zip(held, declared, strict=True)
        )
    if pa.types.is_map(held) and pa.types.is_map(declared):
        return _same_kind(held.key_type, declared.key_type) and _same_kind(held.item_type, declared.item_type)
    if pa.types.is_list(held) and pa.types.is_list(declared):
        return _same_kind(held.value_type, declared.value_type)
    kinds = (pa.types.is_temporal, lambda t: t in (pa.string(), pa.binary()))
    return bool(held == declared or any(kind(held) and kind(declared) for kind in kinds))


def footer_of(content: bytes | memoryview, path: str) -> dict[str, str]:
    """The key-value pairs of a Parquet footer. Raises CorruptDataError."""
    try:
        pairs = pq.read_metadata(pa.BufferReader(pa.py_buffer(content))).metadata or {}
        return {key.decode("utf-8"): value.decode("utf-8") for key, value in pairs.items()}
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptDataError(
            f"a Parquet footer cannot be read: {error}", do_next="run binlake fsck", path=path
        ) from error
