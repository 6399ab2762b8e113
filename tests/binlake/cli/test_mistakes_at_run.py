"""Mistakes that only a stream meets: its own error is the last line of ``binlake run``, and no line of Java comes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
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
from tests.binlake.stream.test_kill import jvm_of
from tests.binlake.stream.topic_log import COLUMNS, event
from tests.services.kafka import Broker

#: The longest that a run may take to end, in seconds.
_END_S = 150.0

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

    def delete(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.servers})
        for answer in admin.delete_topics([self.topic]).values():
            answer.result()

    def send(self, first: int, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.servers})
        for key in range(first, first + count):
            row = {"id": key, "owner": "o", "balance": "AfQ=", "region": "eu"}
            producer.produce(self.topic, key=json.dumps({"id": key}), value=json.dumps(event("a", "c", key, row)))
        assert producer.flush(30) == 0

    def run(self, *options: str) -> tuple[int, str]:
        """Exit code and last line of ``binlake run --once``, after a look at all lines."""
        return self.end(self.begin("--once", "--no-display", *options))

    def begin(self, *options: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start ``binlake run``. ``before``: words before the command."""
        self.conf.write_text(yaml.safe_dump(self.settings))
        program = str(Path(sys.executable).with_name("binlake"))
        command = [*before, program, "run", str(self.conf), *options]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.conf.parent, env=java_environment(), stdout=pipe, stderr=pipe, text=True
        )

    def streaming(self) -> subprocess.Popen[str]:
        """Start a stream that goes on, and wait for its first batch."""
        running = self.begin("--json")
        assert running.stdout is not None
        assert running.stdout.readline().startswith("{")
        return running

    def end(self, running: subprocess.Popen[str]) -> tuple[int, str]:
        """Wait for the end of a run; exit code and last line, after a look at all lines."""
        lines = running.communicate(timeout=_END_S)[1].splitlines()
        assert [line for line in lines if re.search(r"Traceback|^\s+at |org\.apache|^\d\d/\d\d/\d\d ", line)] == []
        assert [line for line in lines[:-1] if line.startswith("error: ")] == []
        return running.returncode, lines[-1] if lines else ""


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
    stream.delete()
    stream.create()
    stream.send(0, 1)
    code, line = stream.run()
    assert code == 65
    assert re.fullmatch(r"error: .+\. Next: .+", line)


def test_a_topic_that_is_deleted_while_the_stream_runs(stream: Stream) -> None:
    stream.send(0, 1)
    running = stream.streaming()
    stream.delete()
    code, line = stream.end(running)
    assert code in (2, 65)
    assert re.fullmatch(rf"error: .*{stream.topic}.*\. Next: .+", line)


def test_a_topic_that_is_made_again_while_the_stream_runs(stream: Stream) -> None:
    stream.send(0, 3)
    running = stream.streaming()
    stream.delete()
    stream.create()
    stream.send(7, 1)
    code, line = stream.end(running)
    assert code == 65
    assert re.fullmatch(rf"error: .*{stream.topic}.*\. Next: .+", line)


def test_a_jvm_that_is_killed(stream: Stream) -> None:
    """Its code is one of the two that supervisors restart."""
    stream.send(0, 1)
    running = stream.streaming()
    os.kill(jvm_of(running), signal.SIGKILL)
    code, line = stream.end(running)
    assert code == 75
    assert re.fullmatch(r"error: Spark's JVM has ended .*\. Next: start again.*", line)
    assert stream.run()[0] == 0


def test_a_lake_on_a_full_disk(stream: Stream) -> None:
    """In a namespace with a file system of its own, which has room for the state and not for the rows."""
    lake = stream.conf.parent / "lake"
    lake.mkdir()
    stream.send(0, 20_000)
    mounted = f'mount -t tmpfs -o size=128k none {lake} && exec "$@"'
    namespace = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted, "sh"]
    code, line = stream.end(stream.begin("--once", "--no-display", before=namespace))
    assert code == 75
    assert re.fullmatch(r"error: .*No space left on device.*\. Next: free space.+", line)
    assert stream.run()[0] == 0


def test_a_port_in_use(stream: Stream) -> None:
    stream.send(0, 1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        stream.settings["monitoring"] = {"port": port}
        code, line = stream.run()
    assert code == 2
    # Spark, which starts meanwhile, may have logged by then: the line names that file.
    assert re.fullmatch(rf"error: .*port={port}(, log=[^,]+)?\]\. Next: .+", line)


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
