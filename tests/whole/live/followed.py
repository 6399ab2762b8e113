"""A live source through Kafka, followed by a stream without Spark."""

from __future__ import annotations

import contextlib
import json
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from binlake.position.ledger import Ledger
from binlake.rows.tasks.decode_and_route import fetch_and_decode
from binlake.rows.tasks.plan import BatchPlan, Item
from binlake.settings import Settings
from binlake.source.offsets import OffsetRange
from binlake.source.positions import end_offsets, starting_positions, topics_of
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.recovery import recover
from binlake.tables.catalog import open_reader
from binlake.tables.lake import Lake
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import ConfigError
from hudilake.storage import Storage, open_storage
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate, Killed
from tests.binlake.stream.topic_log import services
from tests.whole.live.workload import PASSWORD, USER

#: Statements that give Debezium its account, and the database ``shop`` with a table that ``passed`` writes to.
ACCOUNT = f"""
SET sql_log_bin = 0;
CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';
GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO '{USER}'@'%';
SET sql_log_bin = 1;
CREATE DATABASE shop;
USE shop;
CREATE TABLE marker (id INT PRIMARY KEY);
"""


class Direct:
    """An engine whose one task runs here and fetches from Kafka."""

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """See binlake.stream.engine.Engine."""
        return list(fetch_and_decode(plan, ranges))


class Followed:
    """A stream that is started again where it stands.

    Args:
        settings: of the stream; the topics by ``kafka.topic_pattern``.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._place, self._config = settings.lake.uri, settings.kafka.client_properties()
        self.start()

    def start(self, fate: Fate | None = None) -> None:
        """A new process; ``fate``: of its calls of the store."""
        root: Storage = open_storage(self._place)
        root = root if fate is None else DyingStore(root, fate)
        name, lake = self.settings.name, Lake(root)
        state = root.sub(f".binlake/{name}")
        ledger = Ledger.load(state, name) or recover(self.settings, root, lake)
        for source in ledger.tables:
            lake.get(self.settings.table_rules(source))
        self._runner = BatchRunner(
            self.settings,
            lake,
            state,
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
        """The rows of ``database.table``, under the name that the source gives the table; a missing column is null."""
        return sorted(json.dumps([row.get(name) for name in columns]) for row in self.whole(table))

    def whole(self, table: str) -> list[dict[str, Any]]:
        """The same rows with all of their columns."""
        reader = open_reader(self.settings, table)
        return [row for batch in reader.batches(reader.plan()) for row in batch.to_pylist()]


def died(stream: Followed, pick: random.Random) -> bool:
    """The stream dies at one of its calls of the store, and is started again. Returns False if it had fewer calls."""
    fate = Fate(pick.randrange(70), pick.choice([Answer.DONE, Answer.LOST]))
    killed = False
    try:
        stream.start(fate)
        stream.run()
    except Killed:
        fate.settle()
        killed = True
    stream.start()
    return killed


def shop_settings(place: Path, broker: str, name: str, prefix: str, tables: dict[str, Any]) -> Settings:
    """Of a stream over all tables of the database ``shop``.

    Args:
        place: the lake.
        broker: its bootstrap servers.
        name: of the stream.
        prefix: of the connector's topics.
        tables: the section of the settings.
    """
    document = {
        "name": name,
        "lake": {"uri": str(place)},
        "kafka": {"bootstrap_servers": broker, "topic_pattern": rf"{prefix}\.shop\..*", "ddl_topics": [prefix]},
        "tables": tables,
    }
    return Settings.parse(json.dumps(document))


def truth(database: EmbeddedMariaDB, table: str, columns: Sequence[str]) -> list[str]:
    """The rows of a table of ``shop`` at the source, or of a query in parentheses with a name."""
    found = database.execute(f"USE shop; SELECT JSON_ARRAY({', '.join(columns)}) FROM {table}")
    return sorted(json.dumps(json.loads(line)) for line in found)


def passed(database: EmbeddedMariaDB, broker: str, prefix: str, number: int) -> None:
    """Wait until everything so far is in Kafka; ``number``: of the call, from 1."""
    database.execute(f"INSERT INTO shop.marker VALUES ({number})")
    topic, config, deadline = f"{prefix}.shop.marker", {"bootstrap.servers": broker}, time.monotonic() + 240
    while True:
        with contextlib.suppress(ConfigError):  # no topic yet
            topics_of(config, (), re.escape(topic))
            places = starting_positions(config, [topic], {}, "earliest").positions
            if sum(end for _, _, end in end_offsets(config, places, 10).places()) >= number:
                return
        assert time.monotonic() < deadline, "the connector does not deliver"
        time.sleep(0.3)
