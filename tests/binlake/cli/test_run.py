"""``binlake run`` as a process: what it prints, how it stops, and that going on afterwards changes nothing."""

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.spark.java import java_environment
from binlake.stream.spark.session import prepare_spark
from demo.live import PARTITIONS, LiveSource
from demo.produce import Sender, create_topics
from demo.readback import read_table
from demo.verdict import judge
from embedded.jars import spark_packages
from hudilake.clock import new_uuid, now_ms
from tests.services.kafka import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@dataclass
class Pipeline:
    conf: Path
    lake: Path
    source: LiveSource
    sender: Sender

    def produce(self, transactions: int) -> None:
        for _ in range(transactions):
            self.sender.send(self.source.transaction())
        self.sender.flush()

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "binlake.cli", "run", str(self.conf), *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=java_environment())

    def run_once(self) -> list[ProgressEvent]:
        process = self.start("--once", "--json")
        out, err = process.communicate(timeout=180)
        assert process.returncode == 0, err[-3000:]
        return [ProgressEvent.from_json(json.loads(line)) for line in out.splitlines() if line.startswith("{")]

    def differing(self) -> list[str]:
        verdicts = [judge(t, read_table(self.lake / "live" / t.table)) for t in self.source.truth()]
        return [v.table for v in verdicts if not v.equal]


@pytest.fixture
def pipeline(kafka_broker: Broker, tmp_path: Path) -> Pipeline:
    source = LiveSource(11, lambda: now_ms() * 1000)
    prefix = f"run-{new_uuid()[:8]}"
    for table in source.tables:
        table.prefix = prefix
    create_topics(kafka_broker.bootstrap_servers, {t.topic: PARTITIONS for t in source.tables})
    settings = {
        "name": "cli",
        "lake": {"uri": (tmp_path / "lake").as_uri()},
        "kafka": {"bootstrap_servers": kafka_broker.bootstrap_servers, "topics": [t.topic for t in source.tables]},
        "source": {"schemas": {f"live.{t.name}": t.schema() for t in source.tables}},
        "tables": {"defaults": {"buckets": 2}},
        "batch": {"trigger_interval_ms": 200},
        "spark": {"driver_memory_mb": 512, "conf": {"spark.jars": ",".join(map(str, spark_packages()))}},
    }
    conf = tmp_path / "cli.yaml"
    conf.write_text(yaml.safe_dump(settings))
    sender = Sender(kafka_broker.bootstrap_servers)
    sender.send(source.snapshot(50))
    return Pipeline(conf, tmp_path / "lake", source, sender)


@pytest.mark.full
def test_the_console_has_the_steps_of_the_start_and_warnings_that_matter(pipeline: Pipeline) -> None:
    """The second run finds nothing to do."""
    pipeline.produce(10)
    prepare_spark()
    settings = yaml.safe_load(pipeline.conf.read_text())
    del settings["spark"]["conf"]  # the connector comes from the cache
    pipeline.conf.write_text(yaml.safe_dump(settings))
    out, err = pipeline.start("--once").communicate(timeout=180)
    servers = settings["kafka"]["bootstrap_servers"]
    steps = [line for line in err.splitlines() if not line.startswith("batch 0 has taken ")]  # on a busy machine
    assert steps == [
        "starting Spark: local[2]",
        f"asking Kafka at {servers} for the topics",
        "waiting for records of 2 topics",
        "first batch planned; its tasks start",
    ]
    assert out.startswith("batch 0: ")
    settings["spark"]["conf"] = {"spark.blacklist.enabled": "false"}  # a name that Spark has given up
    pipeline.conf.write_text(yaml.safe_dump(settings))
    out, err = pipeline.start("--once", "--json").communicate(timeout=180)
    assert [line for line in err.splitlines() if "WARN" in line and "spark.blacklist.enabled" in line] != []
    assert "there is nothing to apply: the stream has taken every record that is there" in err.splitlines()
    assert not any(json.loads(line)["events_read"] for line in out.splitlines() if line.startswith("{"))


@pytest.mark.full
def test_sigterm_finishes_the_batch_and_once_takes_what_is_left(pipeline: Pipeline) -> None:
    pipeline.produce(100)
    process = pipeline.start("--json")
    assert process.stdout is not None
    first = next(line for line in process.stdout if line.startswith("{"))
    pipeline.produce(300)
    process.send_signal(signal.SIGTERM)
    rest, err = process.communicate(timeout=180)
    assert process.returncode == 0, err[-3000:]
    told = [first, *rest.splitlines()]
    events = [ProgressEvent.from_json(json.loads(line)) for line in told if line.startswith("{")] + pipeline.run_once()
    assert sum(e.events_read for e in events) == pipeline.sender.sent
    for table in (t for e in events for t in e.tables):
        parts = table.applied + table.superseded + table.filtered + table.quarantined
        assert table.already_applied == 0
        assert table.events_read == parts
        assert table.error is None
        assert table.commit_instant is not None
        assert table.freshness_newest_ms is not None
    assert events[-1].lag == 0
    assert pipeline.differing() == []
