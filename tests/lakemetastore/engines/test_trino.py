"""Trino 476 over a service; `make test-trino` runs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedded.trino import EmbeddedTrino
from tests.lakemetastore.engines.shop_lake import ShopLake
from tests.lakemetastore.service.served import served

pytestmark = pytest.mark.trino
ROWS = "SELECT id, owner, region FROM {} ORDER BY id"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> ShopLake:
    place = tmp_path_factory.mktemp("trino")
    lake = ShopLake(place).fill()
    lake.register(str(place / "store"), place / "warehouse")
    return lake


@pytest.fixture(scope="module")
def trino(lake: ShopLake) -> Iterator[EmbeddedTrino]:
    place = lake.path.parent
    with served(place) as service:
        both = {"hive.metastore.uri": service.thrift, "fs.hadoop.enabled": "true"}
        catalogs = {name: {"connector.name": name, **both} for name in ("hive", "hudi")}
        with EmbeddedTrino(place / "node", catalogs) as trino:
            yield trino


def rows(trino: EmbeddedTrino, table: str) -> tuple[tuple[object, ...], ...]:
    return tuple(map(tuple, trino.query(ROWS.format(table))))


def test_trino_finds_the_tables(trino: EmbeddedTrino) -> None:
    assert ["shop"] in trino.query("SHOW SCHEMAS FROM hudi")
    assert trino.query("SHOW TABLES FROM hudi.shop") == [["carts"], ["orders"], ["orders_ro"], ["orders_rt"]]


def test_trino_reads_copy_on_write_tables_as_they_are(trino: EmbeddedTrino, lake: ShopLake) -> None:
    assert rows(trino, "hudi.shop.carts") == lake.rows
    assert trino.query("SELECT id FROM hudi.shop.carts WHERE region = 'us' ORDER BY id") == [[3], [4]]


@pytest.mark.parametrize("table", ["orders", "orders_ro", "orders_rt"])
def test_trino_reads_merge_on_read_tables_as_of_their_compaction(
    trino: EmbeddedTrino, lake: ShopLake, table: str
) -> None:
    """Whatever the name says: docs/engines.md tells it. A Trino that reads log files fails here, and is welcome."""
    assert rows(trino, f"hudi.shop.{table}") == lake.compacted


def test_trino_makes_and_drops_a_table_of_its_own(trino: EmbeddedTrino, lake: ShopLake) -> None:
    place = lake.path.parent / "warehouse" / "made.db"
    trino.query(f"CREATE SCHEMA hive.made WITH (location = '{place.as_uri()}')")
    trino.query("CREATE TABLE hive.made.t (a bigint, d varchar) WITH (partitioned_by = ARRAY['d'])")
    trino.query("INSERT INTO hive.made.t VALUES (1, 'x'), (2, 'y')")
    assert trino.query("SELECT a FROM hive.made.t WHERE d = 'y'") == [[2]]
    assert trino.query("SELECT a FROM hive.made.t WHERE d LIKE 'x%'") == [[1]]
    trino.query("DROP TABLE hive.made.t")
    trino.query("DROP SCHEMA hive.made")
    assert ["made"] not in trino.query("SHOW SCHEMAS FROM hive")
