"""A comparison beside a busy stream: no false alarm, and a difference that somebody plants is found and repaired."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.verify_live import live_run
from tests.hypothesis_profile import scaled
from tests.services.kafka import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.database]


@pytest.mark.full
def test_nothing_but_the_planted_difference_is_found(kafka_broker: Broker, tmp_path: Path) -> None:
    rows, seconds = scaled(5_000), scaled(100, divisor=10)
    report = live_run(seconds, 300, rows, kafka_broker.bootstrap_servers, tmp_path)
    assert report.false_alarms == []
    assert report.unsettled == 0
    assert (report.control_found, report.control_repaired, report.equal_at_end) == (True, True, True)
    assert report.changes > 1_000
    assert report.changed_since + report.changing > 0
