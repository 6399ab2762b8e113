"""A live MariaDB through Debezium: tables that swap names, get another key, and are made again. No Spark is needed.

One stream follows while the statements run; another one begins when all of them lie in Kafka.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from embedded.connect import EmbeddedConnect, history_in_kafka, mariadb_connector
from embedded.mariadb import EmbeddedMariaDB
from pipeline.errors import ConfigError
from pipeline.lake.catalog import open_reader
from pipeline.lake.lake import Lake
from pipeline.position.ledger import Ledger
from pipeline.settings import Settings
from pipeline.source.offsets import OffsetRange
from pipeline.source.positions import end_offsets, starting_positions, topics_of
from pipeline.storage import open_storage
from pipeline.stream.batch import BatchRunner
from pipeline.stream.schemas import SchemaRegistry
from pipeline.tasks.decode_and_route import fetch_and_decode
from pipeline.tasks.plan import BatchPlan, Item
from tests.live.workload import PASSWORD, USER
from tests.services.kafka import Broker
from tests.stream.topic_log import services

pytestmark = [pytest.mark.kafka, pytest.mark.database]

PREFIX = "live_names"
SETUP = f"""
SET sql_log_bin = 0;
CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';
GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO '{USER}'@'%';
SET sql_log_bin = 1;
CREATE DATABASE shop;
USE shop;
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), v INT);
CREATE TABLE k (id INT PRIMARY KEY, code VARCHAR(20) NOT NULL, v INT);
CREATE TABLE r (id INT PRIMARY KEY, v INT);
CREATE TABLE marker (id INT PRIMARY KEY);
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


class Direct:
    """An engine whose one task runs here and fetches from Kafka."""

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """See pipeline.stream.engine.Engine."""
        return list(fetch_and_decode(plan, ranges))


class Stream:
    """A stream over all tables of the database."""

    def __init__(self, place: Path, broker: str) -> None:
        document = {
            "name": "names",
            "lake": {"uri": str(place)},
            "kafka": {
                "bootstrap_servers": broker,
                "topic_pattern": rf"{PREFIX}\.shop\..*",
                "ddl_topics": [PREFIX],
            },
            "tables": {"defaults": {"buckets": 2}},
        }
        self.settings = Settings.parse(json.dumps(document))
        self._config = self.settings.kafka.client_properties()
        root, ledger = open_storage(str(place)), Ledger("names")
        self._runner = BatchRunner(
            self.settings,
            Lake(root),
            root.sub(".binlake/names"),
            ledger,
            SchemaRegistry(self.settings),
            services(),
            ends=lambda places: end_offsets(self._config, places, 10),
        )

    def run(self) -> None:
        """Apply what is in Kafka now."""
        ledger, kafka = self._runner.ledger, self.settings.kafka
        topics = topics_of(self._config, (), kafka.topic_pattern)
        ledger.begin_at(starting_positions(self._config, topics, ledger.positions, "earliest").positions)
        event = self._runner.run(ledger.batch, end_offsets(self._config, ledger.positions, 10), 0, Direct())
        assert [t.error for t in event.tables if t.error] + [d.error for d in event.ddl if d.error] == []
        for table in list(ledger.behind):
            while table in ledger.behind:
                assert self._runner.catch_up(table, Direct()) is not None
        self._runner.settle()

    def rows(self, table: str, columns: Sequence[str]) -> list[str]:
        """The rows under the name that the source gives the table."""
        reader = open_reader(self.settings, f"shop.{table}")
        found = [row for batch in reader.batches(reader.plan()) for row in batch.to_pylist()]
        return sorted(json.dumps([row[name] for name in columns]) for row in found)


def truth(database: EmbeddedMariaDB, table: str, columns: Sequence[str]) -> list[str]:
    found = database.execute(f"SELECT JSON_ARRAY({', '.join(columns)}) FROM shop.{table}")
    return sorted(json.dumps(json.loads(line)) for line in found)


def passed(database: EmbeddedMariaDB, broker: str, number: int) -> None:
    """Wait until everything so far is in Kafka."""
    database.execute(f"INSERT INTO shop.marker VALUES ({number})")
    topic, config, deadline = f"{PREFIX}.shop.marker", {"bootstrap.servers": broker}, time.monotonic() + 60
    while True:
        with contextlib.suppress(ConfigError):  # no topic yet
            topics_of(config, (), re.escape(topic))
            places = starting_positions(config, [topic], {}, "earliest").positions
            if sum(end for _, _, end in end_offsets(config, places, 10).places()) >= number:
                return
        assert time.monotonic() < deadline, "the connector does not deliver"
        time.sleep(0.3)


def test_names_and_keys_of_a_live_database(kafka_broker: Broker, database: EmbeddedMariaDB, tmp_path: Path) -> None:
    broker = kafka_broker.bootstrap_servers
    database.execute(SETUP)
    connector = mariadb_connector(
        database, USER, PASSWORD, prefix=PREFIX, server_id=9201, include="shop", partitions=2
    ) | history_in_kafka(PREFIX, broker)
    with EmbeddedConnect(tmp_path / "connect", broker, {"shop": connector}) as connect:
        passed(database, broker, 1)
        live = Stream(tmp_path / "live", broker)
        live.run()
        for number, step in enumerate(STEPS, 2):
            database.execute(f"USE shop; {step}")
            passed(database, broker, number)
            live.run()
        connect.check()
    late = Stream(tmp_path / "late", broker)
    late.run()
    for stream in (live, late):
        found = {table: stream.rows(table, columns) for table, columns in TABLES.items()}
        assert found == {table: truth(database, table, columns) for table, columns in TABLES.items()}
    assert not list(tmp_path.glob("*/_quarantine"))
