"""A lake that a stream feeds batch by batch without Spark or Kafka, and the commands run on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from binlake.cli.app import app
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.recovery import open_known, recover
from binlake.tables.lake import Lake, locking
from hudilake.services.fsck import fsck
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.topic_log import COLUMNS, LocalEngine, TopicLog, event, services
from tests.judges import hudi_rs

TABLES = ("a", "b")
BY_PROCESS = {"mode": "process", "after_commits": 3, "log_ratio": None, "tombstone_retention_hours": 0}


class FedLake:
    """Tables ``shop.a`` and ``shop.b``, or others. Batch n gives each the keys 0 to n with ``o<n>``; key n - 3 goes."""

    def __init__(self, path: Path, tables: dict[str, Any] | None = None, names: tuple[str, ...] = TABLES) -> None:
        self.path, self.conf, self.names = path / "lake", path / "conf.yaml", names
        self.configure(tables or {})
        self.log, self.batches = TopicLog(), 0
        self.engine = LocalEngine(self.log)
        self.start()

    def configure(self, tables: dict[str, Any]) -> None:
        """Write the settings; ``tables``: rules that differ from the usual ones here."""
        self.needs_before = bool({"partition", "key"} & tables.keys())  # a row may leave its place
        schemas = {f"shop.{t}": {"columns": COLUMNS, "key": ["id"]} for t in self.names}
        defaults = {"buckets": 2, "compaction": BY_PROCESS, "retention": {"commits": 2}, **tables}
        document = {
            "name": "shop",
            "lake": {"uri": str(self.path), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [f"s.shop.{t}" for t in self.names]},
            "source": {"schemas": schemas},
            "tables": {"defaults": defaults},
        }
        self.conf.write_text(json.dumps(document))
        self.settings = Settings.load(self.conf)

    def start(self) -> None:
        """A new process of the stream."""
        root = open_storage(str(self.path), {"fsync": "false"})
        state = root.sub(".binlake/shop")
        lake = Lake(root, locking(self.settings.locking, "stream shop", one_run=True))
        ledger = Ledger.load(state, "shop") or recover(self.settings, root, lake)
        unopened = open_known(self.settings, lake, ledger)
        registry = SchemaRegistry(self.settings)
        self.runner = BatchRunner(self.settings, lake, state, ledger, registry, services())
        for source, error in unopened.items():
            self.runner.tables.stop(source, error)
        self.runner.tend()

    def feed(self, batches: int = 1, tables: tuple[str, ...] = TABLES) -> None:
        """Further batches."""
        for _ in range(batches):
            assert [t.error for t in self.batch(tables).tables if t.error] == []

    def feed_any(self) -> ProgressEvent:
        """A further batch, whatever may come of it; then what the stream does between two batches."""
        told = self.batch()
        for source in self.runner.tables.due():
            self.runner.catch_up(source, self.engine)
        return told

    def batch(self, tables: tuple[str, ...] = TABLES) -> ProgressEvent:
        """One further batch, whatever may come of it."""
        n = self.batches
        for table in tables:
            for key in range(n + 1):
                row = {"id": key, "owner": f"o{n}", "balance": "AfQ=", "region": "eu"}
                before = row | {"owner": f"o{n - 1}"} if self.needs_before else None
                self.log.add(f"s.shop.{table}", event(table, "u", 100 * n + key, row, before), {"id": key})
            gone = {"id": n - 3, "owner": "", "balance": "AfQ=", "region": "eu"}
            self.log.add(f"s.shop.{table}", event(table, "d", 100 * n + max(90, n + 1), gone), {"id": n - 3})
        self.batches += 1
        return self.runner.run(n, self.log.end(), 0, self.engine)

    def go_on(self) -> None:
        """A new process of the stream, which finds nothing new in the topics; tables that are behind are caught up."""
        self.start()
        self.runner.run(self.batches, self.log.end(), 0, self.engine)
        self.catch_up()

    def catch_up(self) -> None:
        """Give the tables that are behind what they lack."""
        for source in list(self.runner.ledger.behind):
            while source in self.runner.ledger.behind:
                assert self.runner.catch_up(source, self.engine) is not None

    def table(self, name: str = "a") -> HudiTable:
        return HudiTable.open(open_storage(f"{self.path}/shop/{name}"))

    def commits(self, name: str = "a") -> list[str]:
        return [i.requested_time for i in self.table(name).timeline.completed() if i.action == "deltacommit"]

    def files(self, name: str = "a") -> set[str]:
        return {p.name for p in (self.path / f"shop/{name}").glob("*") if p.is_file()}

    def check(self, batches: int | None = None, name: str = "a") -> None:
        """The table holds what so many batches bring, by hudi-rs; fsck is content."""
        last = (self.batches if batches is None else batches) - 1
        expected = {key: f"o{last}" for key in range(last + 1) if key != last - 3}
        uri = f"{self.path}/shop/{name}"
        assert {r["id"]: r["owner"] for r in hudi_rs.snapshot(uri).to_pylist()} == expected
        assert [f.what for f in fsck(self.table(name).storage, grace_ms=0).findings if f.severity == "error"] == []

    def run(self, command: str, *arguments: str, answer: str | None = None) -> Result:
        """A command; ``CONF`` stands first among its arguments."""
        words = [*command.split(), str(self.conf), *arguments]
        return CliRunner().invoke(app, words, input=answer)

    def json(self, command: str, *arguments: str) -> list[dict[str, Any]]:
        """What a command that succeeds prints as JSON lines."""
        done = self.run(command, *arguments, "--json")
        assert done.exit_code == 0, done.output
        return [json.loads(line) for line in done.stdout.splitlines()]
