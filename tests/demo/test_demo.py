import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from binlake.stream.monitoring.progress import ProgressEvent
from demo.scenario import CONF, Scenario


@pytest.mark.full
@pytest.mark.kafka
@pytest.mark.spark
def test_the_demo_ends_with_every_table_equal(tmp_path: Path) -> None:
    events: list[ProgressEvent] = []
    said: list[str] = []
    shown: list[Path] = []
    scenario = Scenario(tmp_path, 12, 100, 3, say=said.append, show=lambda conf, _: shown.append(conf))
    with scenario.up() as running:
        running.play(events.append)
        verdicts = running.verdicts()
        stop, applied = threading.Event(), running.stream.positions
        with ThreadPoolExecutor(1) as pool:
            going_on = pool.submit(running.go_on, stop)
            while running.stream.positions == applied:
                assert not going_on.done()
                stop.wait(0.1)
            stop.set()
            going_on.result()
    assert shown == [CONF]
    assert [v for v in verdicts if not v.equal] == []
    assert {v.table for v in verdicts} >= {"shop.orders", "bank.accounts", "live.accounts", "live.events"}
    assert len(events) > 3, "the stream ran while changes came"
    assert sum(t.quarantined for e in events for t in e.tables) == 0
    assert "starting Spark: local[2]" in said, "the stream's own lines are shown"
    assert [line for line in said if "WARN" in line] == []
    assert len(said) < 20, said
