"""Columns that are maps: in log files, in base files and in logs over base files, through every reader."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hudilake.errors import UnsupportedError
from hudilake.format.definition.bucket import bucket_ids, file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.schema import RECORD_KEY_FIELD, arrow_schema, avro_schema, check_evolution
from hudilake.format.files.file_group_write import FileGroupWrite
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import TableType
from hudilake.services.compaction import run
from hudilake.services.fsck import fsck
from hudilake.table.table import HudiTable
from tests.hudilake.lake import ORDER, storage_at, writer_of
from tests.hudilake.services.compaction.steps import ALWAYS, serially
from tests.judges.agreement import assert_judges_agree
from tests.judges.hudi_spark import HudiSpark
from tests.spark_session import configured

ITEMS: dict[str, tuple[pa.DataType, Any]] = {
    "texts": (pa.string(), "größe 完成"),
    "longs": (pa.int64(), -(1 << 63)),
    "ints": (pa.int32(), 7),
    "doubles": (pa.float64(), -0.0),
    "floats": (pa.float32(), float("inf")),
    "booleans": (pa.bool_(), True),
    "decimals": (pa.decimal128(38, 2), Decimal("-9999999999.99")),
    "binaries": (pa.binary(), b"\x00\xff"),
}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        *(pa.field(name, pa.map_(pa.string(), kind)) for name, (kind, _) in ITEMS.items()),
        pa.field("qty", pa.int32()),
        pa.field(ORDER, pa.int64()),
    ]
)
BUCKETS = 2


def row(number: int, order: int) -> dict[str, Any]:
    """A row whose maps are null, empty, of one entry, or of several with a null among them."""
    maps = {
        name: (None, [], [("a", value)], [("a", value), (f"b:{order}\\x00", value), ("c", None)])[number % 4]
        for name, (_, value) in ITEMS.items()
    }
    return {"id": f"k{number}", **maps, "qty": order, ORDER: order}


def new(path: Path, kind: TableType) -> HudiTable:
    config = TableConfig("t1", ("id",), ORDER, BUCKETS, kind=TableKind(kind))
    return HudiTable.create(storage_at(path), config, SCHEMA, MetadataConfig())


def commit(table: HudiTable, upserts: Iterable[dict[str, Any]], deletes: Iterable[str] = (), order: int = 0) -> None:
    instant = table.begin()
    writer = writer_of(table, table.write_context(instant))
    written = list(upserts)
    results = []
    for bucket in range(BUCKETS):
        rows = [one for one in written if bucket_of(one["id"]) == bucket]
        gone = [key for key in deletes if bucket_of(key) == bucket]
        group = FileGroupWrite(
            "",
            file_id("t1", "", bucket),
            upserts=keyed([one["id"] for one in rows], pa.Table.from_pylist(rows, SCHEMA)) if rows else None,
            deletes=keyed(gone, pa.table({ORDER: pa.array([order] * len(gone), pa.int64())})) if gone else None,
        )
        if rows or gone:
            results += list(writer.write(table.storage, group))
    table.commit(instant, results, None)


def bucket_of(key: str) -> int:
    return int(bucket_ids(pa.array([key]), ("id",), BUCKETS)[0])


def keyed(keys: list[str], rows: pa.Table) -> pa.Table:
    return rows.add_column(0, RECORD_KEY_FIELD, pa.array(keys))


def check(path: Path, expected: dict[str, dict[str, Any]], spark: HudiSpark | None = None) -> None:
    assert_judges_agree(path, list(expected.values()), spark=spark, columns=SCHEMA.names)
    assert [found for found in fsck(storage_at(path)).findings if found.severity == "error"] == []


@pytest.mark.parametrize("kind", ["merge_on_read", "copy_on_write"])
def test_ours_and_hudi_rs(tmp_path: Path, kind: TableType) -> None:
    """Commits, a compaction and commits over its base files; both readers look after each."""
    table = new(tmp_path, kind)
    expected = {f"k{number}": row(number, 1) for number in range(12)}
    commit(table, expected.values())
    newer = {f"k{number}": row(number + 1, 2) | {"id": f"k{number}"} for number in range(3, 8)}
    commit(table, newer.values(), ["k1"], order=2)
    expected = {key: one for key, one in (expected | newer).items() if key != "k1"}
    check(tmp_path, expected)
    if kind == "merge_on_read":
        assert run(table, ALWAYS, serially) is not None
        check(tmp_path, expected)
        third = {f"k{number}": row(number + 2, 3) | {"id": f"k{number}"} for number in (2, 5, 20)}
        commit(table, third.values(), ["k7"], order=3)
        check(tmp_path, {key: one for key, one in (expected | third).items() if key != "k7"})


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.judge
def test_hudi_spark_reads_writes_and_compacts_them(tmp_path: Path, spark: SparkSession, hudi_spark: HudiSpark) -> None:
    table, uri = new(tmp_path, "merge_on_read"), str(tmp_path)
    expected = {f"k{number}": row(number, 1) for number in range(8)}
    commit(table, expected.values())
    changed = ["id", *ITEMS, "99 AS qty", f"CAST(99 AS BIGINT) AS {ORDER}"]
    options = {"hoodie.table.name": "t1", "hoodie.datasource.write.operation": "upsert"}
    theirs = hudi_spark.frame(uri).where("id IN ('k2', 'k3')").selectExpr(*changed)
    theirs.write.format("hudi").options(**options).mode("append").save(uri)
    for key in ("k2", "k3"):
        expected[key] |= {"qty": 99, ORDER: 99}
    check(tmp_path, expected, hudi_spark)
    conf = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.datasource.write.recordkey.field": "id"}
    with configured(spark, conf) as session:
        session.sql(f"CALL run_compaction(op => 'scheduleAndExecute', path => '{uri}')").collect()
    assert list(tmp_path.glob(".hoodie/timeline/*_*.commit"))
    expected["k4"] = row(6, 100) | {"id": "k4"}
    commit(HudiTable.open(storage_at(tmp_path)), [expected["k4"]])
    check(tmp_path, expected, hudi_spark)


def test_the_schema_comes_back() -> None:
    text = avro_schema(SCHEMA, "t1", with_meta=False)
    assert arrow_schema(text) == SCHEMA
    assert '{"type":"map","values":["null","long"]}' in text


def test_the_items_of_a_map_become_no_texts() -> None:
    before = pa.schema([pa.field("x", pa.map_(pa.string(), pa.int32()))])
    check_evolution(before, pa.schema([*before, pa.field("y", pa.map_(pa.string(), pa.int32()))]))
    with pytest.raises(UnsupportedError, match="cannot change"):
        check_evolution(before, pa.schema([pa.field("x", pa.map_(pa.string(), pa.string()))]))
