"""Our incremental and time travel reads give what Hudi's own give."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from hudilake.format.definition.config import TableConfig
from hudilake.read import And, Eq, Incremental, Query, ReadOptimized, Snapshot, TableReader
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.hudilake.lake import commit, deletes, new_table, upserts
from tests.hudilake.services.compaction import compact
from tests.judges.hudi_spark import HudiSpark
from tests.selection import first

pytestmark = [pytest.mark.spark, pytest.mark.judge]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nothing arrives late: Hudi's incremental read merges only the files of its window."""
    path = tmp_path_factory.mktemp("judged")
    table = new_table(path)
    commit(table, upserts(range(8), 100, "a") + upserts(range(4), 100, "a", "d2"))
    commit(table, upserts([1, 2], 200, "b") + deletes([3], 200))
    compact(table)
    commit(table, upserts([2, 9], 300, "c") + deletes([4], 300))
    commit(table, upserts([0], 400, "d", "d2"))
    return path


def ours(path: Path, query: Query) -> list[tuple[int, str, str]]:
    reader = TableReader.open(str(path))
    batches = reader.batches(reader.plan(query, columns=["id", "name", "day"]))
    return sorted((r["id"], r["name"], r["day"]) for batch in batches for r in batch.to_pylist())


def theirs(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return sorted((r["id"], r["name"], r["day"]) for r in rows)


@pytest.mark.full
def test_incremental(lake: Path, hudi_spark: HudiSpark) -> None:
    commits = [c.completion_time or "" for c in TableReader.open(str(lake)).table.timeline.completed()]
    seen = []
    for begin in ("19700101000000000", *commits):
        for end in (c for c in commits if c > begin):
            seen.append((begin, end))
            judged = theirs(hudi_spark.incremental(lake.as_uri(), begin, end))
            assert ours(lake, Incremental(begin, end)) == judged, (begin, end)
    assert len(seen) > 8


@pytest.mark.full
def test_time_travel_and_read_optimized(lake: Path, hudi_spark: HudiSpark) -> None:
    for done in TableReader.open(str(lake)).table.timeline.completed():
        for moment in (done.requested_time, done.completion_time or ""):
            assert ours(lake, Snapshot(moment)) == theirs(hudi_spark.as_of(lake.as_uri(), moment)), moment
    assert ours(lake, ReadOptimized()) == theirs(hudi_spark.read_optimized(lake.as_uri()))


# -- record keys as Hudi spells and places them

KEYS: dict[str, tuple[list[pa.DataType], list[list[Any]]]] = {
    "whole": ([pa.int64()], [[-(2**63)], [-7], [0], [12], [2**63 - 1]]),
    "text": ([pa.string()], [["a"], ["日本語"], ["😀"], ["\ue000"], ["a,b:c"], ["it's"]]),
    "flag": ([pa.bool_()], [[True], [False]]),
    "day": ([pa.date32()], [[date(1969, 12, 31)], [date(2024, 2, 29)], [date(9999, 12, 31)]]),
    "price": ([pa.decimal128(10, 2)], [[Decimal("-0.05")], [Decimal(0)], [Decimal("1.5")], [Decimal("12345678.9")]]),
    "tiny": ([pa.decimal128(20, 10)], [[Decimal("1E-7")], [Decimal("1E-10")], [Decimal(0)], [Decimal("-3.5")]]),
    "composite": ([pa.int32(), pa.string()], [[1, "x"], [1, "y"], [2, "x,y:z"], [3, ""]]),
    "mixed": (
        [pa.decimal128(10, 2), pa.date32()],
        [[Decimal("1.5"), date(2024, 1, 1)], [Decimal(0), date(1970, 1, 1)]],
    ),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", first(2, KEYS))
def test_every_key_that_hudi_wrote_is_found_by_its_bucket(hudi_spark: HudiSpark, tmp_path: Path, kind: str) -> None:
    types, keys = KEYS[kind]
    names = tuple(f"k{i}" for i in range(len(types)))
    schema = pa.schema([*zip(names, types, strict=True), ("o", pa.int64())])
    HudiTable.create(open_storage(str(tmp_path)), TableConfig("keyed", names, "o", 64), schema)
    rows = [(*key, 1) for key in keys]
    frame = hudi_spark.session.createDataFrame(rows, from_arrow_schema(schema))
    writer = {"hoodie.table.name": "keyed", "hoodie.metadata.enable": "false"}
    frame.write.format("hudi").options(**writer).mode("append").save(str(tmp_path))
    reader = TableReader.open(str(tmp_path))
    for key in keys:
        condition = And(tuple(Eq(name, value) for name, value in zip(names, key, strict=True)))
        plan = reader.plan(condition=condition, columns=list(names))
        assert [step.name for step in plan.steps][1:] == ["bucket"]
        assert 0 < len(plan.slices) < len(keys)
        assert [list(row.values()) for batch in reader.batches(plan) for row in batch.to_pylist()] == [key]
