"""``monitoring.console`` inside a stream on Spark: its pages answer while batches run, and when the stream is killed, a
console beside it says so."""

from __future__ import annotations

import json
import signal
import urllib.error
import urllib.request

import pytest
import yaml

from binlake.cli.console.watch import LOOK_S, StreamWatch
from binlake.settings import Settings
from embedded.process import free_ports
from tests.binlake.cli.test_run import Pipeline, pipeline
from tests.binlake.cli.test_watching import get, until

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.full]
__all__ = ["pipeline"]
PAGES = ["", "stream", "query", "quarantine", "actions", "metrics"]
#: What issues promise of a stream that is killed, in seconds.
SHOWN_S = 5.0


def test_a_stream_serves_its_pages_and_is_shown_as_down_when_it_is_killed(pipeline: Pipeline) -> None:
    [port] = free_ports(1)
    document = yaml.safe_load(pipeline.conf.read_text())
    pipeline.conf.write_text(
        yaml.safe_dump({**document, "monitoring": {"console": True, "host": "127.0.0.1", "console_port": port}})
    )
    beside = StreamWatch(Settings.load(pipeline.conf), str(pipeline.conf), ask_kafka=False)
    pipeline.produce(10)  # the snapshot has rows of one table alone
    process = pipeline.start("--json")
    try:
        names = {f"live.{table.name}" for table in pipeline.source.tables}

        def all_seen() -> bool:
            [stream] = json.loads(get(port, "/state.json") or "[{}]")
            return stream.get("state") == "running" and set(stream["tables"]) == names

        until(all_seen)
        pipeline.produce(100)  # batches run while the pages are asked
        for page in [*PAGES, *(f"table?table={name}" for name in sorted(names))]:
            assert get(port, f"/{page}"), page
        assert beside.look().state == "running"
        process.send_signal(signal.SIGKILL)
        process.wait()
        looks = next(n for n in range(1, 100) if beside.look().state == "died")
        assert looks * LOOK_S <= SHOWN_S
        until(lambda: not get(port, "/state.json"))  # the console is a process of its own, which ends with the stream
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)
    finally:
        process.kill()
        process.communicate(timeout=60)
    assert all(batch.lag == 0 for batch in pipeline.run_once()[-1:])  # none if all was applied before the end
    assert pipeline.differing() == []
    assert beside.look().state == "stopped"
