"""Five batches of two source tables, what the lake must hold after each, and a stream over them in any store.

``accounts`` is partitioned, and rows change their partition; ``orders`` is emptied by a TRUNCATE and has a record that
nobody can read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.source.offsets import Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.recovery import recover
from binlake.tables.audit import OFFSET_KEYS, audit
from binlake.tables.lake import Lake
from hudilake.errors import UnsupportedError
from hudilake.read import Snapshot, TableReader
from hudilake.read.slice import read_table
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.topic_log import COLUMNS, LocalEngine, TopicLog, event, services
from tests.judges import hudi_rs

TABLES = ("accounts", "orders")
NAMES = ("id", "owner", "region")
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Place:
    """Where a lake lies, in any store."""

    uri: str
    options: Mapping[str, str] = field(default_factory=lambda: {"fsync": "false"})

    @property
    def path(self) -> Path | None:
        """Its directory, for readers that know no other store; None if it is not on local disk."""
        return None if "://" in self.uri else Path(self.uri)

    def open(self) -> Storage:
        """Its root."""
        return open_storage(self.uri, self.options)

    def settings(self, **more: Any) -> Settings:  # noqa: ANN401 - any YAML value
        """Of the stream; ``more``: sections, and for ``defaults`` the rules of the tables."""
        rules = {"buckets": 1, "retention": {"commits": 3}, "compaction": {"mode": "off"}, **more.pop("defaults", {})}
        overrides = [{"match": "shop.accounts", "partition": {"column": "region"}}]
        document = {
            "name": "shop",
            "lake": {"uri": self.uri, "options": dict(self.options)},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [f"s.shop.{t}" for t in TABLES]},
            "source": {"schemas": {f"shop.{t}": {"columns": COLUMNS, "key": ["id"]} for t in TABLES}},
            "tables": {"defaults": rules, "overrides": overrides},
            "locking": {"lock": "process"},
            **more,
        }
        return Settings.parse(json.dumps(document))


@dataclass
class Story:
    """The events of all batches. ``ends``, ``rows``: the topics' ends and the tables' rows after each batch."""

    log: TopicLog = field(default_factory=TopicLog)
    ends: list[Offsets] = field(default_factory=list)
    rows: list[dict[str, Rows]] = field(default_factory=list)
    _held: dict[str, dict[int, dict[str, Any]]] = field(default_factory=lambda: {t: {} for t in TABLES})
    _pos: int = 100

    def put(self, table: str, key: int, owner: str, region: str = "eu") -> None:
        before = self._held[table].get(key)
        row = {"id": key, "owner": owner, "balance": "AfQ=", "region": region}
        self._held[table][key] = row
        self._add(table, "u" if before else "c", row, before, key)

    def delete(self, table: str, key: int) -> None:
        self._add(table, "d", self._held[table].pop(key), None, key)

    def truncate(self, table: str) -> None:
        self._held[table].clear()
        self._pos += 10
        self.log.add(f"s.shop.{table}", {**event(table, "t", self._pos, {}), "after": None}, None)

    def end(self) -> None:
        """The batch is complete."""
        self.ends.append(self.log.end())
        now = {t: sorted(tuple(row[n] for n in NAMES) for row in held.values()) for t, held in self._held.items()}
        self.rows.append(now)

    def _add(self, table: str, op: str, row: dict[str, Any], before: dict[str, Any] | None, key: int) -> None:
        self._pos += 10
        partition = key % 2 if table == "accounts" else 0
        self.log.add(f"s.shop.{table}", event(table, op, self._pos, row, before), {"id": key}, partition)


@cache
def story() -> Story:
    """The same for all."""
    told = Story()
    for key in range(6):
        told.put("accounts", key, "first", "eu" if key < 4 else "us")
        told.put("orders", key, "first")
    told.end()
    for key in range(3):
        told.put("accounts", key, "second", "us" if key == 0 else "eu")
    told.delete("orders", 1)
    told.put("orders", 2, "second")
    told.end()
    told.put("accounts", 1, "third")
    told.delete("accounts", 5)
    told.put("orders", 9, "third")
    told.end()
    told.put("accounts", 2, "fourth", "asia")
    told.delete("accounts", 3)
    told.put("accounts", 3, "again", "us")
    told.put("orders", 2, "gone")
    told.log.add("s.shop.orders", b"{broken", {"id": 6})
    told.truncate("orders")
    told.put("orders", 4, "fourth")
    told.end()
    told.put("accounts", 7, "fifth")
    told.put("orders", 4, "fifth")
    told.end()
    return told


def stream(
    place: Place, root: Storage, config: Settings | None = None, statements: Sequence[bytes] = ()
) -> BatchRunner:
    """What the start of a stream does, without Spark. ``statements``: the records of the DDL topic."""
    config = config or place.settings()
    lake, state = Lake(root), root.sub(f".binlake/{config.name}")
    ledger = Ledger.load(state, config.name) or recover(config, root, lake)
    for source in ledger.tables:
        lake.get(config.table_rules(source))
    registry = SchemaRegistry(config)
    registry.learn(statements)
    return BatchRunner(config, lake, state, ledger, registry, services())


def run_to(batch: int, place: Place, root: Storage, config: Settings | None = None) -> None:
    """A process of the stream that applies everything up to the end of a batch, then ends. Raises LakeError."""
    told, runner = story(), stream(place, root, config)
    engine = LocalEngine(told.log)
    try:
        runner.run(batch, told.ends[batch], 0, engine)
        for source in list(runner.ledger.behind):
            while source in runner.ledger.behind:
                if runner.catch_up(source, engine) is None:
                    break
    finally:
        runner.close()


def rows_of(storage: Storage, as_of: str | None = None) -> Rows:
    """The rows of a table through our reader. Raises UnsupportedError for a time whose files may have been cleaned."""
    return _sorted(TableReader.open(storage).read(Snapshot(as_of), columns=NAMES).read_all().to_pylist())


def _sorted(rows: Any) -> Rows:  # noqa: ANN401 - an iterable of mappings
    return sorted(tuple(row[n] for n in NAMES) for row in rows)


def pasts(place: Place, batch: int) -> dict[str, dict[str, Rows]]:
    """By table the rows of each past that the retention promises, by instant, of a lake that was fed batch by batch."""
    found: dict[str, dict[str, Rows]] = {}
    for table in TABLES:
        writes = HudiTable.open(place.open().sub(f"shop/{table}")).timeline.completed()
        states = [story().rows[n][table] for n in range(batch + 1)]
        found[table] = {w.requested_time: states[n] for n, w in enumerate(writes[: batch + 1])}
    return found


def wrong_rows(place: Place, batch: int) -> list[str]:
    """Which tables do not hold the rows that they must hold after a batch, by our reader."""
    tables = [(t, rows_of(place.open().sub(f"shop/{t}")), story().rows[batch][t]) for t in TABLES]
    return [f"{table}: {rows} for {wanted}" for table, rows, wanted in tables if rows != wanted]


def trouble(place: Place, batch: int, known: Mapping[str, Mapping[str, Rows]], states: Sequence[str] = ()) -> list[str]:
    """Everything that is wrong with the lake after a batch.

    Args:
        place: of the lake.
        batch: all of it up to here must be there, once.
        known: pasts by table: each must be right or refused.
        states: the instants of those that must not be refused.
    """
    found: list[str] = []
    for table in TABLES:
        storage, wanted = place.open().sub(f"shop/{table}"), story().rows[batch][table]
        found += [f"{table}: {text}" for text in _table_trouble(storage, wanted)]
        if place.path is not None:
            rust = _sorted(hudi_rs.snapshot(place.path / "shop" / table).to_pylist())
            found += [] if rust == wanted else [f"{table}: hudi-rs shows {rust} for {wanted}"]
        for instant, rows in known.get(table, {}).items():
            try:
                then = rows_of(storage, instant)
            except UnsupportedError as refusal:
                found += [f"{table}: {instant} is refused: {refusal}"] if instant in states else []
                continue
            found += [] if then == rows else [f"{table} as of {instant}: {then} for {rows}"]
    return found + _quarantine_trouble(place, batch)


def _table_trouble(storage: Storage, wanted: Rows) -> list[str]:
    rows = rows_of(storage)
    found = [] if rows == wanted else [f"our reader shows {rows} for {wanted}"]
    findings = [f for f in fsck(storage, OFFSET_KEYS, grace_ms=0).findings if f.severity is Severity.ERROR]
    found += [f"fsck: {f.what} ({f.where})" for f in findings]
    audited = audit(storage)
    found += [f"audit: {f.what}" for f in audited.errors]
    pending = [i.file_name for i in HudiTable.open(storage).timeline.pending()]
    return found + [f"pending: {name}" for name in pending]


def _quarantine_trouble(place: Place, batch: int) -> list[str]:
    storage = place.open().sub("_quarantine/shop")
    held = []
    if HudiTable.exists(storage):
        parts = read_table(storage, ["topic", "offset", "value", "reason"])
        held = [tuple(r.values()) for part in parts for r in part.to_pylist()]
    broken = [n for n, (_, value) in enumerate(story().log.records["s.shop.orders", 0]) if value == b"{broken"]
    wanted = [
        ("s.shop.orders", n, b"{broken", "malformed_json")
        for n in broken
        if n < story().ends[batch].at("s.shop.orders", 0)
    ]
    return [] if held == wanted else [f"quarantine: {held} for {wanted}"]
