"""Settings that name no schema change topic, as conf/minimal.yaml: what Debezium's defaults write becomes the truth."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource  # type: ignore[attr-defined]
from pyspark.sql import SparkSession

from binlake.cli.commands.stream.check import run_checks
from binlake.cli.commands.stream.check_result import CheckOutcome
from binlake.settings import Settings
from binlake.stream.definitions.ddl_topics import with_ddl_topics, with_found_topics
from binlake.tables.ddl_topics import with_heard_topics
from hudilake.storage import open_storage
from tests.binlake.stream.played import Play, Recording, play
from tests.binlake.stream.topic_log import event
from tests.paths import ROOT
from tests.services.kafka import Broker

pytestmark = [pytest.mark.kafka]


def minimal(broker: Broker, recording: Recording, lake: Path) -> dict[str, Any]:
    """The settings of conf/minimal.yaml over the topics of a recording."""
    document: dict[str, Any] = yaml.safe_load((ROOT / "conf/minimal.yaml").read_text(encoding="utf-8"))
    pattern = document["kafka"]["topic_pattern"].replace("dbserver1", recording.prefix).replace("shop", "bank")
    document["kafka"] |= {"bootstrap_servers": broker.bootstrap_servers, "topic_pattern": pattern}
    document["lake"]["uri"] = str(lake)
    return document


@dataclass
class MinimalPlay(Play):
    """A stream with these settings."""

    def document(self) -> dict[str, Any]:
        return minimal(self.broker, self.recording, self.lake)


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("variant", ["plain", pytest.param("schema", marks=pytest.mark.full)])
def test_the_minimal_settings_follow_messages_with_schemas_and_without(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path, variant: str
) -> None:
    played = MinimalPlay(spark, kafka_broker, play(kafka_broker, "bank", variant), tmp_path)
    checks = run_checks(played.settings())
    assert [one.detail for one in checks if one.verdict is CheckOutcome.FAILED] == []
    [told] = [one.detail for one in checks if "names no topic" in one.detail]
    assert told.startswith(f"come from {played.recording.prefix},")
    played.run()
    assert played.unequal() == {}
    assert not (tmp_path / "_quarantine").exists()
    settings = played.settings()
    heard = with_heard_topics(settings, open_storage(settings.lake.uri, {}))
    assert heard.kafka.ddl_topics == (played.recording.prefix,)
    assert with_ddl_topics(settings, new=False).kafka.ddl_topics == (played.recording.prefix,)


def topics(document: Mapping[str, Any], *, new: bool) -> tuple[str, ...]:
    return with_found_topics(Settings.parse(json.dumps(document)), new=new).kafka.ddl_topics


@pytest.mark.full
def test_a_topic_is_taken_only_where_it_is_needed_and_tells_statements(kafka_broker: Broker, tmp_path: Path) -> None:
    plain, schema = (play(kafka_broker, "bank", variant) for variant in ("plain", "schema"))
    without, carried = minimal(kafka_broker, plain, tmp_path), minimal(kafka_broker, schema, tmp_path)
    assert topics(without, new=False) == topics(without, new=True) == (plain.prefix,)
    assert topics(carried, new=True) == (schema.prefix,)
    assert topics(carried, new=False) == ()
    for change in (
        {"kafka": {**without["kafka"], "ddl_topics": []}},
        {"source": {"format": "canal"}},
        {"source": {"schemas": {"bank.accounts": {"columns": {"id": "bigint"}, "key": ["id"]}}}},
    ):
        assert topics({**without, **change}, new=True) == ()
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    for topic in ("rows", "rows.bank.some"):  # a topic of the prefix's name that has rows of its own
        producer.produce(topic, value=json.dumps(event("some", "c", 5, {"id": 1})))
    assert producer.flush(30) == 0
    lone = {**without["kafka"], "topic_pattern": r"rows\.bank\..+"}
    assert topics({**without, "kafka": lone}, new=True) == ()


def configured(broker: Broker, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})  # it must live until the answers are there
    for answer in admin.incremental_alter_configs([change]).values():
        answer.result()


def test_check_warns_of_statements_that_kafka_deletes(kafka_broker: Broker, tmp_path: Path) -> None:
    plain = play(kafka_broker, "bank", "plain")
    settings = Settings.parse(json.dumps(minimal(kafka_broker, plain, tmp_path)))

    def warned(retention_ms: int) -> list[str]:
        configured(kafka_broker, plain.prefix, "retention.ms", str(retention_ms))
        return [one.detail for one in run_checks(settings) if "retention.ms" in one.detail]

    try:
        [told] = warned(604_800_000)
        assert told.startswith(f"topic {plain.prefix} keeps its records for 7 days")
    finally:
        assert warned(-1) == []


def test_check_warns_of_changes_that_kafka_compacts_away(kafka_broker: Broker, tmp_path: Path) -> None:
    plain = play(kafka_broker, "bank", "plain")
    settings = Settings.parse(json.dumps(minimal(kafka_broker, plain, tmp_path)))

    def warned(policy: str) -> list[str]:
        configured(kafka_broker, f"{plain.prefix}.bank.accounts", "cleanup.policy", policy)
        return [one.detail for one in run_checks(settings) if "cleanup.policy" in one.detail]

    try:
        [told] = warned("compact")
        assert f"of {plain.prefix}.bank.accounts alone" in told
    finally:
        assert warned("delete") == []
