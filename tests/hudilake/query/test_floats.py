"""Conditions and joins over floats with NaN give what DuckDB gives over its own tables, by every way into DuckDB."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import hudilake
from hudilake.query.join.engine import ArrowStream, JoinLimits, bounded_connection, run

_INNER = pa.struct({"z": pa.float32()})
SCHEMA = pa.schema(
    {"id": pa.int64(), "seq": pa.int64(), "f": pa.float64(), "s": pa.struct({"x": pa.float64(), "y": _INNER})}
)
VALUES = [math.nan, 1.0, -0.0, None, math.inf, 2.5]
ROWS = pa.Table.from_pylist(
    [
        *({"id": i, "seq": 1, "f": value, "s": {"x": value, "y": {"z": value}}} for i, value in enumerate(VALUES)),
        {"id": len(VALUES), "seq": 1},
    ],
    SCHEMA,
)
CONDITIONS = ["f > 1", "s.x > 1", "s.y.z > 1", "s.x <> 1", "s.x IN (1, 'nan')", "s IS NULL", "s.y.z IS NULL", "f = f"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> hudilake.Table:
    path: Path = tmp_path_factory.mktemp("floats")
    made = hudilake.create_table(str(path / "t"), SCHEMA, key="id", order_by="seq", buckets=2)
    made.upsert(ROWS)
    return made


@pytest.fixture(scope="module")
def whole() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"python_enable_replacements": False}) as connection:
        connection.register("rows", ROWS)
        connection.execute("CREATE TABLE t AS SELECT * FROM rows")
        yield connection


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition(table: hudilake.Table, whole: duckdb.DuckDBPyConnection, condition: str) -> None:
    sql = f"SELECT id FROM t WHERE {condition}"
    expected = sorted(whole.sql(sql).fetchall())
    assert [(row["id"],) for row in hudilake.sql(f"{sql} ORDER BY id", {"t": table}).to_pylist()] == expected
    with duckdb.connect() as connection:
        relation = table.scan().to_duckdb(connection)
        assert sorted(relation.filter(condition).project("id").fetchall()) == expected


@pytest.mark.parametrize("how", ["JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN"])
@pytest.mark.parametrize("on", ["l.id = r.id AND l.f = r.f", "l.f = r.f", "l.s.x = r.s.x"])
def test_a_join(table: hudilake.Table, whole: duckdb.DuckDBPyConnection, how: str, on: str) -> None:
    sql = f"SELECT l.id FROM t l {how} t r ON {on} ORDER BY l.id"
    expected = [row[0] for row in whole.sql(sql).fetchall()]
    assert hudilake.sql(sql, {"t": table}).column(0).to_pylist() == expected
    by_bucket = sql.replace("t l", "l").replace("t r", "r")
    streams = {name: ArrowStream(SCHEMA, ROWS.to_batches()) for name in ("l", "r")}
    with bounded_connection(JoinLimits(64)) as (connection, _):
        batches = list(run(connection, by_bucket, streams, pa.schema({"id": pa.int64()})))
    assert pa.Table.from_batches(batches).column(0).to_pylist() == expected
