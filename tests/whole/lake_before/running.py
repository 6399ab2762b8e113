"""The two streams over the lake: their settings, a process of each without Spark and Kafka, and the commands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.source.offsets import OffsetMap
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.recovery import recover
from binlake.stream.transactions import Transactions
from binlake.tables.lake import Lake, locking
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import LocalEngine, services
from tests.judges import hudi_rs
from tests.judges.agreement import read_ourselves
from tests.judges.rows import Row, canonical
from tests.whole.lake_before.log import TimedLog
from tests.whole.lake_before.sources import DECLARED, KEYLESS, SALT

#: The working directory. Commits name the root of a dump, which must be the same wherever the files lie.
HERE = "file:///proc/self/cwd"
#: Where each stream's lake is below the directory that holds all.
LAKES = {"shop": "lake", "bank": "bank"}
SHARDS = {"match": r"shop\.items_(\d\d)", "to": "shop.items", "shard": {"column": "shard", "value": "{1}"}}
#: Deletes are never forgotten: what a compaction does must not depend on the day on which the tests run.
_COMPACTION = {"mode": "inline", "after_commits": 5, "log_ratio": None, "tombstone_retention_hours": 1_000_000}
_DEFAULTS = {"buckets": 2, "compaction": _COMPACTION, "retention": {"commits": 2}}


def _schemas(more: Sequence[str]) -> dict[str, Any]:
    found = {f"shop.{t}": {"columns": c, "key": [] if t == KEYLESS else ["id"]} for t, c in DECLARED.items()}
    found["shop.orders"]["columns"] = DECLARED["orders"] | dict.fromkeys(more, "varchar(10)")
    return found


def _overrides(indexed: Sequence[str]) -> list[dict[str, Any]]:
    by_process = {**_COMPACTION, "mode": "process", "after_commits": 1000}
    parts = {"partition": {"column": "region"}, "compaction": by_process, "metadata": {"columns": list(indexed)}}
    mask = {"name": {"how": "hash", "salt": SALT}, "town": {"how": "redact"}}
    return [
        {"match": "shop.parts", "buckets": 1, **parts, "retention": {"commits": 2}},
        {"match": "shop.people", **_DEFAULTS, "columns": {"mask": mask}},
    ]


def configure(
    place: Path,
    *,
    uri: str | None = None,
    more: Sequence[str] = ("colour", "size"),
    indexed: Sequence[str] = ("id", "region"),
) -> None:
    """Write the settings of both streams.

    Args:
        place: the directory that holds the lakes.
        uri: the same for the streams; None for its path.
        more: columns of ``shop.orders`` besides those that it began with.
        indexed: the columns of ``shop.parts`` in the metadata table.
    """
    shop = {
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": r"s\..*|maxwell"},
        "source": {"schemas": _schemas(more), "debezium": {"decimal_handling_mode": "string"}},
        "tables": {"defaults": _DEFAULTS, "overrides": _overrides(indexed), "routes": [SHARDS]},
        "quarantine": {"seal": "seal-of-the-lake", "max_fraction": 1.0},
        "dump": {"uri": f"{HERE}/dumps", "path": "{database}.{table}/dt={date}/hour={hour}/*"},
    }
    accounts = {"columns": {"id": "int", "balance": "decimal(12,2)"}, "key": ["id"]}
    transfers = {"columns": {"id": "int", "amount": "decimal(12,2)"}, "key": ["id"]}
    bank = {
        "kafka": {
            "bootstrap_servers": "127.0.0.1:1",
            "topic_pattern": r"b\.shop\..*",
            "transaction_topic": "b.transaction",
        },
        "source": {
            "schemas": {"shop.accounts": accounts, "shop.transfers": transfers},
            "debezium": {"decimal_handling_mode": "string"},
        },
        "batch": {"transaction_consistent": True},
        "tables": {"defaults": _DEFAULTS},
    }
    for name, document in (("shop", shop), ("bank", bank)):
        lake = {"uri": f"{uri or place}/{LAKES[name]}", "options": {"fsync": "false"}}
        (place / f"{name}.json").write_text(json.dumps({"name": name, "lake": lake, **document}))


@dataclass
class Process:
    """One process of a stream. ``place``: the directory that holds the lakes; ``log``: its topics."""

    place: Path
    name: str
    log: TimedLog

    def __post_init__(self) -> None:
        config = Settings.load(self.place / f"{self.name}.json")
        root = open_storage(config.lake.uri, config.lake.storage_options())
        lake = Lake(root, locking(config.locking, f"stream {self.name}", one_run=True))
        self.state = open_storage(config.state_uri, config.state_options())
        self.ledger = Ledger.load(self.state, self.name) or recover(config, root, lake)
        self.recovered = {topic: dict(parts) for topic, parts in self.ledger.positions.items()}
        for source in self.ledger.tables:
            lake.get(config.table_rules(source))
        whole = config.batch.transaction_consistent
        cutter = Transactions(config, self.ledger, self.log.survey, self.log.offset_at) if whole else None
        self.registry = SchemaRegistry(config)
        self.runner = BatchRunner(config, lake, self.state, self.ledger, self.registry, services(), cutter)
        self.engine = LocalEngine(self.log)

    def run(self, end: OffsetMap | None = None) -> ProgressEvent:
        """One batch up to ``end``; None for the end of all topics."""
        return self.runner.run(self.ledger.batch, end or self.log.end(), 0, self.engine)

    def feed(self, end: OffsetMap | None = None) -> ProgressEvent:
        """The same, in which no table fails."""
        event = self.run(end)
        errors = [t.error for t in event.tables if t.error] + [d.error for d in event.ddl if d.error]
        assert not errors, errors
        return event

    def catch_up(self) -> None:
        """Give the tables that are behind what they lack."""
        for source in list(self.ledger.behind):
            while source in self.ledger.behind:
                assert self.runner.catch_up(source, self.engine) is not None

    def close(self) -> None:
        """End it."""
        self.runner.close()


def transactions_of(ledger: Ledger) -> dict[str, Any]:
    """What a ledger says of transactions."""
    passed = ledger.transactions
    return {"torn": list(passed.torn), "ms": passed.ms, "ended": list(passed.ended)}


def command(place: Path, stream: str, words: str, *arguments: str) -> list[Any]:
    """What a command prints with ``--json``, or its lines of text where it has no such option."""
    lines = [*words.split(), str(place / f"{stream}.json"), *arguments]
    done = CliRunner().invoke(app, lines)
    assert done.exit_code == 0, (done.output, done.exception)
    return [json.loads(line) if line[:1] == "{" else line for line in done.stdout.splitlines()]


def tables(place: Path) -> dict[str, Path]:
    """The tables of both lakes, by their paths below ``place``."""
    found = [p.parent.parent for name in LAKES.values() for p in (place / name).glob("*/*/.hoodie/hoodie.properties")]
    return {str(path.relative_to(place)): path for path in sorted(found)}


def rows_of(path: Path) -> list[Row]:
    """The rows of a table without Hudi's own columns; hudi-rs and binlake's reader give the same."""
    ours, theirs = canonical(read_ourselves(path)), canonical(hudi_rs.snapshot(path))
    assert ours == theirs, path
    return ours
