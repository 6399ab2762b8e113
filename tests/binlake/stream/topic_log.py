"""Batches without Spark or Kafka: the same tasks, run in this process over records held in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from binlake.decode.changes import RawRecords
from binlake.rows.tasks.append_parcels import append_parcels
from binlake.rows.tasks.decode_and_route import decode_records
from binlake.rows.tasks.plan import BatchPlan, Item
from binlake.rows.tasks.write_parcels import write_parcels
from binlake.settings import Settings
from binlake.source.offsets import OffsetRange, Offsets
from binlake.tables.services.table_services import TableServices


def services() -> TableServices:
    """The upkeep of tables, its tasks run here."""
    return TableServices(lambda function, operations: [function(operation) for operation in operations])


COLUMNS = {"id": "bigint", "owner": "varchar(40)", "balance": "decimal(12,2)", "region": "varchar(10)"}


@dataclass
class TopicLog:
    """Topic partitions as lists of (key, value)."""

    records: dict[tuple[str, int], list[tuple[bytes | None, bytes | None]]] = field(default_factory=dict)

    def add(
        self, topic: str, value: dict[str, Any] | bytes | None, key: dict[str, Any] | None, partition: int = 0
    ) -> None:
        """Append one record."""
        raw = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        place = self.records.setdefault((topic, partition), [])
        place.append((None if key is None else json.dumps(key).encode(), raw))

    def end(self) -> Offsets:
        """The next offsets."""
        return Offsets.of_places((topic, partition, len(held)) for (topic, partition), held in self.records.items())

    def read(self, ranges: Sequence[OffsetRange]) -> Iterator[RawRecords]:
        """The records of the ranges."""
        for r in ranges:
            held = self.records[(r.topic, r.partition)][r.start : r.end]
            offsets = np.arange(r.start, r.end, dtype=np.int64)
            keys, values = [k for k, _ in held], [v for _, v in held]
            yield RawRecords(r.topic, r.partition, offsets, np.full(len(held), 1_760_000_000_000), keys, values)


@dataclass
class LocalEngine:
    """An Engine whose one task runs here. ``calls``: how often a plan was run."""

    log: TopicLog
    calls: int = 0

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """See binlake.stream.engine.Engine."""
        self.calls += 1
        items = decode_records(plan, self.log.read(ranges))
        items = append_parcels(plan, 0, items)
        return list(write_parcels(plan, items) if shuffle else items)


def event(table: str, op: str, pos: int, row: dict[str, Any], before: dict[str, Any] | None = None) -> dict[str, Any]:
    """A plain Debezium envelope; for deletes ``row`` is the before image."""
    return {
        "before": row if op == "d" else before,
        "after": None if op == "d" else row,
        "source": {
            "ts_ms": 1_760_000_000_000,
            "snapshot": "true" if op == "r" else "false",
            "db": "shop",
            "table": table,
            "server_id": 1,
            "file": "mysql-bin.000003",
            "pos": pos,
            "row": 0,
        },
        "op": op,
        "ts_ms": 1_760_000_000_000,
    }


def settings(place: str, tables: Sequence[str], /, **sections: Any) -> Settings:  # noqa: ANN401 - any YAML value
    """Settings of a stream of these tables of database ``shop`` into a lake at ``place``."""
    schemas = {f"shop.{t}": {"columns": COLUMNS, "key": ["id"]} for t in tables}
    document = {
        "name": "shop",
        "lake": {"uri": place, "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [f"s.shop.{t}" for t in tables]},
        "source": {"schemas": schemas},
        **sections,
    }
    return Settings.parse(json.dumps(document))
