"""The same story through Kafka: Debezium follows the server, ``binlake run`` its topics, and both are killed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from bench.planted import PASSWORD, USER
from binlake.position.ledger import Ledger
from binlake.source.positions import end_offsets, starting_positions
from embedded.connect import EmbeddedConnect, database_connector, history_in_kafka
from embedded.jars import small_spark
from hudilake.errors import ConfigError, TransientError
from hudilake.storage import open_storage
from tests.programs.moments.load import TABLES
from tests.programs.moments.replica import DATABASE
from tests.programs.moments.story import Story

_BESIDE = "beside"
_MARK = 77
_PATIENCE_S = 240.0


@dataclass
class KafkaStory(Story):
    """A stream of Debezium's topics, in whole transactions.

    Args:
        broker: where it answers.
        prefix: of the topics, which no other story has.
        connector_kills: how often the connector died.
    """

    broker: str = ""
    prefix: str = "moments"
    connector_kills: int = 0
    connect: EmbeddedConnect = field(init=False)
    _batches: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.server.execute(f"SET sql_log_bin = 0; GRANT SHOW DATABASES ON *.* TO '{USER}'@'%'")
        connector = database_connector(
            self.server,
            USER,
            PASSWORD,
            prefix=self.prefix,
            server_id=9300 + self.seed,
            include=f"{DATABASE},{_BESIDE}",
            partitions=2,
        )
        connector |= history_in_kafka(self.prefix, self.broker)
        connector |= {"provide.transaction.metadata": "true", "poll.interval.ms": "50"}
        self.connect = EmbeddedConnect(self.place / "connect", self.broker, {self.prefix: connector})

    def document(self) -> dict[str, Any]:
        """See Story."""
        return {
            "name": "moments",
            "lake": {"uri": str(self.place / "lake"), "options": {"fsync": "false"}},
            "kafka": {
                "bootstrap_servers": self.broker,
                "topic_pattern": rf"{self.prefix}\.{DATABASE}\..*",
                "transaction_topic": f"{self.prefix}.transaction",
                "ddl_topics": [self.prefix],
            },
            "tables": {"defaults": self.defaults()},
            "batch": {
                "transaction_consistent": True,
                "trigger_interval_ms": 50,
                "max_events": self.random.choice((60, 150)),
            },
            "quarantine": {"max_records_per_batch": 0},
            "spark": small_spark(),
        }

    def prepare(self) -> None:
        """The connector's snapshot of empty tables, and a topic of each: a stream that begins while topics are made
        ends, and wants to be started again."""
        self.connect.start()
        for name in TABLES:
            self.server.execute(f"INSERT INTO {DATABASE}.{name} SET id = 0; DELETE FROM {DATABASE}.{name}")
        self._pass(_MARK)

    def at_work(self) -> bool:
        """The stream has finished a batch since it was started."""
        return self._finished() > self._batches

    def watch(self, session: object) -> None:
        """The lake of a stream through Kafka cannot be asked for a place of the binlog."""

    def after_death(self) -> None:
        """At times the connector dies, too."""
        self._batches = self._finished()
        if self.random.random() < 0.5:
            self.connector_kills += 1
            self.connect.kill()
            self.connect.start()

    def finish(self) -> None:
        """Apply all that the server has. The mark follows the last transaction."""
        self._pass(_MARK + 1)
        self.connect.check()
        super().finish()

    def _finished(self) -> int:
        ledger = Ledger.load(open_storage(str(self.place / "lake" / ".binlake" / "moments")), "moments")
        return ledger.batch if ledger is not None else 0

    def _pass(self, number: int) -> None:
        """Wait until everything so far is in Kafka: a table of its own has a topic of its own."""
        self.server.execute(
            f"CREATE TABLE {_BESIDE}.mark_{number} (id INT PRIMARY KEY); INSERT INTO {_BESIDE}.mark_{number} VALUES (1)"
        )
        topic, config = f"{self.prefix}.{_BESIDE}.mark_{number}", {"bootstrap.servers": self.broker}
        deadline = time.monotonic() + _PATIENCE_S
        while not self._has_records(topic, config):
            self.connect.check()
            assert time.monotonic() < deadline, "the connector does not deliver"
            time.sleep(0.2)

    @staticmethod
    def _has_records(topic: str, config: dict[str, str]) -> bool:
        try:
            places = starting_positions(config, [topic], {}, "earliest").positions
            return sum(end for _, _, end in end_offsets(config, places, 10).places()) > 0
        except (ConfigError, TransientError):  # no topic yet, or one without a leader
            return False
