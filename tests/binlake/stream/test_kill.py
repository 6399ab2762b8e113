"""A running stream killed with -9 again and again over a whole recording, compactions beside it: nothing lost, nothing
twice, and nothing left that a check of the tables would find."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from binlake.stream.spark.java import java_environment
from embedded.jars import spark_packages
from tests.binlake.stream.played import Play, play
from tests.binlake.stream.soundness import check_offsets, check_table
from tests.hypothesis_profile import scaled
from tests.services.kafka import Broker

KILLS = scaled(3, least=1)
_START_S = 90.0


def start(conf: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "binlake.cli", "run", str(conf), "--json", *arguments]
    with conf.with_suffix(".log").open("a") as log:
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=java_environment(), cwd=conf.parent
        )


def kill_in_mid_stream(conf: Path, chance: random.Random) -> None:
    """Let it finish a few batches, then kill it somewhere inside a later one."""
    process = start(conf)
    assert process.stdout is not None
    deadline = time.monotonic() + _START_S
    wanted = chance.randrange(1, 6)
    while wanted and process.poll() is None and time.monotonic() < deadline:
        wanted -= process.stdout.readline().startswith("{")
    time.sleep(chance.uniform(0, 0.3))
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    assert not wanted, conf.with_suffix(".log").read_text()[-3000:]


@pytest.mark.spark
@pytest.mark.kafka
def test_killed_again_and_again(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> None:
    sections = {
        "batch": {"max_events": 900, "trigger_interval_ms": 0},
        "tables": {"defaults": {"compaction": {"after_commits": 3}}},
        "spark": {"driver_memory_mb": 512, "conf": {"spark.jars": ",".join(map(str, spark_packages()))}},
    }
    played = Play(spark, kafka_broker, play(kafka_broker, "bank", "plain"), tmp_path / "lake", sections)
    conf = tmp_path / "bank.yaml"
    conf.write_text(json.dumps(played.document()))
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    for _ in range(KILLS):
        kill_in_mid_stream(conf, random.Random(seed))
        seed += 1
    last = start(conf, "--once")
    last.communicate(timeout=180)
    assert last.returncode == 0
    assert played.unequal() == {}
    for table in ("accounts", "transfers"):
        check_offsets(tmp_path / "lake" / "bank" / table)
        check_table(tmp_path / "lake" / "bank" / table)


def jvm_of(process: subprocess.Popen[str]) -> int:
    """The id of the JVM that a process has started."""
    threads = Path(f"/proc/{process.pid}/task").iterdir()
    children = {pid for thread in threads for pid in (thread / "children").read_text().split()}
    (child,) = (int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == "java")
    return child


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.kafka
def test_a_killed_jvm_ends_the_stream_with_one_line(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> None:
    sections = {"spark": {"driver_memory_mb": 512, "conf": {"spark.jars": ",".join(map(str, spark_packages()))}}}
    played = Play(spark, kafka_broker, play(kafka_broker, "bank", "plain"), tmp_path / "lake", sections)
    conf = tmp_path / "bank.yaml"
    conf.write_text(json.dumps(played.document()))
    process = start(conf)
    assert process.stdout is not None
    while not process.stdout.readline().startswith("{"):
        assert process.poll() is None
    os.kill(jvm_of(process), signal.SIGKILL)
    process.communicate(timeout=120)
    said = conf.with_suffix(".log").read_text()
    assert process.returncode == 75, said
    assert "Traceback" not in said, said
    assert said.count("Spark's JVM has ended") == 1, said
