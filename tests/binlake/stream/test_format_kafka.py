"""Canal's, Maxwell's and Avro's topics through Kafka and Spark into tables that equal the source's final SELECT."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from binlake.decode.changes import RawRecords
from binlake.settings import Settings
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.run import Stream
from demo.messages import Message
from demo.produce import Sender, create_topics
from hudilake.clock import new_uuid
from tests.binlake.decode import recordings
from tests.binlake.decode.formats import format_recordings as formats
from tests.binlake.decode.formats.avro_recordings import Writer
from tests.binlake.decode.formats.registry_server import Registry, serving
from tests.binlake.stream.format_feed import Rows, unequal
from tests.judges import hudi_rs
from tests.services.kafka import Broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def send(broker: Broker, topics: Mapping[str, list[RawRecords]]) -> None:
    """Put records into new topics, a list of partitions each."""
    create_topics(broker.bootstrap_servers, {topic: len(parts) for topic, parts in topics.items()})
    sender = Sender(broker.bootstrap_servers)
    for topic, parts in topics.items():
        for number, part in enumerate(parts):
            pairs = zip(part.keys, part.values, strict=True)
            sender.send(Message(topic, number, 1_795_241_823_000, key, value) for key, value in pairs)
    sender.flush()


def run(
    spark: SparkSession,
    broker: Broker,
    lake: Path,
    topics: list[str],
    source: dict[str, Any],
    ddl: tuple[str, ...] = (),
) -> list[ProgressEvent]:
    """A stream over all there is."""
    document = {
        "name": "formats",
        "lake": {"uri": str(lake), "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": broker.bootstrap_servers, "topics": topics, "ddl_topics": list(ddl)},
        "source": source,
        "batch": {"max_events": 4_000, "trigger_interval_ms": 0},
        "tables": {"defaults": {"buckets": 2}},
    }
    events: list[ProgressEvent] = []
    Stream(Settings.parse(json.dumps(document)), spark, events.append, threading.Event()).run(once=True)
    assert [table.error for event in events for table in event.tables if table.error] == []
    assert not (lake / "_quarantine").exists()
    return events


@pytest.mark.full
def test_canal_and_maxwell_side_by_side(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> None:
    """One stream that tells the formats apart, in several batches: Canal's shop and Maxwell's bank."""
    mark = new_uuid()[:8]
    topics = {f"{form}_{mark}": [formats.messages(of, form)] for form, of in (("canal", "shop"), ("maxwell", "bank"))}
    send(kafka_broker, topics)
    assert len(run(spark, kafka_broker, tmp_path, list(topics), {})) > 2

    def rows(database: str, table: str) -> Rows:
        found: Rows = hudi_rs.snapshot(tmp_path / database / table).to_pylist()
        return found

    differ, more = unequal(lambda table: rows("shop", table), formats.truth("shop"))
    assert (differ, more) == (set(), {})
    assert unequal(lambda table: rows("bank", table), formats.truth("bank")) == (set(), {})


@pytest.mark.full
def test_avro_with_a_registry(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> None:
    writer, mark = Writer(), new_uuid()[:8]
    recorded = {
        topic: [writer.records(part) for _, part in sorted(parts.items())]
        for topic, parts in recordings.topics("shop", "schema").items()
        if topic == "shop_schema" or topic.startswith("shop_schema.shop.")
    }
    topics = {topic.replace("shop_schema", f"avro_{mark}", 1): parts for topic, parts in recorded.items()}
    send(kafka_broker, topics)
    ddl = f"avro_{mark}"
    with serving(Registry()) as registry:
        registry.register(writer.ids)
        source = {"format": "debezium_avro", "registry": {"url": registry.url}}
        run(spark, kafka_broker, tmp_path, [topic for topic in topics if topic != ddl], source, (ddl,))
        assert registry.asked

    def rows(table: str) -> Rows:
        found: Rows = hudi_rs.snapshot(tmp_path / "shop" / table).to_pylist()
        return found

    differ, more = unequal(rows, recordings.truth("shop"))
    assert (differ, more) == (set(), {})
