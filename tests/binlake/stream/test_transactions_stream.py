"""Whole transactions with Spark and Kafka: begun afresh, and turned on for a stream that has run without."""

from __future__ import annotations

import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from binlake.settings import Settings
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.run import Stream
from demo.messages import Message
from demo.produce import Sender, create_topics
from hudilake.clock import new_uuid
from hudilake.read import TableReader
from tests.binlake.stream import test_transactions as bank
from tests.binlake.stream.topic_log import settings
from tests.services.kafka import Broker

pytestmark = [pytest.mark.full, pytest.mark.spark, pytest.mark.kafka]


def produced(broker: Broker) -> str:
    """The recorded bank in topics of its own; their prefix."""
    prefix = f"bank_{new_uuid()[:8]}"
    create_topics(broker.bootstrap_servers, {topic.replace(bank.PREFIX, prefix): 3 for topic, _ in bank.recorded()})
    sender = Sender(broker.bootstrap_servers)
    for (topic, partition), records in bank.recorded().items():
        name = topic.replace(bank.PREFIX, prefix)
        rows = zip(records.timestamps_ms.tolist(), records.keys, records.values, strict=True)
        sender.send(Message(name, partition, ms, key, value) for ms, key, value in rows)
    sender.flush()
    return prefix


def conf(broker: Broker, prefix: str, lake: Path, whole: bool) -> Settings:
    schemas = {f"bank.{t}": {"columns": columns, "key": ["id"]} for t, columns in bank.COLUMNS.items()}
    kafka: dict[str, Any] = {"bootstrap_servers": broker.bootstrap_servers, "topic_pattern": rf"{prefix}\.bank\..*"}
    if whole:
        kafka["transaction_topic"] = f"{prefix}.transaction"
    batch = {"max_events": 4_000, "trigger_interval_ms": 0, "transaction_consistent": whole}
    tables = {"defaults": {"buckets": 2}}
    return settings(str(lake), [], kafka=kafka, source={"schemas": schemas}, batch=batch, tables=tables)


def sums(lake: Path) -> tuple[int, Decimal]:
    """How many accounts there are, and what they hold together."""
    rows = TableReader.open(f"{lake}/bank/accounts").read(columns=["balance"]).read_all()
    return len(rows), Decimal(sum(rows.column("balance").to_pylist()))


def test_no_commit_holds_half_a_transaction(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> None:
    prefix = produced(kafka_broker)
    found: list[tuple[int, Decimal]] = []
    notices: list[str] = []

    def look(event: ProgressEvent) -> None:
        found.append(sums(tmp_path))
        notices.extend(event.notices)

    Stream(conf(kafka_broker, prefix, tmp_path, whole=True), spark, look, threading.Event()).run(once=True)
    after_snapshot = [total for count, total in found if count >= 990 and total > 999_000]
    assert len(after_snapshot) >= 3
    assert set(after_snapshot) == {bank.MILLION}
    assert any("wait for the end of transaction" in notice for notice in notices)
    assert found[-1][1] == bank.MILLION


@pytest.mark.full
def test_a_stream_that_ran_without_begins_where_it_stands(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path
) -> None:
    prefix, stop = produced(kafka_broker), threading.Event()
    found: list[tuple[int, Decimal]] = []

    def look(event: ProgressEvent) -> None:
        found.append(sums(tmp_path))
        if len(found) == 3:
            stop.set()

    Stream(conf(kafka_broker, prefix, tmp_path, whole=False), spark, look, stop).run(once=True)
    assert len(found) == 3, found
    assert any(total != bank.MILLION for _, total in found[1:]), found
    last: list[ProgressEvent] = []
    Stream(conf(kafka_broker, prefix, tmp_path, whole=True), spark, last.append, threading.Event()).run(once=True)
    assert sums(tmp_path)[1] == bank.MILLION
    assert last[-1].notices == ()
