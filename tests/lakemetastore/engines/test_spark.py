"""Spark SQL and Hudi's HiveSync over two services on one store; Spark knows both addresses."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from lakemetastore.service.service import Service
from tests.lakemetastore.engines.shop_lake import ShopLake
from tests.lakemetastore.engines.spark_sql import SparkSql, SqlError
from tests.lakemetastore.service.served import served
from tests.lakemetastore.service.test_supervisor import until

pytestmark = pytest.mark.spark
ROWS = "SELECT id, owner, region FROM {} ORDER BY id"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def lake(place: Path) -> ShopLake:
    lake = ShopLake(place).fill()
    lake.register(str(place / "store"), place / "warehouse")
    return lake


@pytest.fixture(scope="module")
def services(lake: ShopLake, place: Path) -> Iterator[list[Service]]:
    with served(place) as one, served(place) as other:
        yield [one, other]


@pytest.fixture(scope="module")
def spark(services: list[Service], place: Path) -> Iterator[SparkSql]:
    with SparkSql(",".join(service.thrift for service in services), place) as session:
        yield session


def tuples(rows: list[list[object]]) -> tuple[tuple[object, ...], ...]:
    return tuple(map(tuple, rows))


def test_spark_reads_the_lakes_tables_rightly(spark: SparkSql, lake: ShopLake) -> None:
    assert [row[1] for row in spark.sql("SHOW TABLES IN shop")] == ["carts", "orders", "orders_ro", "orders_rt"]
    for name, wanted in {
        "orders": lake.rows,
        "orders_rt": lake.rows,
        "orders_ro": lake.compacted,
        "carts": lake.rows,
    }.items():
        assert tuples(spark.sql(ROWS.format(f"shop.{name}"))) == wanted, name
    assert spark.column("SELECT id FROM shop.orders WHERE region = 'us' ORDER BY id") == [3, 4]
    plan = "\n".join(map(str, spark.column("EXPLAIN FORMATTED SELECT id FROM shop.orders WHERE region = 'us'")))
    assert "region=eu" not in plan
    assert spark.column("SHOW PARTITIONS shop.orders") == ["region=eu", "region=us"]


#: Statements, each with the rows that it gives on Hive Metastore 3.1.3, too. ``{w}``: the warehouse.
STATEMENTS: tuple[tuple[str, list[list[object]]], ...] = (
    ("CREATE DATABASE d LOCATION '{w}/d.db'", []),
    ("CREATE TABLE d.p (a INT, b STRING) PARTITIONED BY (dt STRING) STORED AS PARQUET", []),
    ("INSERT INTO d.p PARTITION (dt = '1') VALUES (1, 'x')", []),
    ("INSERT INTO d.p PARTITION (dt = '2') VALUES (2, 'y')", []),
    ("SELECT a, b, dt FROM d.p WHERE dt = '2'", [[2, "y", "2"]]),
    ("SELECT a, b, dt FROM d.p WHERE dt LIKE '1%'", [[1, "x", "1"]]),
    ("SELECT a, b, dt FROM d.p WHERE dt IN ('1', '3')", [[1, "x", "1"]]),
    ("ALTER TABLE d.p ADD PARTITION (dt = '3')", []),
    ("ALTER TABLE d.p DROP PARTITION (dt = '3')", []),
    ("ALTER TABLE d.p PARTITION (dt = '1') RENAME TO PARTITION (dt = '7')", []),
    ("SHOW PARTITIONS d.p", [["dt=2"], ["dt=7"]]),
    ("INSERT INTO d.p PARTITION (dt = '1') VALUES (4, 'new')", []),
    ("SELECT a, dt FROM d.p ORDER BY a", [[1, "7"], [2, "2"], [4, "1"]]),
    ("INSERT OVERWRITE d.p PARTITION (dt = '1') VALUES (5, 'over')", []),
    ("ALTER TABLE d.p DROP PARTITION (dt = '1')", []),
    ("SELECT a, dt FROM d.p ORDER BY a", [[1, "7"], [2, "2"]]),
    ("ALTER TABLE d.p ADD COLUMNS (c INT)", []),
    ("ALTER TABLE d.p RENAME TO d.q", []),
    ("SELECT a, b, c, dt FROM d.q ORDER BY a", [[1, "x", None, "7"], [2, "y", None, "2"]]),
    ("CREATE TABLE d.e (a INT) PARTITIONED BY (k STRING) STORED AS PARQUET LOCATION '{w}/../away'", []),
    ("INSERT INTO d.e PARTITION (k = 'u') VALUES (5)", []),
    ("ALTER TABLE d.e DROP PARTITION (k = 'u')", []),
    ("SELECT * FROM d.e", []),
    ("MSCK REPAIR TABLE d.e", []),
    ("SELECT * FROM d.e", [[5, "u"]]),
    ("CREATE VIEW d.v AS SELECT a FROM d.q", []),
    ("SELECT sum(a) FROM d.v", [[3]]),
    ("SHOW TABLES IN d", [["d", "e", False], ["d", "q", False], ["d", "v", False]]),
    ("CREATE TABLE d.s (a INT, b INT) USING parquet PARTITIONED BY (b)", []),
    ("INSERT INTO d.s VALUES (1, 2), (3, 4)", []),
    ("SELECT a, b FROM d.s WHERE b = 4", [[3, 4]]),
    ("ALTER TABLE d.s RENAME TO d.s2", []),
    ("INSERT INTO d.s2 VALUES (5, 6)", []),
    ("SELECT a, b FROM d.s2 ORDER BY a", [[1, 2], [3, 4], [5, 6]]),
    ("CREATE TABLE d.whole (a INT) USING parquet", []),
    ("INSERT INTO d.whole VALUES (1), (2)", []),
    ("ALTER TABLE d.whole RENAME TO d.whole2", []),
    ("SELECT a FROM d.whole2 ORDER BY a", [[1], [2]]),
    ("TRUNCATE TABLE d.whole2", []),
    ("SELECT a FROM d.whole2", []),
    ("CREATE TABLE d.plain (a INT) STORED AS PARQUET", []),
    ("SELECT a FROM d.plain", []),
    ("INSERT INTO d.plain VALUES (1)", []),
    ("SELECT a FROM d.plain", [[1]]),
    ("CREATE TABLE d.orc (a INT) STORED AS ORC", []),
    ("INSERT INTO d.orc VALUES (1)", []),
    ("SELECT a FROM d.orc", [[1]]),
    ("DROP TABLE d.e", []),
    ("DROP DATABASE d CASCADE", []),
    ("SHOW DATABASES", [["default"], ["shop"]]),
)


@pytest.mark.full
@pytest.mark.lines
def test_spark_makes_changes_and_drops_tables(spark: SparkSql, place: Path) -> None:
    warehouse = place / "warehouse"
    for statement, wanted in STATEMENTS:
        assert spark.sql(statement.format(w=warehouse.as_uri())) == wanted, statement
    assert not (warehouse / "d.db" / "q").exists()
    assert list((place / "away").rglob("*.parquet")) != []  # an external table keeps its files
    with pytest.raises(SqlError, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM d.q")


@pytest.mark.full
def test_hive_sync_writes_the_tables_of_a_lake(spark: SparkSql, services: list[Service], place: Path) -> None:
    (place / "synced").mkdir()
    other = ShopLake(place / "synced").fill()
    words = ["--database", "synced", "--table", "orders", "--base-path", str(other.path / "shop" / "orders")]
    words += ["--sync-mode", "hms", "--metastore-uris", services[0].thrift, "--partitioned-by", "region"]
    words += ["--partition-value-extractor", "org.apache.hudi.hive.MultiPartKeysValueExtractor"]
    words += ["--user", "x", "--pass", "x", "--jdbc-url", "x", "--base-file-format", "PARQUET"]
    spark.hive_sync(*words)
    assert [row[1] for row in spark.sql("SHOW TABLES IN synced")] == ["orders", "orders_ro", "orders_rt"]
    for name, wanted in {"orders": other.rows, "orders_rt": other.rows, "orders_ro": other.compacted}.items():
        assert tuples(spark.sql(ROWS.format(f"synced.{name}"))) == wanted, name
    other.put("u", [(9, "ida", "ap")])
    spark.hive_sync(*words)
    for name in ("orders", "orders_ro", "orders_rt"):
        assert spark.column(f"SHOW PARTITIONS synced.{name}") == ["region=ap", "region=eu", "region=us"], name
    spark.sql("REFRESH TABLE synced.orders")
    assert spark.column("SELECT owner FROM synced.orders WHERE region = 'ap'") == ["ida"]


@pytest.mark.full
def test_spark_goes_on_while_processes_of_both_services_are_killed(
    spark: SparkSql, services: list[Service], lake: ShopLake
) -> None:
    """One process is killed at a time: Spark goes on with the other address before it is there again."""
    for service in services:
        pid = service.processes.pids["0"]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert tuples(spark.sql(ROWS.format("shop.orders"))) == lake.rows
        spark.sql("REFRESH TABLE shop.orders")
        assert len(spark.sql("SHOW TABLES IN shop")) == 4
        until(partial(is_well, service))


def is_well(service: Service) -> bool:
    return service.processes.reasons() == ()
