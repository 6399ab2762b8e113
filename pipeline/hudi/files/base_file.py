"""Base files: one Parquet file with a file group's rows as of a commit, and the footer Hudi's writers read."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.hudi.files.parquet_file import AVRO_SCHEMA_KEY, decode_parquet, encode_parquet
from pipeline.hudi.schema import RECORD_KEY_FIELD
from pipeline.storage.base import Storage

BLOOM_FILTER_KEY = "org.apache.hudi.bloomfilter"
BLOOM_TYPE_KEY = "hoodie_bloom_filter_type_code"
#: Says that dates are in the proleptic Gregorian calendar: without it Spark refuses files with dates before 1582-10-15
#: or times before 1900 (measured, Spark 3.5.7, read-optimized and after a compaction).
_CALENDAR = {"org.apache.spark.version": "3.5.7"}
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
    footer = {AVRO_SCHEMA_KEY: avro_schema_json, "writer.model.name": "avro", **_CALENDAR}
    if table.num_rows:
        keys = pc.min_max(table.column(RECORD_KEY_FIELD)).as_py()
        footer |= {MIN_KEY: keys["min"], MAX_KEY: keys["max"]}
    if bloom_filter is not None:
        footer |= {BLOOM_TYPE_KEY: bloom_filter[0], BLOOM_FILTER_KEY: bloom_filter[1]}
    return encode_parquet(table, compression, level, footer)


def read_base_file(storage: Storage, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a base file; ``columns`` it lacks are left out. Raises CorruptDataError."""
    return decode_parquet(storage.read(path), columns, path)
