"""Mistakes that only a stream meets: its own error is the last line of ``binlake run``, and no line of Java comes."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from binlake.position.lease import StreamLease
from binlake.stream.spark.java import java_environment
from demo.produce import create_topics
from embedded.jars import spark_packages
from hudilake.clock import new_uuid
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import COLUMNS, event
from tests.services.kafka import Broker

pytestmark = [pytest.mark.full, pytest.mark.kafka, pytest.mark.spark]


class Stream:
    """A stream of one table, each run of which is a process."""

    def __init__(self, broker: Broker, path: Path) -> None:
        self.servers, self.conf = broker.bootstrap_servers, path / "shop.yaml"
        self.topic = f"m{new_uuid()[:8]}.shop.a"
        self.settings = {
            "name": "shop",
            "lake": {"uri": str(path / "lake")},
            "kafka": {"bootstrap_servers": self.servers, "topics": [self.topic]},
            "source": {"schemas": {"shop.a": {"columns": COLUMNS, "key": ["id"]}}},
            "spark": {"driver_memory_mb": 512, "conf": {"spark.jars": ",".join(map(str, spark_packages()))}},
        }
        self.create()

    def create(self) -> None:
        create_topics(self.servers, {self.topic: 1})

    def send(self, first: int, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.servers})
        for key in range(first, first + count):
            row = {"id": key, "owner": "o", "balance": "AfQ=", "region": "eu"}
            producer.produce(self.topic, key=json.dumps({"id": key}), value=json.dumps(event("a", "c", key, row)))
        assert producer.flush(30) == 0

    def run(self, *options: str) -> tuple[int, str]:
        """Exit code and last line of ``binlake run --once``, after a look at all lines."""
        self.conf.write_text(yaml.safe_dump(self.settings))
        program = str(Path(sys.executable).with_name("binlake"))
        command = [program, "run", str(self.conf), "--once", "--no-display", *options]
        done = subprocess.run(
            command, cwd=self.conf.parent, env=java_environment(), capture_output=True, text=True, check=False
        )
        lines = done.stderr.splitlines()
        assert [line for line in lines if re.search(r"Traceback|^\s+at |org\.apache|^\d\d/\d\d/\d\d ", line)] == []
        assert [line for line in lines[:-1] if line.startswith("error: ")] == []
        return done.returncode, lines[-1] if lines else ""


@pytest.fixture
def stream(kafka_broker: Broker, tmp_path: Path) -> Stream:
    return Stream(kafka_broker, tmp_path)


def test_offsets_that_are_gone_and_a_topic_that_was_made_again(stream: Stream) -> None:
    stream.send(0, 2)
    assert stream.run()[0] == 0
    stream.send(2, 3)
    admin = AdminClient({"bootstrap.servers": stream.servers})
    for answer in admin.delete_records([TopicPartition(stream.topic, 0, 4)]).values():
        answer.result()
    code, line = stream.run()
    assert code == 65
    assert re.fullmatch(
        r"error: 2 .*deleted from Kafka before the stream had read them.*\. Next: .*--skip-missing.*", line
    )
    assert stream.run("--skip-missing")[0] == 0
    for answer in admin.delete_topics([stream.topic]).values():
        answer.result()
    stream.create()
    stream.send(0, 1)
    code, line = stream.run()
    assert code == 65
    assert re.fullmatch(r"error: .+\. Next: .+", line)


def test_a_port_in_use(stream: Stream) -> None:
    stream.send(0, 1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        stream.settings["monitoring"] = {"port": port}
        code, line = stream.run()
    assert code == 2
    assert re.fullmatch(rf"error: .*port={port}\]\. Next: .+", line)


def test_folders_named_like_packages_are_not_in_the_way(stream: Stream) -> None:
    """Where the stream is started, for its process and for Spark's workers."""
    for name in ("pipeline", "binlake", "hudilake", "lakemetastore"):
        (stream.conf.parent / name).mkdir()
        (stream.conf.parent / name / "__init__.py").write_text("raise SystemExit('the wrong package')")
    stream.send(0, 1)
    assert stream.run()[0] == 0


def test_two_runs_of_the_same_settings(stream: Stream) -> None:
    stream.send(0, 1)
    state = open_storage(f"{stream.conf.parent}/lake/.binlake/shop")
    with StreamLease(state, "shop"):
        code, line = stream.run()
    assert code == 70
    assert re.fullmatch(r"error: .*stream=shop.*\. Next: .+", line)
    assert stream.run()[0] == 0
