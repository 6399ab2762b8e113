"""The init SQL of docker/compose.yaml on a real server: MariaDB, for MySQL's image may not be at hand."""

from __future__ import annotations

import pytest

from embedded.mariadb import EmbeddedMariaDB
from tests.paths import ROOT

SQL = ROOT / "docker" / "compose" / "shop.sql"
# what MySQL's image does before it runs the file
IMAGE_DOES = (
    "CREATE DATABASE shop; CREATE USER 'debezium'@'%' IDENTIFIED BY 'cdc'; GRANT ALL ON shop.* TO 'debezium'@'%';"
)


@pytest.mark.full
@pytest.mark.database
def test_the_shop_is_made_and_its_user_may_read_the_binlog(database: EmbeddedMariaDB) -> None:
    database.execute(f"{IMAGE_DOES} {SQL.read_text()}")
    assert database.execute("SELECT COUNT(*), SUM(total) FROM shop.orders") == ["4\t1158.91"]
    granted = " ".join(database.execute("SHOW GRANTS FOR 'debezium'@'%'"))
    assert "REPLICATION SLAVE" in granted
    assert "RELOAD" in granted
