"""Two tables of a live MariaDB in one lake table: always the join that the server itself makes of them.

Updates, deletes, rows made again, changed keys, TRUNCATE, a new column; the stream dies again and again, and Connect
once, which delivers events twice.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from binlake.tables.audit import audit
from embedded.connect import EmbeddedConnect, database_connector, history_in_kafka
from embedded.mariadb import EmbeddedMariaDB
from hudilake.services.fsck import fsck
from hudilake.storage import open_storage
from tests.judges import hudi_rs
from tests.services.kafka import Broker
from tests.whole.live.followed import ACCOUNT, Followed, died, passed, shop_settings, truth
from tests.whole.live.workload import PASSWORD, USER

pytestmark = [pytest.mark.kafka, pytest.mark.database, pytest.mark.full]

PREFIX = "live_stitched"
SETUP = f"""{ACCOUNT}
CREATE TABLE orders (id INT PRIMARY KEY, owner VARCHAR(20), cents INT NOT NULL);
CREATE TABLE clicks (no BIGINT PRIMARY KEY, order_id BIGINT NOT NULL UNIQUE, n INT);
INSERT INTO orders SELECT seq, CONCAT('o', seq), seq FROM seq_1_to_30;
INSERT INTO clicks SELECT seq, seq + 15, seq FROM seq_1_to_30;
"""
TABLES: dict[str, Any] = {
    "defaults": {"buckets": 2, "compaction": {"mode": "inline", "after_commits": 3}},
    "stitched": [
        {
            "table": "shop.wide",
            "key": ["id"],
            "sources": [
                {"name": "orders", "match": "shop.orders", "columns": {"customer": "owner", "twice": "cents * 2"}},
                {"name": "clicks", "match": "shop.clicks", "key": ["order_id"]},
            ],
        }
    ],
}
COLUMNS = ("id", "customer", "twice", "no", "n")
JOIN = """(SELECT o.id AS id, {columns} FROM orders o LEFT JOIN clicks c ON c.order_id = o.id
UNION SELECT c.order_id AS id, {columns} FROM clicks c LEFT JOIN orders o ON c.order_id = o.id) AS wide"""


def joined(database: EmbeddedMariaDB, more: str = "") -> list[str]:
    columns = f"o.owner AS customer, o.cents * 2 AS twice, c.no AS no, c.n AS n{', c.' + more if more else ''}"
    return truth(database, JOIN.format(columns=columns), (*COLUMNS, *filter(None, [more])))


def statements(pick: random.Random, count: int) -> str:
    """Statements that change rows of both tables; those that the server refuses are ignored."""
    found = []
    for _ in range(count):
        order, other, number = (pick.randint(1, 50) for _ in range(3))
        found.append(
            pick.choice(
                [
                    f"REPLACE INTO orders VALUES ({order}, 'x{number}', {number})",
                    f"UPDATE orders SET cents = cents + 1, owner = NULLIF(owner, 'o{other}') WHERE id = {order}",
                    f"DELETE FROM orders WHERE id = {order}",
                    f"UPDATE IGNORE orders SET id = {other} WHERE id = {order}",
                    f"INSERT IGNORE INTO clicks (no, order_id, n) VALUES ({number}, {order}, {other})",
                    f"DELETE FROM clicks WHERE no = {number}",
                    f"UPDATE IGNORE clicks SET order_id = {order} WHERE no = {number}",
                    f"UPDATE clicks SET n = {other} WHERE order_id BETWEEN {order} AND {order + 5}",
                    f"UPDATE IGNORE clicks SET no = {other + 100} WHERE no = {number}",
                ]
            )
        )
    return "USE shop; " + "; ".join(found)


def follow(stream: Followed, database: EmbeddedMariaDB, more: str) -> None:
    """Until the lake is the join; the source is quiet. After Connect's death its markers come twice, so ``passed`` may
    return before all is in Kafka."""
    columns, deadline = (*COLUMNS, *filter(None, [more])), time.monotonic() + 240
    while True:
        stream.run()
        if stream.rows("shop.wide", columns) == joined(database, more):
            return
        if time.monotonic() > deadline:
            assert stream.rows("shop.wide", columns) == joined(database, more)
        time.sleep(0.5)


def test_the_lake_is_the_join_of_the_source(kafka_broker: Broker, database: EmbeddedMariaDB, tmp_path: Path) -> None:
    broker, pick, lake = kafka_broker.bootstrap_servers, random.Random(16), tmp_path / "lake"
    database.execute(SETUP)
    connector = database_connector(
        database, USER, PASSWORD, prefix=PREFIX, server_id=9203, include="shop", partitions=2
    ) | history_in_kafka(PREFIX, broker)
    connector["message.key.columns"] = "shop.clicks:order_id"  # changes of one row of the lake come in one partition
    with EmbeddedConnect(tmp_path / "connect", broker, {"shop": connector}) as connect:
        passed(database, broker, PREFIX, 1)
        stream = Followed(shop_settings(lake, broker, "stitched", PREFIX, TABLES))
        stream.run()
        assert stream.rows("shop.wide", COLUMNS) == joined(database)
        for number in range(2, 10):
            database.execute(statements(pick, 60))
            if number == 4:
                connect.kill()
                database.execute(statements(pick, 60))
                connect.start()
            if number == 6:
                database.execute("TRUNCATE shop.clicks")
                database.execute(statements(pick, 60))
            if number == 8:
                database.execute("ALTER TABLE shop.clicks ADD COLUMN why VARCHAR(9)")
                database.execute("UPDATE shop.clicks SET why = CONCAT('w', n)")
            passed(database, broker, PREFIX, number)
            died(stream, pick)
            follow(stream, database, "why" if number >= 8 else "")
        connect.check()
    judged = hudi_rs.snapshot(lake / "shop" / "wide").select(["id", "customer", "twice", "no", "n", "why"]).to_pylist()
    own = stream.rows("shop.wide", ("id", "customer", "twice", "no", "n", "why"))
    assert len(judged) == len(own) > 20
    place = open_storage(str(lake / "shop" / "wide"))
    assert audit(place).errors == []
    assert [f.what for f in fsck(place, grace_ms=0).findings if f.severity == "error"] == []
    assert not (lake / "_quarantine").exists()
