"""A JSON topic that is no change event, through Kafka and Spark: several tasks learn its columns together."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from binlake.decode.changes import RawRecords
from hudilake.clock import new_uuid
from tests.binlake.stream.test_format_kafka import run, send
from tests.judges import hudi_rs
from tests.services.kafka import Broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def part(number: int, values: list[dict[str, object]]) -> RawRecords:
    at = np.arange(len(values))
    return RawRecords("", number, at, at, [None] * len(at), [json.dumps(v).encode() for v in values])


def test_tasks_learn_one_schema_together(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> None:
    topic = f"clicks_{new_uuid()[:8]}"
    values: list[list[dict[str, object]]] = [
        [{"id": i, "n": 1, "eu": "x"} for i in range(3_000)],
        [{"id": i, "n": 0.5, "us": {"a": i}} for i in range(3_000, 6_000)],
    ]
    send(kafka_broker, {topic: [part(number, rows) for number, rows in enumerate(values)]})
    entry = {"topics": "clicks_*", "table": "web.clicks", "key": ["id"], "metadata_columns": {"partition": "p"}}
    events = run(spark, kafka_broker, tmp_path, [topic], {"format": "json", "plain": [entry]})
    assert len(events) > 1
    found = hudi_rs.snapshot(tmp_path / "web" / "clicks").select(["id", "n", "eu", "us", "p"]).to_pylist()
    assert sorted(map(tuple, (row.values() for row in found))) == sorted(
        (v["id"], float(str(v["n"])), v.get("eu"), None if p == 0 else json.dumps(v["us"]), p)
        for p, rows in enumerate(values)
        for v in rows
    )
