"""A live MariaDB through Debezium: random moves of tables between three databases, by names with and without one.

One stream follows while the statements run; another one begins when all of them lie in Kafka. No Spark is needed.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from binlake.settings import Settings
from binlake.tables.feeds import Feeds
from embedded.connect import EmbeddedConnect, database_connector, history_in_kafka
from embedded.mariadb import EmbeddedMariaDB
from tests.binlake.schema.moves import DATABASES, Moves, name, step
from tests.services.kafka import Broker
from tests.whole.live.followed import ACCOUNT, Followed, passed
from tests.whole.live.workload import PASSWORD, USER

pytestmark = [pytest.mark.kafka, pytest.mark.database, pytest.mark.full]

PREFIX = "live_moves"
STEPS, PORTIONS = 30, 5


class AtServer(Moves):
    """The same statements and rows at a server."""

    def __init__(self, server: EmbeddedMariaDB) -> None:
        super().__init__()
        self.server = server

    def carry_out(self, sql: str) -> None:
        """See Moves."""
        super().carry_out(sql)
        self.server.execute(sql)


def settings(place: Path, broker: str) -> Settings:
    kafka = {"bootstrap_servers": broker, "topic_pattern": rf"{PREFIX}\.db\d\..*", "ddl_topics": [PREFIX]}
    document = {"name": "moves", "lake": {"uri": str(place)}, "kafka": kafka, "tables": {"defaults": {"buckets": 2}}}
    return Settings.parse(json.dumps(document))


def check(stream: Followed, source: AtServer) -> None:
    """The tables of the server are in the lake under their names, and nothing else is said to feed it."""
    told, feeds = "\n".join(source.statements), Feeds.load(stream.settings)
    for table, held in source.tables.items():
        columns = ("id", held.column)
        truth = [
            json.dumps(list(map(int, line.split("\t")))) for line in source.server.execute(f"SELECT * FROM {table}")
        ]
        if truth:
            assert stream.rows(str(table), columns) == sorted(truth), (table, told)
            lake = feeds.lake_table(table)
            assert lake is not None, (table, told)
            assert [one.now for one in feeds.of(lake)] == [table], (table, told)


def test_random_moves_of_a_live_database(kafka_broker: Broker, database: EmbeddedMariaDB, tmp_path: Path) -> None:
    broker, chance, source = kafka_broker.bootstrap_servers, random.Random(7), AtServer(database)
    database.execute(ACCOUNT + "".join(f"CREATE DATABASE {one};" for one in DATABASES))
    for table in ("db1.t", "db1.u", "db2.t", "db2.w", "db3.u"):
        source.create(name(table), chance.choice("vxy"))
        source.put(name(table), 0, source.pos)
    include = ",".join(("shop", *DATABASES))
    connector = database_connector(
        database, USER, PASSWORD, prefix=PREFIX, server_id=9203, include=include, partitions=2
    ) | history_in_kafka(PREFIX, broker)
    with EmbeddedConnect(tmp_path / "connect", broker, {"moves": connector}) as connect:
        passed(database, broker, PREFIX, 1)
        live = Followed(settings(tmp_path / "live", broker))
        live.run()
        for number in range(PORTIONS):
            for _ in range(STEPS // PORTIONS):
                step(chance, source, left_open=0.0)
            passed(database, broker, PREFIX, 2 + number)
            live.run()
            check(live, source)
        connect.check()
    late = Followed(settings(tmp_path / "late", broker))
    late.run()
    check(late, source)
    assert not list(tmp_path.glob("*/_quarantine"))
