"""Facts of a live MariaDB through Debezium, aggregated in the lake, equal to SQL's GROUP BY over the facts.

Connect is killed and delivers events again. The batches run in this process, without Spark.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.source.fetch import consumer_for
from binlake.source.log_tail import partitions_of
from binlake.source.offsets import Offsets
from binlake.source.positions import end_offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.recovery import recover
from binlake.tables.lake import Lake
from embedded.connect import EmbeddedConnect
from embedded.mariadb import EmbeddedMariaDB
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import services
from tests.judges import hudi_rs
from tests.services.kafka import Broker
from tests.whole.live.test_live_database import connector, wait_for_offsets
from tests.whole.live.test_live_resync import HereEngine
from tests.whole.live.workload import prepare

pytestmark = [pytest.mark.kafka, pytest.mark.database, pytest.mark.full]

PREFIX = "live_facts"
TABLES = """
CREATE TABLE bank.spent (id BIGINT PRIMARY KEY, buyer VARCHAR(10) NOT NULL, amount DECIMAL(12,2), items INT);
CREATE TABLE bank.seen (id BIGINT PRIMARY KEY, page VARCHAR(10) NOT NULL, ms INT, tag VARCHAR(10));
"""
ORACLES = {
    "spent": "SELECT buyer, SUM(amount), SUM(items), COUNT(id) FROM bank.spent GROUP BY buyer",
    "seen": "SELECT page, MIN(ms), MAX(tag), COUNT(id) FROM bank.seen GROUP BY page",
}
COLUMNS = {"spent": ("buyer", "amount", "items", "id"), "seen": ("page", "ms", "tag", "id")}
MERGES = {
    "spent": {"amount": "sum", "items": "sum", "id": "count"},
    "seen": {"ms": "min", "tag": "max", "id": "count"},
}


def settings(place: Path, servers: str) -> Settings:
    """A stream of both tables."""
    overrides = [
        {"match": f"bank.{table}", "key": [COLUMNS[table][0]], "merge": {"engine": "aggregate", "columns": functions}}
        for table, functions in MERGES.items()
    ]
    document = {
        "name": "facts",
        "lake": {"uri": str(place / "lake"), "options": {"fsync": "false"}},
        "kafka": {
            "bootstrap_servers": servers,
            "topics": [f"{PREFIX}.bank.{table}" for table in MERGES],
            "ddl_topics": [PREFIX],
        },
        "tables": {"defaults": {"buckets": 2, "compaction": {"after_commits": 3}}, "overrides": overrides},
    }
    return Settings.parse(json.dumps(document))


def statements(rng: random.Random, known: set[int], at: int) -> str:
    """A transaction over facts: inserts, updates there and back, changes of the buyer, deletes."""
    done = []
    for n in range(rng.randint(1, 6)):
        key = at * 10 + n
        buyer, amount = rng.choice("abcde"), rng.choice(["NULL", "1.50", "-2.25", "1000000.01"])
        done.append(f"INSERT INTO bank.spent VALUES ({key}, '{buyer}', {amount}, {rng.choice(['NULL', 1, 2])})")
        done.append(f"INSERT INTO bank.seen VALUES ({key}, 'p{key % 3}', {rng.choice(['NULL', key])}, 't{key % 7}')")
        known.add(key)
        if rng.random() < 0.4:
            other = rng.choice(sorted(known))
            for items in rng.sample([3, 4, 3, 4, 5], 4):
                done.append(f"UPDATE bank.spent SET items = {items} WHERE id = {other}")
        if rng.random() < 0.3:
            done.append(f"UPDATE bank.spent SET buyer = '{buyer}' WHERE id = {rng.choice(sorted(known))}")
        if rng.random() < 0.2:
            done.append(f"DELETE FROM bank.spent WHERE id = {rng.choice(sorted(known))}")
    return "START TRANSACTION; " + "; ".join(done) + "; COMMIT;"


def step(config: Settings, batch: int) -> None:
    """One batch by a new process."""
    root = open_storage(config.lake.uri, config.lake.storage_options())
    state, lake = open_storage(config.state_uri, config.state_options()), Lake(root)
    ledger = Ledger.load(state, config.name) or recover(config, root, lake)
    for source in ledger.tables:
        lake.get(config.table_rules(source))
    runner = BatchRunner(config, lake, state, ledger, SchemaRegistry(config), services())
    try:
        client = config.kafka.client_properties()
        places = Offsets.of_places((t, p, 0) for t in config.kafka.topics for p in partitions_of(client, t))
        told = runner.run(batch, end_offsets(client, places, 10.0), 0, HereEngine())
    finally:
        runner.close()
    assert [t.error for t in told.tables if t.error] == []


def by_lake(place: Path, table: str) -> list[tuple[str, ...]]:
    """The table through hudi-rs, as texts."""
    path = place / "lake" / "bank" / table
    if not path.exists():
        return []
    rows = hudi_rs.snapshot(str(path)).select(list(COLUMNS[table])).to_pylist()
    return sorted(tuple("NULL" if v is None else str(v) for v in row.values()) for row in rows)


def by_source(database: EmbeddedMariaDB, table: str) -> list[tuple[str, ...]]:
    """SQL's GROUP BY at the source, as texts."""
    return sorted(tuple(line.split("\t")) for line in database.execute(ORACLES[table]))


def test_aggregates_are_those_of_the_source(kafka_broker: Broker, database: EmbeddedMariaDB, tmp_path: Path) -> None:
    servers, rng, known = kafka_broker.bootstrap_servers, random.Random(3), set[int]()
    prepare(database)
    database.execute(TABLES)
    database.execute(statements(rng, known, 1))
    config, batch = settings(tmp_path, servers), 0
    how = connector(database, servers) | {
        "topic.prefix": PREFIX,
        "table.include.list": "bank.spent,bank.seen",
        "schema.history.internal.kafka.topic": f"{PREFIX}_history",
        "offset.flush.interval.ms": "4000",
    }
    with EmbeddedConnect(tmp_path / "connect", servers, {"facts": how}) as connect:
        wait_for_offsets(connect, 0.0, 60)
        client = config.kafka.client_properties()
        deadline = time.monotonic() + 240
        while not set(config.kafka.topics) <= consumer_for(client).list_topics(timeout=10).topics.keys():
            assert time.monotonic() < deadline, "the snapshot never came"
            time.sleep(0.2)
        for turn in range(40):
            database.execute(statements(rng, known, 2 + turn))
            if turn in (14, 28):
                time.sleep(1.0)  # delivered, and not written down
                connect.kill()
                connect.start()
            if turn % 4 == 0:
                step(config, batch)
                batch += 1
        deadline = time.monotonic() + 240
        while any(by_lake(tmp_path, t) != by_source(database, t) for t in ORACLES) and time.monotonic() < deadline:
            step(config, batch)
            batch += 1
            time.sleep(0.3)
        connect.check()
    for table in ORACLES:
        assert by_lake(tmp_path, table) == by_source(database, table), table
        assert len(by_lake(tmp_path, table)) >= 3
    assert not (tmp_path / "lake" / "_quarantine").exists()
    database.execute("UPDATE bank.spent SET items = 9 LIMIT 1")  # the control: a fact tells
    assert by_lake(tmp_path, "spent") != by_source(database, "spent")
