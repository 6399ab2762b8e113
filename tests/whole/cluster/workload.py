"""What clusters are given: change events of one table, the settings of a stream, and the rows that must come of it."""

from __future__ import annotations

import json
from pathlib import Path

from hudi import HudiTableBuilder

from bench.events import COLUMNS, events
from tests.services.kafka import Broker

#: Two batches that executors shuffle, and a smaller one that they give back to the driver.
BATCH, COUNT = 2_000, 5_000
SHUFFLED_EVENTS = 1_500


def configure(file: Path, lake: str, broker: Broker, topic: str) -> Path:
    """Write the settings of a stream whose master spark-submit names. Returns the file."""
    document = {
        "name": "cluster",
        "lake": {"uri": lake},
        "kafka": {"bootstrap_servers": broker.bootstrap_servers, "topics": [topic]},
        "source": {"schemas": {"bench.orders": {"columns": COLUMNS, "key": ["id"]}}},
        "batch": {"max_events": BATCH, "trigger_interval_ms": 0, "shuffle_above_bytes": SHUFFLED_EVENTS * 550},
        "spark": {"master": None},
    }
    file.write_text(json.dumps(document))
    return file


def expected(count: int) -> dict[int, int]:
    """id -> the cheapest thing that tells the newest version: its created_at, for the keys that are left."""
    last: dict[int, int | None] = {}
    for key, value in events(count):
        change = json.loads(value)
        last[json.loads(key)["id"]] = change["after"]["created_at"] if change["after"] else None
    return {k: v for k, v in last.items() if v is not None}


def rows_of(lake: Path) -> dict[int, int]:
    """The same of the table in a lake, for hudi-rs."""
    batches = HudiTableBuilder.from_base_uri(str(lake / "bench" / "orders")).build().read()
    return {r["id"]: int(r["created_at"].timestamp() * 1_000_000 + 0.5) for b in batches for r in b.to_pylist()}
