"""What must hold on every supported line of Spark: both ways of fetching, both ways of writing."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.binlake.stream.played import Play, play
from tests.hypothesis_profile import usually
from tests.services.kafka import Broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.spark4, pytest.mark.full]


#: When the rows of a batch are shuffled, and who fetches: each by day, all together by night.
ABOVE_BYTES = {"shuffled": 0, "collected": 1 << 30}
ALL_WAYS = list(itertools.product(ABOVE_BYTES, ["direct", "spark"]))
WAYS = usually([("shuffled", "spark"), ("collected", "direct")], ALL_WAYS)


@pytest.mark.parametrize(("rows", "fetch"), WAYS)
def test_a_recording_equals_the_truth(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path, rows: str, fetch: str
) -> None:
    sections = {"kafka": {"fetch": fetch}, "batch": {"shuffle_above_bytes": ABOVE_BYTES[rows]}}
    played = Play(spark, kafka_broker, play(kafka_broker, "shop", "schema"), tmp_path, sections)
    played.run()
    assert played.unequal() == {}
