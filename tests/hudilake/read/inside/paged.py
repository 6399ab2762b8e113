"""Base files with small row groups and pages, bounds of every column and a page index."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.base_file import base_footer
from tests.hudilake.metadata import indexed_table

Encode = Callable[[pa.Table, str, tuple[str, str] | None], bytes]


def paged_bytes(
    table: pa.Table,
    avro_schema_json: str,
    bloom_filter: tuple[str, str] | None = None,
    group_rows: int = 3,
    page_rows: int = 1,
    index: bool = True,
    statistics: bool = True,
    dictionary: bool = False,
    page_version: str = "1.0",
) -> bytes:
    """The bytes of a base file; arguments as ``encode_base_file``, and what a page and a row group hold."""
    keys = sorted(table.column(RECORD_KEY_FIELD).to_pylist())
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        max_rows_per_page=page_rows,
        write_batch_size=page_rows,
        write_page_index=index,
        write_statistics=statistics,
        write_page_checksum=True,
        use_dictionary=dictionary,
        data_page_version=page_version,
        store_schema=False,
    ) as writer:
        writer.write_table(table, row_group_size=group_rows)
        writer.add_key_value_metadata(
            base_footer(avro_schema_json, (keys[0], keys[-1]) if keys else None, bloom_filter)
        )
    return bytes(sink.getvalue().to_pybytes())


def compactions_write_pages(patch: pytest.MonkeyPatch, seed: int = 0) -> None:
    """Compactions of the test tables write such files, their rows in an order that has nothing to do with the keys."""
    chance = random.Random(seed)

    def encode(table: pa.Table, avro_schema_json: str, bloom_filter: tuple[str, str] | None = None) -> bytes:
        places = list(range(table.num_rows))
        chance.shuffle(places)
        return paged_bytes(
            table.take(pa.array(places, pa.int64())),
            avro_schema_json,
            bloom_filter,
            group_rows=chance.randint(1, 4),
            page_rows=chance.randint(1, 2),
            index=chance.random() < 0.8,
            statistics=chance.random() < 0.9,
            dictionary=chance.random() < 0.5,
            page_version=chance.choice(["1.0", "2.0"]),
        )

    patch.setattr(indexed_table, "encode_base_file", encode)
