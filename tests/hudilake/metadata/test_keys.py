"""Keys and hashes: the vectors made by Hudi, and every key of a real metadata table in the file group it names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.hfile.reader import HFileReader
from hudilake.format.files.log_file import BlockType, iter_blocks
from hudilake.format.files.names import parse_log_name
from hudilake.metadata.records.keys import (
    bloom_key,
    column_stats_key,
    file_group_indices,
    partition_identifier,
    partition_stats_key,
)
from hudilake.metadata.records.layout import parse_file_group_id
from hudilake.metadata.records.record_reader import decode_record
from hudilake.metadata.records.records import StatsRecord
from tests.paths import GOLDEN

VECTORS = json.loads((GOLDEN / "vectors.json").read_text())


@pytest.mark.parametrize("vector", VECTORS["index_keys"], ids=lambda v: v["column"])
def test_index_keys(vector: dict[str, Any]) -> None:
    column, partition, file = vector["column"], vector["partition"], vector["file"]
    assert column_stats_key(column, partition, file) == vector["column_stats_key"]
    assert bloom_key(partition, file) == vector["bloom_key"]
    assert partition_stats_key(column, partition) == vector["partition_stats_key"]


@pytest.mark.parametrize("count", [1, 2, 4, 10])
def test_file_groups(count: int) -> None:
    vectors = VECTORS["mdt_file_group"]
    keys = [vector["key"] for vector in vectors]
    assert file_group_indices(keys, count).tolist() == [vector[str(count)] for vector in vectors]


def _java_hash(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


@given(st.lists(st.text(max_size=30), min_size=1, max_size=40), st.integers(1, 50))
def test_file_groups_of_any_text(keys: list[str], count: int) -> None:
    """Java: ``Math.abs(Math.abs(h) % n)``, where the absolute value of the smallest int is itself."""
    assert file_group_indices(keys, count).tolist() == [abs(_java_hash(key)) % count for key in keys]


def test_partition_identifier() -> None:
    assert (partition_identifier(""), partition_identifier("a=b")) == (".", "a=b")


def test_every_key_of_a_real_metadata_table() -> None:
    """Hudi's own records: the key we make of a record's content, and the file group we look for it in, are its own."""
    root = GOLDEN / "tbl_hudi120" / ".hoodie" / "metadata"
    counts = {
        MetadataPartition.COLUMN_STATS: 2,
        MetadataPartition.PARTITION_STATS: 1,
        MetadataPartition.BLOOM_FILTERS: 4,
    }
    partition_of = {
        path.name: str(path.parent.relative_to(root.parent.parent)) for path in root.parent.parent.rglob("*")
    }
    checked = 0
    for partition, count in counts.items():
        for path in sorted((root / partition.value).glob(".*.log.*")):
            name = parse_log_name(path.name)
            assert name is not None
            for block in iter_blocks(path.read_bytes(), str(path)):
                if block.block_type is not BlockType.HFILE_DATA:
                    continue
                for key, value in HFileReader.from_bytes(bytes(block.content)).scan():
                    index = int(file_group_indices([key.decode()], count)[0])
                    assert parse_file_group_id(partition, name.file_id) == (None, index)
                    record = decode_record(value)
                    if partition is MetadataPartition.PARTITION_STATS and isinstance(record, StatsRecord):
                        assert key.decode() == partition_stats_key(record.range.column, record.name)
                        checked += 1
                    if isinstance(record, StatsRecord) and record.name in partition_of:  # some were cleaned since
                        assert key.decode() == column_stats_key(
                            record.range.column, partition_of[record.name], record.name
                        )
                        checked += 1
    assert checked > 300
