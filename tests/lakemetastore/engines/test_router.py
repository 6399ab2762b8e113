"""A join of the lake's metastore and a classic Hive Metastore, by Spark through the router."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.hms import EmbeddedHiveMetastore
from lakemetastore.service.service import Service
from tests.lakemetastore.engines.shop_lake import ShopLake
from tests.lakemetastore.engines.spark_sql import SparkSql, SqlError
from tests.lakemetastore.service.served import served

pytestmark = [pytest.mark.spark, pytest.mark.hms, pytest.mark.full]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("router")


@pytest.fixture(scope="module")
def service(place: Path, hms: EmbeddedHiveMetastore) -> Iterator[Service]:
    ShopLake(place).fill().register(str(place / "store"), place / "warehouse")
    backends = {"lake": {}, "classic": {"uri": hms.uri}}
    rules = [{"match": "routed_*", "to": "classic"}, {"match": "*", "to": "lake"}]
    with served(place, router={"backends": backends, "primary": "lake", "rules": rules}) as service:
        yield service


def test_spark_joins_tables_of_both_metastores(service: Service, place: Path) -> None:
    with SparkSql(service.thrift, place) as spark:
        spark.sql(f"CREATE DATABASE routed_sales LOCATION '{(place / 'classic').as_uri()}'")
        spark.sql("CREATE TABLE routed_sales.paid (id BIGINT, cents INT) STORED AS PARQUET")
        spark.sql("INSERT INTO routed_sales.paid VALUES (1, 100), (2, 200), (4, 400)")
        joined = "SELECT o.owner, p.cents FROM shop.orders o JOIN routed_sales.paid p ON o.id = p.id ORDER BY 2"
        assert spark.sql(joined) == [["ANN", 100], ["dot", 400]]
        assert {"default", "shop", "routed_sales"} <= set(spark.column("SHOW DATABASES"))
        spark.sql("DROP DATABASE routed_sales CASCADE")
        with pytest.raises(SqlError, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.sql("SELECT * FROM routed_sales.paid")
    assert 'backend="classic"' in service.processes.render()
