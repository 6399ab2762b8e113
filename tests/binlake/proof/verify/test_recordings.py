"""Recorded Debezium topics in the lake, and the recorded final rows at a real server: no cell differs.

The two sides share nothing: the lake is decoded from the events, the server is filled from its own ``SELECT *``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.lake import Lake
from embedded.mariadb import EmbeddedMariaDB
from hudilake.storage import open_storage
from tests.binlake.decode.recordings import topics
from tests.binlake.proof.verify.source import database_section, verified
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, services
from tests.paths import RECORDINGS

pytestmark = pytest.mark.database

#: What the recorder's notes give as lost by the connector or Kafka Connect, or never recorded.
LOST = {"shop.dbz_signal", "shop.cdc_marker"}
NAME, PREFIX = "shop", "shop_schema"


@pytest.fixture
def shop(server: EmbeddedMariaDB) -> Iterator[EmbeddedMariaDB]:
    """The recorded final rows in a database of a real server."""
    truth = RECORDINGS / NAME / "truth"
    server.execute(f"CREATE DATABASE {NAME} CHARACTER SET utf8mb4")
    for table, facts in json.loads((truth / "tables.json").read_text()).items():
        server.execute(f"USE {NAME}; SET foreign_key_checks = 0; {(truth / f'{table}.sql').read_text()}")
        columns = [c for c in facts["columns"] if "GENERATED" not in c["extra"]]
        rows = [json.loads(line) for line in (truth / facts["file"]).read_text().splitlines()]
        names = ", ".join(f"`{c['name']}`" for c in columns)
        values = ", ".join(f"({', '.join(literal(row, c) for c in columns)})" for row in rows)
        if rows:
            made = f"INSERT INTO {NAME}.`{table}` ({names}) VALUES {values}"
            server.execute(f"SET sql_mode = '', foreign_key_checks = 0; {made}")
    yield server
    server.execute(f"DROP DATABASE {NAME}")


def literal(row: dict[str, Any], column: dict[str, Any]) -> str:
    """A recorded cell as a statement writes it."""
    value = row.get(f"{column['name']}@double", row[column["name"]])
    if value is None:
        return "NULL"
    if isinstance(value, dict):
        return f"x'{value['hex']}'"
    return f"x'{value.encode().hex()}'" if column["charset"] else "'" + value.replace("'", "''") + "'"


def lake_of_recording(place: Path, server: EmbeddedMariaDB) -> Settings:
    """Apply the recorded topics without Spark and Kafka."""
    recorded = topics(NAME, "schema")
    data = [topic for topic in recorded if topic.startswith(f"{PREFIX}.{NAME}.")]
    document: dict[str, Any] = {
        "name": "shop",
        "lake": {"uri": str(place), "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": data},
        "tables": {"defaults": {"buckets": 2}},
    }
    config = Settings.parse(json.dumps(document))
    root = open_storage(str(place), {"fsync": "false"})
    log = TopicLog()
    for topic in data:
        for partition, records in recorded[topic].items():
            log.records[topic, partition] = list(zip(records.keys, records.values, strict=True))
    registry = SchemaRegistry(config)
    registry.learn([v for part in recorded[PREFIX].values() for v in part.values if v is not None])
    ledger = Ledger("shop", positions={t: dict.fromkeys(recorded[t], 0) for t in data})
    runner = BatchRunner(config, Lake(root), root.sub(".binlake/shop"), ledger, registry, services())
    event = runner.run(1, log.end(), 0, LocalEngine(log))
    assert [t.error for t in event.tables if t.error] == []
    runner.close()
    # the recorded server's binlog is not this server's: whatever it wrote is older
    document["source"] = {"database": database_section(server), "epoch_of_server": {"4711": 2}}
    return Settings.parse(json.dumps(document))


@pytest.mark.full
def test_recorded_tables_of_all_types_are_equal(shop: EmbeddedMariaDB, tmp_path: Path) -> None:
    config = lake_of_recording(tmp_path, shop)
    results = verified(config)
    assert {"shop.customers", "shop.orders", "shop.order_items", "shop.audit_log"} <= set(results)
    told = {name: [*result.differences[:3], *result.wrong] for name, result in results.items() if result.different}
    assert {name: found for name, found in told.items() if name not in LOST} == {}
    assert all(result.source_rows and not result.changed_since for name, result in results.items() if name not in LOST)
    shop.execute("UPDATE shop.orders SET remark = CONCAT(IFNULL(remark, ''), ' ') LIMIT 1")  # the control
    assert verified(config)["shop.orders"].differing == {"differs": 1}
