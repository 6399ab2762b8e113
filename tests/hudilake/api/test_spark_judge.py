"""Hudi Spark reads what the façade writes, on every kind of table that it writes, before and after services."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudilake
from tests.hudilake.api.tables import APPENDED, KEYED, SCHEMA, Model, assert_holds, keyed, row
from tests.judges.hudi_spark import HudiSpark
from tests.selection import first

pytestmark = [pytest.mark.spark, pytest.mark.judge]


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", first(2, KEYED))
def test_tables_with_a_key(kind: str, tmp_path: Path, hudi_spark: HudiSpark) -> None:
    table = keyed(tmp_path / "t", **KEYED[kind])
    model = Model(("id", "name", "day") if kind == "two keys" else ("id", "day"))
    for rows in ([row(n, 1) for n in range(12)], [row(n, 3, "b") for n in range(3, 7)], [row(4, 2, "late")]):
        table.upsert(rows)
        model.upsert(rows)
    gone = [row(1, 0), row(5, 0, "b"), row(99, 0)]
    table.delete(gone)
    model.delete(gone)
    assert_holds(table, model.live(), hudi_spark)
    if "type" not in KEYED[kind]:
        table.compact()
        assert_holds(table, model.live(), hudi_spark)


@pytest.mark.parametrize("kind", first(1, APPENDED))
def test_appended_rows(kind: str, tmp_path: Path, hudi_spark: HudiSpark) -> None:
    table = hudilake.create_table(str(tmp_path / "t"), SCHEMA, partition_by="day", **APPENDED[kind])
    rows = [row(n, n) for n in range(20)]
    table.append(rows[:10])
    table.append(rows[10:])
    assert_holds(table, rows, hudi_spark)
    order = hudilake.OrderPolicy(columns=("id",), curve="linear")
    table.cluster(hudilake.ClusteringPolicy(order_by=order))
    assert_holds(table, rows, hudi_spark)


def test_a_timestamp_orders_rows_and_deletes(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    stamps = pa.array([10, 20, 30], pa.timestamp("us", "UTC")).to_pylist()
    schema = pa.schema({"id": pa.int64(), "at": pa.timestamp("us", "UTC")})
    table = hudilake.create_table(str(tmp_path / "t"), schema, key="id", order_by="at")
    table.upsert([{"id": n, "at": stamps[1]} for n in range(4)])
    table.upsert([{"id": 0, "at": stamps[0]}, {"id": 1, "at": stamps[2]}])
    table.delete([{"id": 2}])
    rows = [{"id": 0, "at": stamps[1]}, {"id": 1, "at": stamps[2]}, {"id": 3, "at": stamps[1]}]
    assert_holds(table, rows, hudi_spark)
