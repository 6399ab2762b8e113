"""What must hold on every line of Spark: batches are planned, fetched and written, and ended streams go on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from binlake.settings import Settings
from binlake.source.offsets import NO_OFFSETS, Offsets
from binlake.stream.spark.lines import SPARK_LINES, check_fetch, spark_line
from binlake.stream.spark.planned_stream import planned_stream
from demo.produce import Sender
from hudilake.errors import ConfigError
from tests.binlake.stream.played import Play, play
from tests.hypothesis_profile import usually
from tests.services.kafka import Broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.lines, pytest.mark.full]

SHUFFLED, COLLECTED = 0, 1 << 30  #: bytes above which the rows of a batch are shuffled
#: When rows are shuffled, and who fetches: each by day, all together by night. Only Spark 3.5 has a Kafka source.
BY_SPARK = [(SHUFFLED, "spark"), (COLLECTED, "spark")] if SPARK_LINES[spark_line()].kafka_connector else []
BY_TASKS = [(COLLECTED, "direct"), (SHUFFLED, "direct")]
WAYS = usually([*BY_SPARK[:1], *BY_TASKS[: 1 if BY_SPARK else 2]], [*BY_SPARK, *BY_TASKS])


@pytest.mark.parametrize(("above_bytes", "fetch"), WAYS)
def test_a_recording_equals_the_truth(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path, above_bytes: int, fetch: str
) -> None:
    sections = {"kafka": {"fetch": fetch}, "batch": {"shuffle_above_bytes": above_bytes}}
    played = Play(spark, kafka_broker, play(kafka_broker, "shop", "schema"), tmp_path, sections)
    played.run()
    assert played.unequal() == {}
    batches = len(played.events)
    assert batches > 1
    assert all(p.end == p.position for p in played.events[-1].partitions)


def test_a_stream_goes_on_where_it_ended(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> None:
    """With its checkpoint: nothing, then one more record; without it: seven."""
    recording = play(kafka_broker, "shop", "schema", shared=False)
    played = Play(spark, kafka_broker, recording, tmp_path)
    messages = max(recording.recorded.topics.values(), key=len)
    sender = Sender(kafka_broker.bootstrap_servers)
    read = []
    for again in (0, 0, 1, 7):
        sender.send(messages[len(messages) - again :])
        sender.flush()
        if again == 7:
            shutil.rmtree(next(tmp_path.rglob("checkpoint")))
        played.events.clear()
        played.run()
        read.append(sum(event.events_read for event in played.events))
    assert read[0] > 1_000
    assert read[1:] == [0, 1, 7]
    assert played.unequal() == {}


def test_only_a_line_with_a_kafka_source_lets_spark_fetch() -> None:
    check_fetch("direct")
    if BY_SPARK:
        check_fetch("spark")
    else:
        with pytest.raises(ConfigError, match=r"needs Spark 3\.5"):
            check_fetch("spark")


if not BY_SPARK:  # a plan of Spark 3.5 shows the options of its Kafka source, which only its UI and its log hide

    def test_no_plan_shows_a_password(spark: SparkSession) -> None:
        login = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "u"}
        kafka = {
            "bootstrap_servers": "localhost:9092",
            "topics": ["t"],
            "properties": {**login, "sasl.password": "hidden"},
        }
        settings = Settings.parse(json.dumps({"name": "s", "lake": {"uri": "file:///lake"}, "kafka": kafka}))
        frame = planned_stream(spark, settings, Offsets({"t": {0: 5}}), NO_OFFSETS, once=False).frame
        plan = frame._jdf.queryExecution().toString()
        assert "StreamingRelation" in plan
        assert "hidden" not in plan
