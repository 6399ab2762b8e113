"""Hostile names, and a stream without Spark or Kafka whose events name any table they like."""

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
from binlake.stream.recovery import recover
from binlake.tables.lake import Lake
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event, services

TOPIC = "t"
#: Names that MySQL can have, and that a careless writer would let out of the lake, or into its own directories.
POSSIBLE = [
    "..",
    ".",
    "../..",
    "/etc",
    "a/b",
    "..\\..",
    "C:\\x",
    ".hoodie",
    ".binlake",
    "_quarantine",
    "_ddl",
    "%2e%2e%2f",
    "%00",
    "{database}",
    "${env:HOME}",
    "${file:/etc/passwd}",
    "．．",  # full-width dots
    "ａ",
    "a\u202eb",
    "a\u0301",
    "\u00e1",
    "T",
    "t",
    "line\nbreak",
    "\x1b]0;title\x07\x1b[2J",
    "[/bold]",
    "[link=http://x]",
    ":boom:",
    'a"; DROP TABLE x; --',
    "' OR 1=1",
    "a b ",
    "x" * 64,
    "名" * 40,
    "*",
    "a@002eb",
]
#: Names that no MySQL table has: their records are quarantined.
IMPOSSIBLE = ["", "x" * 65, "x" * 300, "a\0b"]


def framed(database: str, table: str, pos: int, row: dict[str, Any], before: dict[str, Any] | None = None) -> bytes:
    """A Debezium event with its schema: ``id`` is a whole number, the rest text."""
    op = "u" if before else "c"
    payload = event(table, op, pos, row, before)
    payload["source"]["db"] = database
    fields = [{"type": "int32" if n == "id" else "string", "optional": n != "id", "field": n} for n in row]
    sides = [{"type": "struct", "fields": fields, "optional": True, "field": side} for side in ("before", "after")]
    schema = {"type": "struct", "fields": sides, "optional": False, "name": "x.Envelope"}
    return json.dumps({"schema": schema, "payload": payload}).encode()


class HostileTopic:
    """A stream named ``shop`` into a lake below ``path``. It takes every table."""

    def __init__(self, path: Path, **sections: Any) -> None:  # noqa: ANN401 - any YAML value
        self.path, self.lake, self.conf = path, path / "lake", path / "conf.yaml"
        path.mkdir(exist_ok=True)
        self.document: dict[str, Any] = {
            "name": "shop",
            "lake": {"uri": str(self.lake), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [TOPIC]},
            "quarantine": {"max_fraction": 1.0},
            "tables": {"defaults": {"buckets": 1, "compaction": {"mode": "off"}}},
            **sections,
        }
        self.log, self.position = TopicLog(), 0
        self.start()

    def start(self) -> None:
        """A new process of the stream."""
        self.conf.write_text(json.dumps(self.document))
        self.settings = Settings.load(self.conf)
        root = open_storage(str(self.lake), {"fsync": "false"})
        state, lake = root.sub(".binlake/shop"), Lake(root)
        ledger = Ledger.load(state, "shop") or recover(self.settings, root, lake)
        for source in ledger.tables:
            lake.get(self.settings.table_rules(source))
        self.runner = BatchRunner(self.settings, lake, state, ledger, SchemaRegistry(self.settings), services())

    def put(self, database: str, table: str, row: dict[str, Any], before: dict[str, Any] | None = None) -> None:
        """One event of a table."""
        self.position += 10
        self.log.add(TOPIC, framed(database, table, self.position, row, before), {"id": row["id"]})

    def batch(self) -> ProgressEvent:
        return self.runner.run(self.position, self.log.end(), 0, LocalEngine(self.log))

    def run(self, *arguments: str) -> Result:
        """A command; ``CONF`` among the arguments is this stream's settings file."""
        return CliRunner().invoke(app, [str(self.conf) if a == "CONF" else a for a in arguments])

    def tables(self) -> set[str]:
        """The paths of all tables on disk, below the lake's root."""
        found = (p.parent.relative_to(self.lake).as_posix() for p in self.lake.rglob(".hoodie"))
        return {path for path in found if "/.hoodie" not in path}
