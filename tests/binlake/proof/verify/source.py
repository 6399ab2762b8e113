"""Tables at a real server whose changes a stream without Spark and Kafka carries into a lake, and their comparison.

Rows are sent as Debezium sends them, with the ordering values of the real server's binlog.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.planted import PASSWORD, USER
from binlake.position.ledger import Ledger
from binlake.proof.verify.result import TableResult
from binlake.proof.verify.run import Verifier, VerifyOptions
from binlake.proof.verify.table_check import CheckOptions
from binlake.settings import Settings
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.catalog import CatalogTable, catalog_tables
from binlake.tables.lake import Lake
from embedded.mariadb import EmbeddedMariaDB
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, services

USER_SQL = (
    f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';"
    f"GRANT SELECT, RELOAD, BINLOG MONITOR, SLAVE MONITOR ON *.* TO '{USER}'@'%';"
)
Row = dict[str, Any]


def database_section(server: EmbeddedMariaDB) -> dict[str, Any]:
    """``source.database`` for a server."""
    return {"host": server.host, "port": server.port, "user": USER, "password": PASSWORD}


@dataclass
class SentTable:
    """A table of one database whose rows are sent when a test says so.

    Args:
        server: where it is.
        place: of the lake and the settings.
        database: its name.
        columns: table -> column -> MySQL type.
        keys: table -> key columns.
        rules: ``tables`` of the settings.
        stands: file and position of the events that are sent; None asks the server for each.
    """

    server: EmbeddedMariaDB
    place: Path
    database: str
    columns: dict[str, dict[str, str]]
    keys: dict[str, list[str]]
    rules: dict[str, Any] = field(default_factory=dict)
    log: TopicLog = field(default_factory=TopicLog)
    more: dict[str, Any] = field(default_factory=dict)
    stands: tuple[str, int] | None = None

    @property
    def conf(self) -> Path:
        """The settings file."""
        return self.place / "conf.yaml"

    def settings(self) -> Settings:
        schemas = {
            f"{self.database}.{table}": {"columns": columns, "key": self.keys.get(table, [])}
            for table, columns in self.columns.items()
        }
        document = {
            "name": "sent",
            "lake": {"uri": str(self.place / "lake"), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [f"s.{name}" for name in schemas]},
            "source": {"schemas": schemas, "database": database_section(self.server)},
            "tables": {"defaults": {"buckets": 2}, **self.rules},
            **self.more,
        }
        self.conf.write_text(json.dumps(document))
        return Settings.load(self.conf)

    def place_now(self) -> tuple[str, int]:
        """File and position of the server's binlog."""
        if self.stands is not None:
            return self.stands
        file, position = self.server.execute("SHOW MASTER STATUS")[0].split("\t")[:2]
        return file, int(position)

    def send(self, table: str, op: str, row: Row, before: Row | None = None) -> None:
        """One event at the server's position."""
        file, position = self.place_now()
        source = {"ts_ms": 1_760_000_000_000, "snapshot": "false", "db": self.database, "table": table}
        source |= {"server_id": 4711, "file": file, "pos": position, "row": 0}
        images = {"before": row if op == "d" else before, "after": None if op == "d" else row}
        key = {name: row[name] for name in self.keys.get(table, [])} or None
        self.log.add(f"s.{self.database}.{table}", {**images, "source": source, "op": op, "ts_ms": 0}, key)

    def apply(self) -> None:
        """Carry all that was sent into the lake."""
        config = self.settings()
        root = open_storage(config.lake.uri, config.lake.storage_options())
        state = root.sub(".binlake/sent")
        ledger = Ledger.load(state, "sent") or Ledger("sent", positions={t: {0: 0} for t in config.kafka.topics})
        lake = Lake(root)
        for source in ledger.tables:
            lake.get(config.table_rules(source))
        runner = BatchRunner(config, lake, state, ledger, SchemaRegistry(config), services())
        event = runner.run(ledger.batch + 1, self.log.end(), 0, LocalEngine(self.log))
        runner.close()
        assert [t.error for t in event.tables if t.error] == []
        assert sum(t.quarantined for t in event.tables) == 0

    def verify(self, *, check: CheckOptions | None = None, **options: Any) -> dict[str, TableResult]:  # noqa: ANN401 - those of VerifyOptions
        """Source table -> result, without waiting for a stream."""
        return verified(self.settings(), check=check, **options)


def verified(settings: Settings, *, check: CheckOptions | None = None, **options: Any) -> dict[str, TableResult]:  # noqa: ANN401 - those of VerifyOptions
    """Source table -> result of all tables of a lake; the stream is through."""
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    chosen = VerifyOptions(**{"wait_s": None, "listed": 1000, **options})
    results: dict[str, TableResult] = {}
    with Verifier(settings, chosen, check or CheckOptions()) as verifier:
        for table in catalog_tables(settings, root):
            assert isinstance(table, CatalogTable)
            results |= {result.table: result for result in verifier.tables(table, named=False)}
    return results
