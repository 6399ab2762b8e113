"""Recorded WAL entries in Kafka, taken by ``binlake run``: the whole path, with Spark's tasks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.spark.java import java_environment
from demo.messages import Message
from demo.produce import Sender, create_topics
from embedded.jars import spark_packages
from hudilake.clock import new_uuid
from tests.binlake.hbase.cells_world import CellsWorld
from tests.binlake.hbase.recordings import topic
from tests.binlake.hbase.test_wide_tables import LASTING, entry, wanted_rows, wide_rows
from tests.services.kafka import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.full]


def _messages(prefix: str, table: str) -> Iterator[Message]:
    for partition, records in topic(table, "wal").items():
        for at, key, value in zip(records.timestamps_ms.tolist(), records.keys, records.values, strict=True):
            yield Message(f"{prefix}.{records.topic}", partition, at, key, value)


def test_both_tables_from_kafka(kafka_broker: Broker, tmp_path: Path) -> None:
    prefix, servers = new_uuid()[:8], kafka_broker.bootstrap_servers
    sent = {table: list(_messages(prefix, table)) for table in LASTING}
    create_topics(servers, {each[0].topic: 1 + max(one.partition for one in each) for each in sent.values()})
    sender = Sender(servers)
    for each in sent.values():
        sender.send(each)
    sender.flush()
    world = CellsWorld(tmp_path, ())
    batch = {"max_events": 1_500, "shuffle_above_bytes": 100_000}
    kafka = {"bootstrap_servers": servers, "topics": [each[0].topic for each in sent.values()]}
    spark = {"driver_memory_mb": 512, "conf": {"spark.jars": ",".join(map(str, spark_packages()))}}
    world.start(tables={"cells": [entry(table) for table in LASTING]}, kafka=kafka, batch=batch, spark=spark)
    command = [sys.executable, "-m", "binlake.cli", "run", str(world.conf), "--once", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=java_environment(), timeout=180)
    assert done.returncode == 0, done.stderr[-3000:]
    told = [ProgressEvent.from_json(json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len([event for event in told if event.tables]) > 1
    for table in LASTING:
        assert wide_rows(world, table) == wanted_rows(table)
        assert len(world.cells(table.partition(":")[2])) > len(wanted_rows(table))
