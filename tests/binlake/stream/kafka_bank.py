"""A small table of accounts in a topic, and a stream over it: for tests of what Kafka may do to a stream."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from binlake.settings import Settings
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.run import Stream
from demo.readback import read_table
from tests.binlake.stream.topic_log import COLUMNS, event

Client = Mapping[str, str | int | float | bool]


def admin_of(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers})


def make_topic(servers: str, topic: str, partitions: int = 1) -> None:
    admin = admin_of(servers)
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()


def account(topic: str, number: int, pos: int, **source: Any) -> tuple[bytes, bytes]:  # noqa: ANN401 - any JSON
    """Key and value of an upsert of account ``number`` at binlog position ``pos``; ``source``: fields that differ."""
    row = {"id": number, "owner": f"o{pos}", "balance": "AfQ=", "region": "eu"}
    body = event(topic.rpartition(".")[2], "u", pos, row)
    body["source"] |= source
    return json.dumps({"id": number}).encode(), json.dumps(body).encode()


def send(servers: str, topic: str, accounts: Sequence[int], first_pos: int, partition: int = 0, **source: Any) -> None:  # noqa: ANN401
    """One upsert for each account, at positions that go up by one."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for i, number in enumerate(accounts):
        key, value = account(topic, number, first_pos + i, **source)
        producer.produce(topic, key=key, value=value, partition=partition)
    assert producer.flush(30) == 0


class Bank:
    """A stream over the topic ``<prefix>.shop.<table>`` into a lake of its own."""

    def __init__(self, spark: SparkSession, servers: str, topic: str, place: Path, **kafka: Any) -> None:  # noqa: ANN401
        self.spark, self.servers, self.topic, self.place, self.kafka = spark, servers, topic, place, kafka
        self.table = topic.rpartition(".")[2]
        self.events: list[ProgressEvent] = []
        self.source: dict[str, Any] = {}

    def document(self) -> dict[str, Any]:
        schemas = {f"shop.{self.table}": {"columns": COLUMNS, "key": ["id"]}}
        return {
            "name": "bank",
            "lake": {"uri": str(self.place / "lake"), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": self.servers, "topics": [self.topic], **self.kafka},
            "source": {"schemas": schemas, **self.source},
            "tables": {"defaults": {"buckets": 1}},
            "batch": {"trigger_interval_ms": 0},
        }

    def settings(self) -> Settings:
        return Settings.parse(json.dumps(self.document()))

    def run(self, *, skip_missing: bool = False) -> list[ProgressEvent]:
        """Apply all there is; the batches it took."""
        before = len(self.events)
        settings = self.settings()
        stream = Stream(settings, self.spark, self.events.append, threading.Event(), skip_missing=skip_missing)
        stream.run(once=True)
        return self.events[before:]

    @property
    def lake_table(self) -> Path:
        return self.place / "lake" / "shop" / self.table

    def owners(self) -> dict[int, str]:
        """The table's rows by hudi-rs."""
        return {r["id"]: r["owner"] for r in read_table(self.lake_table).select(["id", "owner"]).to_pylist()}
