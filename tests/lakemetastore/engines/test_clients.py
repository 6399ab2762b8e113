"""Python clients over a service: PyIceberg's HiveCatalog and pymetastore."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import NoSuchTableError
from pymetastore.metastore import HMS

from lakemetastore.service.service import Service
from tests.lakemetastore.engines.shop_lake import ShopLake
from tests.lakemetastore.service.served import served
from tests.lakemetastore.service.tcp_part import HOST


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("clients")
    ShopLake(place).fill().register(str(place / "store"), place / "warehouse")
    return place


@pytest.fixture(scope="module")
def service(place: Path) -> Iterator[Service]:
    with served(place) as service:
        yield service


@pytest.mark.full
def test_pymetastore_sees_the_lakes_tables(service: Service, place: Path) -> None:
    with HMS.create(HOST, service.ports.thrift) as hms:
        assert hms.list_databases() == ["default", "shop"]
        assert hms.list_tables("shop") == ["carts", "orders", "orders_ro", "orders_rt"]
        table = hms.get_table("shop", "orders")
        assert table.parameters["spark.sql.sources.provider"] == "hudi"
        assert [column.name for column in table.partition_columns] == ["region"]
        assert hms.list_partitions("shop", "orders") == ["region=eu", "region=us"]
        assert hms.get_partition("shop", "orders", "region=eu").sd.location.endswith("/shop/orders/region=eu")


def test_pyiceberg_makes_changes_and_drops_a_table(service: Service, place: Path) -> None:
    catalog = HiveCatalog("ours", uri=service.thrift, warehouse=(place / "iceberg").as_uri())
    catalog.create_namespace("ice")
    rows = pa.table({"a": pa.array([1, 2], pa.int64())})
    table = catalog.create_table("ice.t", schema=rows.schema)
    table.append(rows)
    table.append(rows)
    assert sorted(catalog.load_table("ice.t").scan().to_arrow()["a"].to_pylist()) == [1, 1, 2, 2]
    catalog.rename_table("ice.t", "ice.u")
    assert catalog.list_tables("ice") == [("ice", "u")]
    with pytest.raises(NoSuchTableError):
        catalog.load_table("ice.t")
    catalog.drop_table("ice.u")
    catalog.drop_namespace("ice")
    assert ("ice",) not in catalog.list_namespaces()


def test_pyiceberg_lists_what_is_no_iceberg_table_among_others(service: Service) -> None:
    catalog = HiveCatalog("ours", uri=service.thrift)
    assert ("shop",) in catalog.list_namespaces()
    with pytest.raises(Exception, match="table_type missing"):
        catalog.load_table("shop.orders")
