"""A live MariaDB through Debezium: tables that swap names, get another key, and are made again. No Spark is needed.

One stream follows while the statements run; another one begins when all of them lie in Kafka.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.connect import EmbeddedConnect, database_connector, history_in_kafka
from embedded.mariadb import EmbeddedMariaDB
from tests.services.kafka import Broker
from tests.whole.live.followed import ACCOUNT, Followed, passed, shop_settings, truth
from tests.whole.live.workload import PASSWORD, USER

pytestmark = [pytest.mark.kafka, pytest.mark.database, pytest.mark.full]

PREFIX = "live_names"
SETUP = f"""{ACCOUNT}
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), v INT);
CREATE TABLE k (id INT PRIMARY KEY, code VARCHAR(20) NOT NULL, v INT);
CREATE TABLE r (id INT PRIMARY KEY, v INT);
INSERT INTO t SELECT seq, CONCAT('t', seq), seq FROM seq_1_to_20;
INSERT INTO k SELECT seq, CONCAT('k', seq), seq FROM seq_1_to_20;
INSERT INTO r SELECT seq, seq FROM seq_1_to_20;
"""
STEPS = (
    """UPDATE t SET v = 100 WHERE id = 3; CREATE TABLE n LIKE t; ALTER TABLE n ADD COLUMN tier INT DEFAULT 3;
    INSERT INTO n SELECT id, name, v, 4 FROM t; RENAME TABLE t TO old, n TO t;
    UPDATE t SET v = 7 WHERE id = 1; INSERT INTO old VALUES (21, 'old', 21); DELETE FROM old WHERE id = 2;""",
    """UPDATE k SET code = 'k2' WHERE id = 1; UPDATE k SET code = 'one' WHERE id = 1; DELETE FROM k WHERE id = 5;
    ALTER TABLE k DROP PRIMARY KEY, ADD PRIMARY KEY (code);
    UPDATE k SET v = 0 WHERE code = 'one'; INSERT INTO k VALUES (1, 'same id', 1); DELETE FROM k WHERE code = 'k7';""",
    """UPDATE r SET v = 0; DROP TABLE r; CREATE TABLE r (code VARCHAR(9) PRIMARY KEY, id INT);
    INSERT INTO r VALUES ('a', 1), ('b', 1);
    RENAME TABLE old TO other; CREATE TABLE old (id INT PRIMARY KEY, what VARCHAR(9));
    INSERT INTO old VALUES (1, 'new');
    RENAME TABLE t TO x, other TO t, x TO other; UPDATE t SET v = 9 WHERE id = 9;
    UPDATE other SET tier = 9 WHERE id = 9;""",
)
TABLES = {
    "t": ("id", "name", "v"),
    "other": ("id", "name", "v", "tier"),
    "old": ("id", "what"),
    "k": ("id", "code", "v"),
    "r": ("code", "id"),
}


def test_names_and_keys_of_a_live_database(kafka_broker: Broker, database: EmbeddedMariaDB, tmp_path: Path) -> None:
    broker = kafka_broker.bootstrap_servers
    database.execute(SETUP)
    connector = database_connector(
        database, USER, PASSWORD, prefix=PREFIX, server_id=9201, include="shop", partitions=2
    ) | history_in_kafka(PREFIX, broker)
    with EmbeddedConnect(tmp_path / "connect", broker, {"shop": connector}) as connect:
        passed(database, broker, PREFIX, 1)
        live = Followed(shop_settings(tmp_path / "live", broker, "names", PREFIX, {"defaults": {"buckets": 2}}))
        live.run()
        for number, step in enumerate(STEPS, 2):
            database.execute(f"USE shop; {step}")
            passed(database, broker, PREFIX, number)
            live.run()
        connect.check()
    late = Followed(shop_settings(tmp_path / "late", broker, "names", PREFIX, {"defaults": {"buckets": 2}}))
    late.run()
    for stream in (live, late):
        found = {table: stream.rows(f"shop.{table}", columns) for table, columns in TABLES.items()}
        assert found == {table: truth(database, table, columns) for table, columns in TABLES.items()}
    assert not list(tmp_path.glob("*/_quarantine"))
