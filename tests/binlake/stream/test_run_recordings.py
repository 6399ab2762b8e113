"""Recorded Debezium topics through Kafka and Spark into Hudi tables that equal the source's final SELECT."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from binlake.position.ledger import Ledger
from hudilake.errors import BadInputError
from hudilake.storage import open_storage
from tests.binlake.stream.played import Play, play
from tests.selection import first
from tests.services.kafka import Broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.mark.full
@pytest.mark.parametrize(
    ("database", "variant", "sections"),
    first(
        3,
        [
            ("shop", "schema", {}),
            ("bank", "plain", {"kafka": {"fetch": "spark"}}),
            ("bank", "plain", {"batch": {"shuffle_above_bytes": 0, "max_events": 8_000}}),
            ("bank", "schema", {}),
            ("bank", "plain", {}),
            ("bank", "schema", {"kafka": {"fetch": "spark"}, "batch": {"shuffle_above_bytes": 0, "max_events": 8_000}}),
        ],
    ),
    ids=["shop-schema", "bank-source", "bank-shuffled", "bank-schema", "bank-plain", "bank-source-shuffled"],
)
def test_a_recording_equals_the_truth(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path, database: str, variant: str, sections: dict[str, Any]
) -> None:
    played = Play(spark, kafka_broker, play(kafka_broker, database, variant), tmp_path, sections)
    played.run()
    assert played.unequal() == {}
    assert not (tmp_path / "_quarantine").exists()
    read = sum(e.events_read for e in played.events)
    assert read == sum(len(m) for t, m in played.recording.recorded.topics.items() if t in played.recording.topics)
    for table in (t for e in played.events for t in e.tables):
        assert table.events_read == table.applied + table.superseded + table.filtered + table.already_applied
        assert table.error is None


@pytest.mark.full
def test_what_the_connector_lost_is_all_that_differs(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> None:
    """shop/plain: the converter turned NULLs of one column into its default (KNOWN.md); nothing else differs."""
    played = Play(spark, kafka_broker, play(kafka_broker, "shop", "plain"), tmp_path)
    played.run()
    wrong = [v for v in played.verdicts() if not v.equal]
    assert [v.table for v in wrong] == ["shop.scratch"]
    assert {name: d.count for name, d in wrong[0].differences.items()} == {"dv": 5}
    assert (wrong[0].missing_rows, wrong[0].extra_rows, wrong[0].mistakes) == (0, 0, [])


@pytest.mark.full
def test_the_flat_form(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> None:
    """The flat form drops TRUNCATE and before images: tables that need neither are equal, the others are told."""
    played = Play(spark, kafka_broker, play(kafka_broker, "shop", "flat"), tmp_path)
    played.run()
    wrong = {v.table for v in played.verdicts() if not v.equal}
    assert wrong == {"shop.scratch", "shop.audit_log"}


@pytest.mark.full
def test_partitions_by_column_and_by_day(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> None:
    overrides = [
        {"match": "shop.orders", "partition": {"column": "status"}, "buckets": 2},
        {"match": "shop.customers", "partition": {"column": "created", "transform": "month", "name": "month"}},
        {"match": "shop.audit_log", "partition": {"column": "at", "transform": "year"}},
    ]
    sections = {"tables": {"overrides": overrides}}
    played = Play(spark, kafka_broker, play(kafka_broker, "shop", "schema"), tmp_path, sections)
    played.run()
    assert played.unequal() == {}
    assert {p.name for p in (tmp_path / "shop" / "orders").iterdir() if p.is_dir()} >= {"status=new", "status=paid"}
    assert any((tmp_path / "shop" / "customers").glob("month=20??-??"))


@pytest.fixture(scope="module")
def applied(spark: SparkSession, kafka_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Play:
    """A lake that has applied all of bank/plain; tests copy it."""
    place = tmp_path_factory.mktemp("applied")
    played = Play(spark, kafka_broker, play(kafka_broker, "bank", "plain"), place)
    played.run()
    return played


def copy_of(applied: Play, place: Path, **sections: Any) -> Play:  # noqa: ANN401 - any YAML value
    shutil.copytree(applied.lake, place / "lake")
    return Play(applied.spark, applied.broker, applied.recording, place / "lake", sections)


@pytest.mark.full
def test_nothing_new_commits_nothing(applied: Play, tmp_path: Path) -> None:
    again = copy_of(applied, tmp_path)
    again.run()
    assert len(again.commits()) == len(applied.commits())
    assert sum(e.events_read for e in again.events) == 0


@pytest.mark.first(1)
@pytest.mark.parametrize("lost", ["checkpoint", "ledger.json", ""], ids=["checkpoint", "ledger", "both"])
def test_a_lost_checkpoint_or_ledger_changes_nothing(applied: Play, tmp_path: Path, lost: str) -> None:
    again = copy_of(applied, tmp_path)
    state = again.lake / ".binlake" / "bank_plain"
    victim = state / lost if lost else state
    assert victim.exists()
    shutil.rmtree(victim) if victim.is_dir() else victim.unlink()
    if lost == "ledger.json":  # the checkpoint now goes on beyond what the recovered ledger says
        shutil.rmtree(state / "checkpoint")
    again.run()
    assert len(again.commits()) == len(applied.commits())
    assert again.unequal() == {}
    assert sum(t.applied for e in again.events for t in e.tables) == 0


def test_a_checkpoint_ahead_of_the_tables_stops_with_both_positions(applied: Play, tmp_path: Path) -> None:
    """A ledger and lake restored from before, under a newer checkpoint: going on would lose what lies between."""
    again = copy_of(applied, tmp_path)
    ledger = again.lake / ".binlake" / "bank_plain" / "ledger.json"
    text = ledger.read_text()
    topic = f"{applied.recording.prefix}.bank.cdc_marker"
    noted = Ledger.load(open_storage(str(ledger.parent)), "bank_plain")
    assert noted is not None
    position = noted.positions[topic][0]
    ledger.write_text(text.replace(f'"{topic}":{{"0":{position}', f'"{topic}":{{"0":{position - 1}'))
    assert ledger.read_text() != text
    with pytest.raises(BadInputError) as caught:
        again.run()
    assert str(position) in str(caught.value)
    assert str(position - 1) in str(caught.value)
    shutil.rmtree(ledger.parent / "checkpoint")
    again.run()
    assert again.unequal() == {}


def test_a_new_query_id_changes_nothing(applied: Play, tmp_path: Path) -> None:
    again = copy_of(applied, tmp_path)
    metadata = again.lake / ".binlake" / "bank_plain" / "checkpoint" / "metadata"
    metadata.write_text('{"id":"00000000-0000-0000-0000-00000000beef"}')
    (metadata.parent / ".metadata.crc").unlink(missing_ok=True)
    again.run()
    assert len(again.commits()) == len(applied.commits())
    assert again.unequal() == {}
