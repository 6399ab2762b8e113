"""Hudi Spark 1.2.0 as the judge of the index: its lookups, its validation, its own writes between ours.

What it skips by the index is in ``test_spark_skipping``.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.column_stats import ColumnRange, ValueType
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.records.delta import base_files
from hudilake.metadata.records.layout import METADATA_PATH
from hudilake.metadata.records.records import decimal_bytes
from hudilake.metadata.services import compaction
from tests.hudilake.metadata.indexed_table import ORDER, IndexedTable, arrow_schema
from tests.hudilake.metadata.random_table import COLUMNS, CONFIG, REGIONS, random_rows, random_table
from tests.hudilake.metadata.spark_index import Lookup, SparkIndex, frame, write
from tests.hypothesis_profile import is_nightly, usually

pytestmark = [pytest.mark.spark, pytest.mark.judge]


@pytest.mark.full
@pytest.mark.parametrize(("part", "groups"), [("region", (3, 5)), (None, (1, 1))])
def test_lookups(spark: SparkSession, tmp_path: Path, part: str | None, groups: tuple[int, int]) -> None:
    """Every lookup of Hudi's gives for every file, column and partition what we wrote of it, whatever file group its
    key is in; half of it is in base files, half in log files."""
    config = MetadataConfig(
        compact_after=9, compact_at_most=9, column_stats_file_groups=groups[0], bloom_file_groups=groups[1]
    )
    table = random_table(tmp_path / "t", part, 5, config)
    table.compact()
    assert any(g.base and g.logs for g in table.metadata.reader.groups[MetadataPartition.COLUMN_STATS])
    index = SparkIndex(spark, table.path)
    assert index.partition_paths() == table.metadata.reader.partition_paths()
    _check_listings(table, index)
    _check_statistics(table, index)
    _check_filters(table, index)


def _check_listings(table: IndexedTable, index: SparkIndex) -> None:
    paths = index.partition_paths()
    listed = {(path, name): size for path in paths for name, size in index.files(path).items()}
    assert listed == table.listed()


def _check_statistics(table: IndexedTable, index: SparkIndex) -> None:
    reader = table.metadata.reader
    files = list(table.listed())
    columns = [name for name in table.metadata.columns if name not in ("f", "f4")]
    ours = reader.column_ranges(columns, files)
    assert ours.keys() == set(files)
    paths = reader.partition_paths()
    partitioned = table.metadata.keeps(MetadataPartition.PARTITION_STATS)
    whole = reader.partition_ranges(columns, paths) if partitioned else {}
    for column in columns:
        assert index.column_stats(files, column) == {file: _lookup(ours[file][column]) for file in files}, column
        if partitioned:
            assert index.partition_stats(column) == {path: _lookup(whole[path][column]) for path in paths}, column
    assert index.column_stats([("", "none"), ("region=none", files[0][1])], "i") == {}


def _lookup(item: ColumnRange) -> Lookup:
    bounds: list[Any] = [item.min, item.max]
    if item.value_type is ValueType.DECIMAL:
        bounds = [None if bound is None else decimal_bytes(int(bound)) for bound in bounds]
    return (*bounds, item.null_count, item.value_count)


def _check_filters(table: IndexedTable, index: SparkIndex) -> None:
    """After a compaction every newest base file knows its keys, and no other of a thousand."""
    keys: dict[tuple[str, str], list[str]] = {}
    for row in table.rows().values():
        keys.setdefault((row["_hoodie_partition_path"], row["_hoodie_file_name"]), []).append(row["_hoodie_record_key"])
    assert keys
    others = [f"none{n}" for n in range(1000)]
    for file, members in keys.items():
        assert all(index.members(file, members))
        assert not any(index.members(file, others))
    batch = index.bloom_filters(list(keys))
    assert batch.keys() == keys.keys()
    assert all(batch[file].mightContain(member) for file, members in keys.items() for member in members)
    filters = table.metadata.reader.bloom_filters(base_files(table.listed()))
    assert index.bloom_filters(list(filters)).keys() == filters.keys()


def _agree(spark: SparkSession, table: IndexedTable, *, by_key: bool = True, quickly: bool = False) -> None:
    """The same rows with the metadata table, without it and by our reader; and the listing is what is on storage.

    ``quickly``: not without it, in a usual run.
    ``by_key``: false after Hudi's own compaction, for it loses rows that it writes over its own filters
    (``test_hudi_loses_rows_of_its_own_table``) until we write to the file group.
    """
    table.reopen()
    rows = table.rows()
    ways = ((True, True), (True, False), (False, False))
    for metadata, skipping in usually(ways[:1], ways) if quickly else ways:
        read = frame(spark, table.path, skipping=skipping, metadata=metadata).collect()
        assert sorted((r["id"], str(r["s"])) for r in read) == sorted((i, str(row["s"])) for i, row in rows.items())
    files = table.metadata.reader.files(table.metadata.reader.partition_paths())
    on_storage = {key for key in table.listed() if not key[1].endswith(".crc")}
    assert {(path, name) for path, names in files.items() for name in names} == on_storage
    counts = {f"id = {n}": 1 for n in list(rows)[:: 15 if is_nightly() else 60]} if by_key else {}
    counts["i > 100"] = sum((row["i"] or 0) > 100 for row in rows.values())
    counts["s = 'new'"] = sum(row["s"] == "new" for row in rows.values())
    for predicate, count in counts.items():
        assert frame(spark, table.path, skipping=True).where(predicate).count() == count, predicate


@pytest.mark.full
@pytest.mark.parametrize("part", usually(["region"], ["region", None]))
def test_taking_turns(spark: SparkSession, tmp_path: Path, part: str | None) -> None:
    """Hudi Spark upserts, deletes, compacts the data and the metadata of our table, and we go on after each."""
    columns = {name: kind for name, kind in COLUMNS.items() if name != "bin"}
    chance = random.Random(11)
    table = IndexedTable(tmp_path / "t", arrow_schema(columns), part=part, config=CONFIG)

    def ours(turn: int) -> None:
        table.write([{name: v for name, v in row.items() if name != "bin"} for row in random_rows(turn, chance)])

    for turn in range(4):
        ours(turn)
    names = [name for name in frame(spark, table.path, skipping=False).columns if not name.startswith("_hoodie_")]
    some = frame(spark, table.path, skipping=False).select(*names).limit(6)
    changed = some.selectExpr("id", "'new' as s", *names[2:-1], f"cast(100 as bigint) as {ORDER}").select(*names)
    write(changed, table.path, part, {})
    _agree(spark, table)
    ours(200)
    _agree(spark, table, quickly=True)
    doomed = frame(spark, table.path, skipping=False).select(*names).limit(2)
    write(doomed, table.path, part, {"hoodie.datasource.write.operation": "delete"})
    _agree(spark, table, quickly=True)
    table.compact()
    compaction.compact(table.metadata)
    _agree(spark, table, quickly=True)
    often = {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "2",
        "hoodie.metadata.compact.max.delta.commits": "2",
    }
    before = len(list((table.path / METADATA_PATH / "files").glob("*.hfile")))
    for turn in range(3):
        write(some.selectExpr(f"id + {100 * (turn + 1)} as id", *names[1:]), table.path, part, often)
    assert len(list((table.path / METADATA_PATH / "files").glob("*.hfile"))) > before
    _agree(spark, table, by_key=False, quickly=True)
    for turn in range(300, 306):
        ours(turn)
    _agree(spark, table)


@pytest.mark.full
def test_validated_by_hudi(spark: SparkSession, tmp_path: Path) -> None:
    """``CALL validate_metadata_table_files`` finds no difference, after archival too."""
    table = random_table(tmp_path / "t", "region", 9)
    for turn in range(20, 45):
        table.write([{"id": turn % 5, ORDER: turn, "region": REGIONS[turn % 5 % 3], "i": turn}])
    assert (table.path / METADATA_PATH / ".hoodie" / "timeline" / "history" / "_version_").exists()
    for index in ("column.stats", "bloom.filter", "partition.stats"):
        spark.sql(f"SET hoodie.metadata.index.{index}.enable=true")
    spark.sql(f"CREATE TABLE IF NOT EXISTS judged USING hudi LOCATION '{table.path}'")
    try:
        assert spark.sql("CALL validate_metadata_table_files(table => 'judged')").collect() == []
    finally:
        spark.sql("DROP TABLE judged")
    _agree(spark, table)
