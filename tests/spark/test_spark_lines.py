"""What must hold on every supported line of Spark: both ways of fetching, both ways of writing."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.services.kafka import Broker
from tests.stream.played import Play, play

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.spark4]


@pytest.mark.parametrize("fetch", ["direct", "spark"])
@pytest.mark.parametrize("shuffle_above", [0, 1 << 30], ids=["shuffled", "collected"])
def test_a_recording_equals_the_truth(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path, fetch: str, shuffle_above: int
) -> None:
    sections = {"kafka": {"fetch": fetch}, "batch": {"shuffle_above_bytes": shuffle_above}}
    played = Play(spark, kafka_broker, play(kafka_broker, "shop", "schema"), tmp_path, sections)
    played.run()
    assert played.unequal() == {}
