"""A lake with tables of both types that a stream has written, registered in a metastore, and what readers must see."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from binlake.settings import Settings
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.lake.lake_tables import LakeTables
from lakemetastore.lake.naming import NamedTable
from lakemetastore.lake.registration import Registration
from lakemetastore.log.stores.opening import open_store
from tests.binlake.cli.fed_lake import BY_PROCESS, FedLake
from tests.binlake.stream.topic_log import COLUMNS, event

MERGED, COPIED = "orders", "carts"
Row = tuple[int, str, str]


class ShopLake(FedLake):
    """``shop.orders`` (merge-on-read) and ``shop.carts`` (copy-on-write), both in partitions by ``region``.

    Keys 1 to 4 are inserted and compacted, then key 1 is changed, key 2 goes and key 5 comes: ``rows`` is the table,
    ``compacted`` what its base files hold.
    """

    def configure(self, tables: dict[str, Any]) -> None:
        schemas = {f"shop.{t}": {"columns": COLUMNS, "key": ["id"]} for t in (MERGED, COPIED)}
        defaults = {"buckets": 1, "partition": {"column": "region"}, "compaction": BY_PROCESS, **tables}
        document = {
            "name": "shop",
            "lake": {"uri": str(self.path), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [f"s.shop.{t}" for t in (MERGED, COPIED)]},
            "source": {"schemas": schemas},
            "tables": {"defaults": defaults, "overrides": [{"match": f"shop.{COPIED}", "type": "copy_on_write"}]},
        }
        self.conf.write_text(json.dumps(document))
        self.settings = Settings.load(self.conf)

    def fill(self) -> ShopLake:
        """All batches, and a compaction between them."""
        self.put("r", [(1, "ann", "eu"), (2, "bob", "eu"), (3, "cid", "us"), (4, "dot", "us")])
        for _ in range(2):  # a compaction is due after three commits
            self.put("u", [(3, "cid", "us")])
        assert self.run("compact").exit_code == 0
        self.put("u", [(1, "ANN", "eu"), (5, "eve", "eu")])
        self.put("d", [(2, "bob", "eu")])
        return self

    rows: tuple[Row, ...] = ((1, "ANN", "eu"), (3, "cid", "us"), (4, "dot", "us"), (5, "eve", "eu"))
    compacted: tuple[Row, ...] = ((1, "ann", "eu"), (2, "bob", "eu"), (3, "cid", "us"), (4, "dot", "us"))

    def put(self, op: str, rows: Iterable[Row]) -> None:
        """A batch with these changes to both tables."""
        for table in (MERGED, COPIED):
            for key, owner, region in rows:
                position = sum(map(len, self.log.records.values())) + 1
                row = {"id": key, "owner": owner, "balance": "AfQ=", "region": region}
                before = row if op == "u" else None  # its partition counts
                self.log.add(f"s.shop.{table}", event(table, op, position, row, before), {"id": key})
        done = self.runner.run(self.batches, self.log.end(), 0, self.engine)
        assert [t.error for t in done.tables if t.error] == []
        self.batches += 1

    def register(self, store: str, warehouse: Path) -> None:
        """Both tables, in the metastore with this store."""
        logs = open_store(store)
        registration = Registration(Catalog(logs, warehouse=warehouse.as_uri()), LakeTables(logs))
        for table in (MERGED, COPIED):
            registration.register(NamedTable(self.table(table).storage, "shop", table))
        logs.close()
