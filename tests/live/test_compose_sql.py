"""The init SQL of docker/compose.yaml on a real server: MariaDB, for MySQL's image may not be at hand."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.services.mariadb import start_mariadb

SQL = ROOT / "docker" / "compose" / "shop.sql"
# what MySQL's image does before it runs the file
IMAGE_DOES = (
    "CREATE DATABASE shop; CREATE USER 'debezium'@'%' IDENTIFIED BY 'cdc'; GRANT ALL ON shop.* TO 'debezium'@'%';"
)


@pytest.mark.kafka
def test_the_shop_is_made_and_its_user_may_read_the_binlog() -> None:
    with tempfile.TemporaryDirectory(prefix="db") as place, start_mariadb(Path(place)) as server:
        server.execute(f"{IMAGE_DOES} {SQL.read_text()}")
        assert server.execute("SELECT COUNT(*), SUM(total) FROM shop.orders") == ["4\t1158.91"]
        granted = " ".join(server.execute("SHOW GRANTS FOR 'debezium'@'%'"))
        assert "REPLICATION SLAVE" in granted
        assert "RELOAD" in granted
