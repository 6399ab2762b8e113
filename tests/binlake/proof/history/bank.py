"""A source with transactions whose events feed a lake without Spark or Kafka, and commands that read its topics."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from binlake.cli.app import app
from binlake.cli.commands.loads import revert as revert_command
from binlake.cli.commands.reads import why as why_command
from binlake.decode.changes import RawRecords
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.source.offsets import Offsets, Ranges
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.recovery import recover
from binlake.tables.lake import Lake, locking
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import COLUMNS, LocalEngine, TopicLog, services
from tests.judges import hudi_rs

Row = dict[str, Any]
SECOND_MS = 1000
START_MS = 1_760_000_000_000
#: A transaction takes so many bytes of the binlog, and each of its events so many.
TRANSACTION_BYTES, EVENT_BYTES = 10_000, 200


@dataclass(frozen=True)
class Change:
    """One change of a row: ``before`` None for an insert, ``after`` None for a delete."""

    table: str
    before: Row | None
    after: Row | None

    @property
    def key(self) -> int:
        row = self.after if self.after is not None else self.before
        assert row is not None
        return int(row["id"])


@dataclass(frozen=True)
class LogRecords:
    """``Records`` over a topic log; offsets below ``low`` count as deleted."""

    log: TopicLog
    low: Offsets = field(default_factory=Offsets)

    def held(self, topic: str, partition: int) -> tuple[int, int]:
        return self.low.at(topic, partition), len(self.log.records[topic, partition])

    def read(self, ranges: Ranges) -> Iterator[RawRecords]:
        return self.log.read(ranges)


def account(key: int, balance: int | str, owner: str = "a", region: str = "eu") -> Row:
    return {"id": key, "owner": owner, "balance": Decimal(balance).quantize(Decimal("0.01")), "region": region}


def encoded(row: Row | None) -> Row | None:
    """A row as Debezium writes it in JSON."""
    if row is None:
        return None
    cents = int(row["balance"].scaleb(2))
    raw = cents.to_bytes(max(1, (cents.bit_length() + 8) // 8), "big", signed=True)
    return {**row, "balance": base64.b64encode(raw).decode()}


def gtid(number: int) -> str:
    return f"0-1-{number}"


class Bank:
    """A stream ``shop`` over tables of accounts. ``event_bytes``: 0 gives all events of a transaction one position, as
    MariaDB since 11.4 does."""

    def __init__(
        self,
        path: Path,
        tables: Sequence[str] = ("a", "b"),
        key: Sequence[str] = ("id",),
        servers: str = "127.0.0.1:1",
        prefix: str = "s",
        event_bytes: int = EVENT_BYTES,
        **rules: Any,  # noqa: ANN401 - YAML
    ) -> None:
        self.path, self.conf = path / "lake", path / "conf.yaml"
        schemas = {f"shop.{t}": {"columns": COLUMNS, "key": [*key]} for t in tables}
        document = {
            "name": "shop",
            "lake": {"uri": str(self.path), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": servers, "topics": [f"{prefix}.shop.{t}" for t in tables]},
            "source": {"schemas": schemas},
            "tables": {"defaults": {"buckets": 2, "compaction": {"mode": "off"}, **rules}},
        }
        self.conf.write_text(json.dumps(document))
        self.settings, self.log = Settings.load(self.conf), TopicLog()
        self.low, self.prefix, self.event_bytes = Offsets(), prefix, event_bytes
        self.rows: dict[str, dict[int, Row]] = {t: {} for t in tables}
        self.transactions: dict[int, tuple[Change, ...]] = {}
        self.batches = 0

    # -- the source ----------------------------------------------------------------------------------------------------

    def transact(self, number: int, changes: Sequence[Change], partitions: int = 1) -> None:
        """Commit a transaction at the source and put its events into the topics."""
        self.transactions[number] = tuple(changes)
        for change in changes:
            rows = self.rows[change.table]
            assert rows.get(change.key) == change.before
            rows.pop(change.key, None)
            if change.after is not None:
                rows[change.key] = change.after
        self.deliver(number, partitions)

    def deliver(self, number: int, partitions: int = 1) -> None:
        """Put the events of a transaction into the topics, for the first time or again."""
        for at, change in enumerate(self.transactions[number]):
            event = self.event(number, at, change)
            topic, key = f"{self.prefix}.shop.{change.table}", {"id": change.key}
            self.log.add(topic, event, key, change.key % partitions)

    def event(self, number: int, at: int, change: Change) -> Row:
        op = "c" if change.before is None else "d" if change.after is None else "u"
        return {
            "before": encoded(change.before),
            "after": encoded(change.after),
            "source": {
                "ts_ms": START_MS + number * SECOND_MS,
                "snapshot": "false",
                "db": "shop",
                "table": change.table,
                "server_id": 1,
                "gtid": gtid(number),
                "file": "mysql-bin.000003",
                "pos": self.position(number, at),
                "row": 0,
            },
            "transaction": {"id": gtid(number), "total_order": at + 1, "data_collection_order": at + 1},
            "op": op,
            "ts_ms": START_MS,
        }

    def position(self, number: int, at: int = 0) -> int:
        return number * TRANSACTION_BYTES + at * self.event_bytes

    def transfer(self, number: int, source: int, target: int, amount: int, table: str = "a") -> None:
        """Move an amount from one account to another."""
        changes = []
        for key, step in ((source, -amount), (target, amount)):
            before = self.rows[table][key]
            changes.append(Change(table, before, {**before, "balance": before["balance"] + step}))
        self.transact(number, changes)

    # -- the lake ------------------------------------------------------------------------------------------------------

    def stream(self) -> BatchRunner:
        """A new process of the stream."""
        root = open_storage(str(self.path), {"fsync": "false"})
        lake, state = Lake(root, locking(self.settings.locking, "stream shop")), root.sub(".binlake/shop")
        ledger = Ledger.load(state, "shop") or recover(self.settings, root, lake)
        for source in ledger.tables:
            lake.get(self.settings.table_rules(source))
        return BatchRunner(self.settings, lake, state, ledger, SchemaRegistry(self.settings), services())

    def run_stream(self, end: Offsets | None = None) -> None:
        """A new run of the stream, which applies what there is."""
        event = self.stream().run(self.batches, end or self.log.end(), 0, LocalEngine(self.log))
        assert [t.error for t in event.tables if t.error] == []
        self.batches += 1

    def lake_rows(self, table: str = "a") -> dict[int, Row]:
        """The rows through hudi-rs."""
        names = ("id", "owner", "balance", "region")
        rows = hudi_rs.snapshot(f"{self.path}/shop/{table}").to_pylist()
        return {r["id"]: {n: r[n] for n in names} for r in rows}

    def commits(self, table: str = "a") -> int:
        return len(list((self.path / f"shop/{table}/.hoodie/timeline").glob("*_*.deltacommit")))

    # -- commands ------------------------------------------------------------------------------------------------------

    def run(self, command: str, *arguments: str, answer: str | None = None) -> Result:
        """A command that reads the topics of this log where it would read Kafka."""
        with pytest.MonkeyPatch.context() as patch:
            for module in (why_command, revert_command):
                patch.setattr(module, "source_log", lambda settings: LogRecords(self.log, self.low))
            return CliRunner().invoke(app, [*command.split(), str(self.conf), *arguments], input=answer)

    def json(self, command: str, *arguments: str) -> list[dict[str, Any]]:
        """What a command that succeeds prints as JSON lines."""
        done = self.run(command, *arguments, "--json")
        assert done.exit_code == 0, (done.output, done.exception)
        return [json.loads(line) for line in done.stdout.splitlines()]
