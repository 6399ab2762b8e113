"""The rows of data blocks, of every kind a data table's log file may hold."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Sequence
from typing import Any

import fastavro
import pyarrow as pa

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.definition.schema import arrow_schema
from hudilake.format.files.log_file import BlockType, Header, LogBlock
from hudilake.format.files.parquet_file import decode_parquet

_INT = struct.Struct(">i")
_AVRO_VERSION = 3


def decode_data_block(block: LogBlock, columns: Sequence[str] | None, path: str) -> pa.Table:
    """The rows of a PARQUET_DATA or AVRO_DATA block, in the block's order; those of a partial block are partial.

    Args:
        block: from ``iter_blocks``.
        columns: columns to read; those the block lacks are left out. None reads all.
        path: the log file, for errors.

    Raises CorruptDataError, UnsupportedError for compacted blocks.
    """
    if block.header.get(Header.COMPACTED_BLOCK_TIMES, "false") != "false":
        raise UnsupportedError(
            f"a log block is marked {Header.COMPACTED_BLOCK_TIMES.name}",
            do_next="read the table with Hudi",
            path=path,
            offset=block.offset,
        )
    if block.block_type is BlockType.PARQUET_DATA:
        return decode_parquet(block.content, columns, path, block.offset, block.header.get(Header.SCHEMA))
    if block.block_type is BlockType.AVRO_DATA:
        return _decode_avro(block, columns, path)
    raise UnsupportedError(
        f"a log block is of type {block.block_type.name}",
        do_next="read the table with Hudi",
        path=path,
        offset=block.offset,
    )


def _decode_avro(block: LogBlock, columns: Sequence[str] | None, path: str) -> pa.Table:
    """Flink and Java writers keep rows as Avro: version, count, then a length and a datum for each."""
    text = block.header[Header.SCHEMA]
    try:
        rows = _avro_rows(block.content, fastavro.parse_schema(json.loads(text)))
    except (struct.error, ValueError, EOFError, LookupError, TypeError, OverflowError) as error:
        raise CorruptDataError(
            f"an Avro block cannot be read: {error}", do_next="run binlake fsck", path=path, offset=block.offset
        ) from error
    schema = arrow_schema(text)
    table = pa.Table.from_pylist(rows, schema=schema)
    return table if columns is None else table.select([name for name in columns if name in schema.names])


def _avro_rows(content: memoryview, schema: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - fastavro's parsed schema
    (version,) = _INT.unpack_from(content)
    if version != _AVRO_VERSION:
        raise ValueError(f"Avro block version {version}")
    (count,) = _INT.unpack_from(content, 4)
    rows: list[dict[str, Any]] = []
    offset = 8
    for _ in range(count):
        (size,) = _INT.unpack_from(content, offset)
        row: Any = fastavro.schemaless_reader(io.BytesIO(content[offset + 4 : offset + 4 + size]), schema, None)
        rows.append(row)
        offset += 4 + size
    return rows
