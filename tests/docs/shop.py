"""The lake that the pages speak of: a stream ``shop`` with the tables ``shop.orders`` and ``shop.customers``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from binlake.settings import Settings
from binlake.stream.monitoring.progress import ProgressEvent
from hudilake.clock import now_ms
from tests.binlake.cli.fed_lake import BY_PROCESS, FedLake
from tests.binlake.stream.topic_log import event

SCHEMAS = {
    "orders": {
        "id": "bigint",
        "customer_id": "bigint",
        "status": "varchar(20)",
        "total": "decimal(12,2)",
        "placed_at": "datetime(6)",
    },
    "customers": {"id": "bigint", "name": "varchar(80)", "email": "varchar(120)"},
}
_PLACED_US = 1_709_208_000_000_000  # 2024-02-29 12:00 UTC
_ORDERS = 100


class Shop(FedLake):
    """Orders 0 to 99 of customers 42 and 43, two customers, and one record in quarantine."""

    def configure(self, tables: dict[str, Any]) -> None:
        schemas = {f"shop.{name}": {"columns": columns, "key": ["id"]} for name, columns in SCHEMAS.items()}
        document = {
            "name": "shop",
            "lake": {"uri": str(self.path), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [f"shop.shop.{name}" for name in SCHEMAS]},
            "source": {"schemas": schemas},
            "tables": {"defaults": {"buckets": 2, "compaction": BY_PROCESS, **tables}},
        }
        self.conf.write_text(json.dumps(document))
        self.settings = Settings.load(self.conf)

    def fill(self) -> list[ProgressEvent]:
        """Two batches: all rows, then a change of each order."""
        told = []
        for status in ("paid", "shipped"):
            for key in range(_ORDERS):
                row = {"id": key, "customer_id": 42 + key % 2, "status": status, "total": "AfQ="}
                self._put("orders", {**row, "placed_at": _PLACED_US + key})
            for key in (42, 43):
                self._put("customers", {"id": key, "name": "Ada", "email": None})
            self.log.add("shop.shop.orders", b"{no JSON", None)
            done = self.runner.run(self.batches, self.log.end(), now_ms(), self.engine)
            assert [t.error for t in done.tables if t.error] == []
            self.batches += 1
            told.append(done)
        return told

    def _put(self, table: str, row: dict[str, Any]) -> None:
        position = sum(map(len, self.log.records.values())) + 1
        self.log.add(f"shop.shop.{table}", event(table, "u", position, row), {"id": row["id"]})


def copied(shop: Path, place: Path) -> Path:
    """A copy of the lake and its settings, for commands that change it; the path of the settings."""
    shutil.copytree(shop / "lake", place / "lake")
    conf = place / "conf.yaml"
    conf.write_text((shop / "conf.yaml").read_text().replace(str(shop / "lake"), str(place / "lake")))
    return conf
