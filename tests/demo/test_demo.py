from pathlib import Path

import pytest

from binlake.stream.monitoring.progress import ProgressEvent
from demo.scenario import Scenario


@pytest.mark.full
@pytest.mark.kafka
@pytest.mark.spark
def test_the_demo_ends_with_every_table_equal(tmp_path: Path) -> None:
    events: list[ProgressEvent] = []
    said: list[str] = []
    scenario = Scenario(tmp_path, play_s=12, per_second=100, seed=3, say=said.append, on_progress=events.append)
    verdicts = scenario.run()
    assert [v for v in verdicts if not v.equal] == []
    assert {v.table for v in verdicts} >= {"shop.orders", "bank.accounts", "live.accounts", "live.events"}
    assert len(events) > 3, "the stream ran while changes came"
    assert sum(t.quarantined for e in events for t in e.tables) == 0
    assert "starting Spark: local[2]" in said, "the stream's own lines are shown"
    assert [line for line in said if "WARN" in line] == []
    assert len(said) < 20, said
