"""Base files: one Parquet file with a file group's rows as of a commit, and the footer Hudi's writers read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudilake.errors import CorruptDataError
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.digest.content_sum import CONTENTS_KEY, ContentSum
from hudilake.format.digest.rows import kinds
from hudilake.format.files.lance_file import is_lance, read_lance
from hudilake.format.files.parquet_file import (
    AVRO_SCHEMA_KEY,
    check_keys,
    decode_parquet,
    encode_parquet,
    open_parquet,
)
from hudilake.storage.base import Storage
from hudilake.storage.ranged import StoredFile

BLOOM_FILTER_KEY = "org.apache.hudi.bloomfilter"
BLOOM_TYPE_KEY = "hoodie_bloom_filter_type_code"
#: Marks dates as of the proleptic Gregorian calendar: without it Spark refuses files with dates before 1582-10-15
#: or times before 1900 (measured, Spark 3.5.7, read-optimized and after a compaction).
_CALENDAR = {"org.apache.spark.version": "3.5.7"}
#: Base files from this size on are read by ranges, column by column.
RANGED_READ_BYTES = 8 * 1024 * 1024
#: A file up to this size is read in one request, whatever is wanted of it.
WHOLE_READ_BYTES = 128 * 1024
MIN_KEY, MAX_KEY = "hoodie_min_record_key", "hoodie_max_record_key"


def encode_base_file(
    table: pa.Table,
    avro_schema_json: str,
    bloom_filter: tuple[str, str] | None = None,
    compression: str = "zstd",
    level: int | None = 3,
) -> bytes:
    """The bytes of a base file.

    Args:
        table: n rows with the five meta fields, sorted by record key; each row keeps the commit time of its own commit.
        avro_schema_json: the rows' Avro schema, meta fields included.
        bloom_filter: (type code, base64 text) over the record keys, or None for a file without one.
        compression, level: the codec.
    """
    keys = pc.min_max(table.column(RECORD_KEY_FIELD)).as_py() if table.num_rows else None
    footer = base_footer(avro_schema_json, (keys["min"], keys["max"]) if keys else None, bloom_filter)
    return encode_parquet(table, compression, level, footer)


def naming_file(rows: pa.Table, name: str, field: pa.Field) -> pa.Table:
    """The rows with the name of their base file in each row. ``field``: the meta column of that name."""
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows.num_rows, dtype=np.int32)), pa.array([name]))
    return rows.set_column(rows.column_names.index(field.name), field, names)


def rows_at_once(rows: pa.Table, most_rows: int, most_bytes: int) -> int:
    """The number of such rows in a row group, limited by rows and by decoded bytes; at least one."""
    bytes_a_row: int = max(1, rows.nbytes // rows.num_rows)
    return max(1, min(most_rows, most_bytes // bytes_a_row))


def base_footer(
    avro_schema_json: str,
    keys: tuple[str, str] | None,
    bloom_filter: tuple[str, str] | None,
    contents: ContentSum | None = None,
) -> dict[str, str]:
    """The key-value pairs of a base file's footer. ``keys``: its least and greatest record key, None without rows.
    ``contents``: what it shall hold, for the writer of the next one; readers compare with the commit's."""
    footer = {AVRO_SCHEMA_KEY: avro_schema_json, "writer.model.name": "avro", **_CALENDAR}
    if keys is not None:
        footer |= {MIN_KEY: keys[0], MAX_KEY: keys[1]}
    if bloom_filter is not None:
        footer |= {BLOOM_TYPE_KEY: bloom_filter[0], BLOOM_FILTER_KEY: bloom_filter[1]}
    if contents is not None:
        footer[CONTENTS_KEY] = str(contents)
    return footer


def read_base_file(storage: Storage, path: str, columns: Sequence[str] | None = None, size: int = 0) -> pa.Table:
    """The rows of a base file.

    Args:
        storage: the table's root.
        path: the file.
        columns: to read; those it lacks are left out. None reads all.
        size: its bytes, if known: of a large file only the requested columns are fetched.

    Raises CorruptDataError, StorageNotFoundError, and MissingExtraError for a file of Lance without its library.
    """
    if is_lance(path):
        return read_lance(storage, path, columns)
    if columns is None or size < RANGED_READ_BYTES:
        return decode_parquet(storage.read(path), columns, path)
    with pa.PythonFile(StoredFile(storage, path, size), mode="r") as file:
        return decode_parquet(file, columns, path)


@contextlib.contextmanager
def open_base_file(storage: Storage, path: str, columns: Sequence[str], size: int) -> Iterator[BaseFileRows]:
    """A base file to be read row group by row group. Arguments as ``read_base_file``; raises CorruptDataError."""
    is_small = size <= WHOLE_READ_BYTES
    with pa.BufferReader(storage.read(path)) if is_small else pa.PythonFile(StoredFile(storage, path, size)) as file:
        with _read_errors(path):
            opened = open_parquet(file)
        yield BaseFileRows(opened, path, columns)


class BaseFileRows:
    """An open base file."""

    def __init__(self, file: pq.ParquetFile, path: str, columns: Sequence[str]) -> None:
        held = set(file.schema_arrow.names)
        self._file, self._path = file, path
        self._columns = [name for name in columns if name in held]

    @property
    def num_rows(self) -> int:
        """The number of rows in the footer."""
        return int(self._file.metadata.num_rows)

    @property
    def footer(self) -> dict[str, str]:
        """The key-value pairs of the footer. Raises CorruptDataError."""
        with _read_errors(self._path):
            pairs = self._file.metadata.metadata or {}
            return {key.decode("utf-8"): value.decode("utf-8") for key, value in pairs.items()}

    def contents_in(self, schema: pa.Schema) -> ContentSum | None:
        """What the file shall hold, as its writer says, if its rows keep their digests in a schema; else None.

        ``schema``: all columns of the rows to write. Raises CorruptDataError.
        """
        text = self.footer.get(CONTENTS_KEY)
        if text is None or not kinds(self._file.schema_arrow).items() <= kinds(schema).items():
            return None
        try:
            return ContentSum.parse(text)
        except ValueError as error:
            raise CorruptDataError(str(error), do_next="run binlake fsck", path=self._path) from error

    def key_ranges(self) -> list[tuple[str, str] | None]:
        """The least and the greatest record key of each row group; None where the file does not say it."""
        columns = [column.path for column in (self._file.schema.column(i) for i in range(len(self._file.schema)))]
        if RECORD_KEY_FIELD not in columns:
            return [None] * self._file.num_row_groups
        place = columns.index(RECORD_KEY_FIELD)
        metadata = self._file.metadata
        with _read_errors(self._path):
            return [_key_range(metadata.row_group(i).column(place).statistics) for i in range(metadata.num_row_groups)]

    def row_groups(self, numbers: Iterable[int] | None = None) -> Iterator[pa.Table]:
        """The rows, one row group at a time; ``numbers``: which ones, None for all. Raises CorruptDataError,
        StorageError."""
        for number in range(self._file.num_row_groups) if numbers is None else numbers:
            with _read_errors(self._path):
                table = self._file.read_row_group(number, columns=self._columns, use_threads=False)
                check_keys(table)
            yield table.replace_schema_metadata(None)


def _key_range(statistics: pq.Statistics | None) -> tuple[str, str] | None:
    if statistics is None or not statistics.has_min_max:
        return None
    low, high = statistics.min, statistics.max
    return (low, high) if isinstance(low, str) and isinstance(high, str) else None


@contextlib.contextmanager
def _read_errors(path: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise CorruptDataError(f"a base file cannot be read: {error}", do_next="run binlake fsck", path=path) from error
