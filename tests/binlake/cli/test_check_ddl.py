"""What ``binlake check`` tells of DDL before the stream meets it."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from binlake.cli.commands.stream.check import run_checks
from binlake.cli.commands.stream.check_ddl import policies
from binlake.decode.changes import SourceTable
from binlake.settings import Settings
from hudilake.clock import new_uuid
from tests.binlake.schema.test_schema_changes import started
from tests.services.kafka import Broker


def test_policies_are_told_once_and_where_tables_differ() -> None:
    text = """
        name: s
        lake: {uri: /nowhere}
        kafka: {bootstrap_servers: 'h:1', topics: [p.shop.t]}
        tables: {overrides: [{match: shop.u, schema_changes: {add: 'null', rename: keep}}]}
    """
    found = policies(Settings.parse(text), [SourceTable("shop", "t"), SourceTable("shop", "u")])
    assert [f.detail for f in found] == [
        "add fill, drop keep, rename copy, widen apply, narrow keep, convert follow, key rewrite, partitions follow, "
        "drop_table keep, "
        "recreate_table delete, rename_table follow, shadow_tables filter",
        "shop.u: add null, rename keep",
    ]


@pytest.mark.kafka
def test_statements_are_judged_against_the_tables_as_they_stand(kafka_broker: Broker, tmp_path: Path) -> None:
    source, _ = started(tmp_path)
    source.add("t", "tier", "int", 3, "DEFAULT 3")
    source.modify("t", "name", "int")
    prefix = f"ddl{new_uuid()[:8]}"
    servers = kafka_broker.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(f"{prefix}.shop.t", key=b"{}")
    for record in source.ddl:
        producer.produce(prefix, record)
    producer.flush(30)
    text = f"""
        name: shop
        lake: {{uri: '{tmp_path}'}}
        kafka: {{bootstrap_servers: '{servers}', topics: [{prefix}.shop.t], ddl_topics: [{prefix}]}}
        tables: {{defaults: {{buckets: 2, schema_changes: {{convert: refuse}}}}}}
    """
    before = sorted(str(p) for p in tmp_path.rglob("*"))
    checks = run_checks(Settings.parse(text))
    found = [(c.verdict.value, c.detail.split(" ", 1)[1]) for c in checks if c.name == "ddl shop.t"]
    assert found == [
        ("ok", "ALTER TABLE `t` ADD COLUMN tier int DEFAULT 3: fill: tier is 3 in rows before (waits)"),
        ("warning", "ALTER TABLE t MODIFY name int: refuse: column name becomes int, the lake has string (waits)"),
    ]
    assert [c for c in checks if c.error is not None] == []
    assert sorted(str(p) for p in tmp_path.rglob("*")) == before
