"""A stream over one topic of Canal's or Maxwell's messages, without Spark and Kafka."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from binlake.load.replay.quarantine import replay
from binlake.load.replay.quarantine_records import Held, Replayed, Selection, held_records
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.progress import ProgressEvent, TableProgress
from binlake.stream.recovery import recover
from binlake.tables.audit import audit
from binlake.tables.lake import Lake
from binlake.tables.seal import Seal
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import open_storage
from tests.binlake.decode.recordings import as_server_sends, same_cell
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, services
from tests.judges import hudi_rs

TOPIC = "changes"
Rows = list[dict[str, Any]]


class Feed:
    """The topic, and the stream that reads it."""

    def __init__(self, path: Path, **sections: Any) -> None:  # noqa: ANN401
        self.path, self.log, self.batches = path, TopicLog(), 0
        self.engine = LocalEngine(self.log)
        self.document: dict[str, Any] = {
            "name": "shop",
            "lake": {"uri": str(path), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [TOPIC]},
            "tables": {"defaults": {"buckets": 2}},
        }
        self.start(**sections)

    def start(self, **sections: Any) -> None:  # noqa: ANN401
        """A new process, with other settings."""
        for name, section in sections.items():
            self.document[name] = {**self.document.get(name, {}), **section}
        self.settings = Settings.parse(json.dumps(self.document))
        root = open_storage(str(self.path), {"fsync": "false"})
        self.state = root.sub(".binlake/shop")
        lake = Lake(root)
        ledger = Ledger.load(self.state, "shop") or recover(self.settings, root, lake)
        for source in ledger.tables:
            lake.get(self.settings.table_rules(source))
        self.runner = BatchRunner(self.settings, lake, self.state, ledger, SchemaRegistry(self.settings), services())

    def put(self, message: dict[str, Any] | bytes, partition: int = 0) -> None:
        self.log.add(TOPIC, message, None, partition)

    def batch(self) -> ProgressEvent:
        self.batches += 1
        event = self.runner.run(self.batches, self.log.end(), 0, self.engine)
        for table in event.tables:
            assert table.error is None
            fates = table.applied + table.superseded + table.filtered + table.quarantined
            assert table.events_read == fates + table.already_applied
        return event

    def table(self, name: str) -> TableProgress:
        """A batch, and what it came to for one table."""
        return next(t for t in self.batch().tables if t.table == f"shop.{name}")

    def rows(self, name: str) -> Rows:
        """The table's value columns through hudi-rs, when fsck and audit find nothing wrong with it."""
        storage = open_storage(str(self.path / "shop" / name))
        findings = [*fsck(storage, grace_ms=0).findings, *audit(storage).findings]
        assert [f.what for f in findings if f.severity is Severity.ERROR] == []
        found: Rows = hudi_rs.snapshot(self.path / "shop" / name).to_pylist()
        return [{k: v for k, v in row.items() if not k.startswith(("_hoodie", "_binlake"))} for row in found]

    def values(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row[c] for c in columns) for row in self.rows(name))

    def quarantined(self) -> list[tuple[int, str]]:
        """(offset, reason) of what waits."""
        return sorted((held.offset, held.reason) for held in self.held())

    def held(self) -> list[Held]:
        place = open_storage(str(self.path)).sub(self.settings.quarantine_path)
        return held_records(place, Selection(), Seal(None), payload=True)

    def replay(self) -> Replayed:
        return replay(self.settings, Selection())


def canal(
    table: str,
    kind: str,
    data: Sequence[Mapping[str, str | None]] | None,
    old: Sequence[Mapping[str, str | None]] | None = None,
    types: dict[str, str] | None = None,
    key: list[str] | None = None,
    **more: Any,  # noqa: ANN401 - members of the message
) -> dict[str, Any]:
    """A message as Canal writes it, member for member."""
    return {
        "data": data,
        "database": "shop",
        "es": 1_795_241_823_000,
        "gtid": "",
        "id": 1,
        "isDdl": data is None,
        "mysqlType": types,
        "old": old,
        "pkNames": key,
        "sql": "",
        "sqlType": None if types is None else dict.fromkeys(types, 12),
        "table": table,
        "ts": 1_795_241_823_835,
        "type": kind,
    } | more


def maxwell(
    table: str,
    kind: str,
    data: dict[str, Any] | None = None,
    old: dict[str, Any] | None = None,
    position: int = 0,
    **more: Any,  # noqa: ANN401 - members of the message
) -> dict[str, Any]:
    """A row's message as Maxwell writes it; the last of its transaction unless there is an xoffset."""
    message: dict[str, Any] = {"database": "shop", "table": table, "type": kind, "ts": 1_795_241_823}
    if not kind.startswith("bootstrap"):
        message |= {"xid": position, "position": f"bin.000001:{position}", "server_id": 1}
        message |= {} if "xoffset" in more else {"commit": True}
    message |= {"data": data or {}}
    return message | ({} if old is None else {"old": old}) | more


def unequal(
    rows_of: Callable[[str], Rows], truth: Mapping[str, tuple[Rows, Mapping[str, str]]]
) -> tuple[set[tuple[str, str]], dict[str, int]]:
    """Columns of which a cell differs from the source's, by table, and rows too many. All rows of the source are there.

    A table without a key is compared as a multiset.
    """
    differ: set[tuple[str, str]] = set()
    more: dict[str, int] = {}
    for table, (expected, kinds) in truth.items():
        found = rows_of(table)
        if len(found) != len(expected):
            more[table] = len(found) - len(expected)
        if table == "audit_log":
            mine = Counter(tuple(as_server_sends(row[name], kinds[name]) for name in kinds) for row in found)
            theirs = Counter(tuple(row[name] for name in kinds) for row in expected)
            differ |= set() if mine == theirs else {(table, "")}
            continue
        key = KEYS.get(table, ("id",))
        assert found, f"{table} has no rows"
        by_key = {tuple(as_server_sends(row[name], kinds[name]) for name in key): row for row in found}
        differ |= {
            (table, name)
            for row in expected
            for name, cell in row.items()
            if not same_cell(cell, by_key[tuple(row[n] for n in key)].get(name), kinds[name])
        }
    return differ, more


KEYS = {"stock": ("sku",), "order_items": ("order_id", "line"), "coupons": ("code", "region")}
