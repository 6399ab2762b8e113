"""Tables that Hudi Spark wrote, skipped by the index that Hudi Spark made: pruned read = unpruned read."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema

from hudilake.read import Filter, TableReader
from tests.hudilake.read import oracle
from tests.hudilake.read.lakes import ids, passing
from tests.hypothesis_profile import scaled
from tests.judges.hudi_spark import HudiSpark

pytestmark = [pytest.mark.full, pytest.mark.spark, pytest.mark.judge]

#: Values that Java and SQL order differently, and the ends of types.
POOLS: dict[str, list[Any]] = {
    "n": [-(2**31), -3, 0, 1, 2, 2**31 - 1],
    "big": [-(2**63), -1, 0, 3, 2**53 + 1, 2**63 - 1],
    "price": [Decimal("-2.99"), Decimal("-0.01"), Decimal(0), Decimal("0.5"), Decimal("3.00")],
    "wide": [Decimal("-1E+27"), Decimal("0.0000000001"), Decimal(0), oracle.WIDEST],
    "single": [0.0, -0.0, 0.5, -1.5, math.nan, math.inf],
    "double": [0.0, -0.0, 0.1, -1.5, math.nan, -math.inf, 5e-324],
    "name": ["", "a", "ab", "é", "\ud7ff", "\ue000", "\uffff", "\U0001f600", "x" * 300, "y" * 5000],
    "raw": [b"", b"\x00", b"\x7f", b"\x80", b"\xff\x00"],
    "flag": [True, False],
    "day": [date(1969, 12, 31), date(1970, 1, 1), date(1970, 1, 4)],
    "at": [
        datetime(1969, 12, 31, 12, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1970, 1, 2, 0, 0, 0, 1, UTC),
    ],
}
SCHEMA = pa.schema([("id", pa.int64()), *((name, oracle.COLUMNS[name]) for name in POOLS), ("o", pa.int64())])
WRITER = {
    "hoodie.table.name": "indexed",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "o",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "6",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.embed.timeline.server": "false",
}


def rows(chance: random.Random, keys: range, order: int) -> list[tuple[Any, ...]]:
    """One commit; each has few values of each column, so that files differ."""
    few = {name: chance.sample(pool, 2) for name, pool in POOLS.items()}
    return [
        (key, *(None if chance.random() < 0.1 else chance.choice(few[name]) for name in POOLS), order) for key in keys
    ]


@pytest.fixture(scope="module")
def lake(hudi_spark: HudiSpark, tmp_path_factory: pytest.TempPathFactory) -> tuple[TableReader, list[dict[str, Any]]]:
    """Base files, log files, a compaction, deletes; (a reader, all rows)."""
    path, chance = tmp_path_factory.mktemp("theirs"), random.Random(11)
    compacting = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    deleting = {"hoodie.datasource.write.operation": "delete"}
    steps: list[tuple[range, dict[str, str]]] = [
        (range(40), {}),
        (range(0, 40, 5), {}),
        (range(2, 5), compacting),
        (range(36, 50), {}),
        (range(3, 47, 4), {}),
        (range(5, 7), deleting),
    ]
    for order, (keys, options) in enumerate(steps, 1):
        frame = hudi_spark.session.createDataFrame(rows(chance, keys, order), from_arrow_schema(SCHEMA))
        frame.write.format("hudi").options(**(WRITER | options)).mode("append").save(str(path))
    unpruned = TableReader.open(str(path), use_index=False)
    everything = [row for batch in unpruned.batches(unpruned.plan()) for row in batch.to_pylist()]
    return TableReader.open(str(path)), everything


def test_the_lake_has_what_it_should(lake: tuple[TableReader, list[dict[str, Any]]]) -> None:
    """If it had not, the property below would prove little."""
    reader, everything = lake
    plan = reader.plan()
    assert len(everything) == 48
    assert any(item.base_file is not None for item in plan.slices)
    assert any(item.log_files for item in plan.slices)
    assert {"files", "column_stats", "bloom_filters"} <= set(reader.table.config.metadata_partitions)
    lookup = reader.plan(condition="id = 3 AND n IS NOT NULL")
    assert [step.name for step in lookup.steps] == ["table", "column stats", "key range", "bloom filters"]
    assert len(lookup.slices) < len(plan.slices)


@settings(max_examples=scaled(400), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(part=oracle.keyed_filters(list(POOLS), st.integers(-1, 52)))
def test_a_pruned_read_is_an_unpruned_one(lake: tuple[TableReader, list[dict[str, Any]]], part: Filter) -> None:
    reader, everything = lake
    plan = reader.plan(condition=part, columns=["id"])
    assert not plan.warnings
    assert ids(reader, plan) == passing(everything, part)
