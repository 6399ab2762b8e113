"""Recorded binlogs from Kafka to dumps and from dumps to tables, on a real broker, a real HDFS and Spark: the tables
are what the source's own SELECT says, and so what the stream would have made of the topics."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from binlake.load.replay.dump import DumpService, RollReport
from binlake.load.replay.engine import SparkEngine
from binlake.load.replay.replay_dumps import OpenWorkers, ReplayReport, ReplayWorkers, replay_dumps
from binlake.settings import Settings
from binlake.source.dump_layout import Window
from binlake.stream.spark.java import java_environment
from binlake.stream.spark.tasks import map_in_tasks
from embedded.jars import spark_packages
from hudilake.errors import ConfigError
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.played import Play, play
from tests.binlake.stream.soundness import errors_in
from tests.services.hdfs import HdfsCluster
from tests.services.kafka import Broker

_START_S = 120.0


def on_spark(spark: SparkSession) -> OpenWorkers:
    @contextlib.contextmanager
    def opened() -> Iterator[ReplayWorkers]:
        context = spark.sparkContext
        yield ReplayWorkers(partial(SparkEngine, context), partial(map_in_tasks, context, slots=2))

    return opened


def dump(settings: Settings) -> list[RollReport]:
    rolls: list[RollReport] = []
    DumpService(settings).run(once=True, on_roll=rolls.append)
    return rolls


def replay(settings: Settings, spark: SparkSession, window: Window) -> ReplayReport:
    return replay_dumps(settings, None, window, on_spark(spark))


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.hdfs
def test_by_hour_over_hdfs(
    spark: SparkSession, kafka_broker: Broker, hdfs_cluster: HdfsCluster, tmp_path: Path
) -> None:
    """The schemas come from the dumped DDL: the messages have none, and Kafka is not asked."""
    recording = play(kafka_broker, "bank", "plain")
    sections = {"dump": {"uri": f"{hdfs_cluster.uri}/dumps/bank", "options": {}, "base_files_from_rows": 50}}
    played = Play(spark, kafka_broker, recording, tmp_path / "lake", sections)
    rolls = dump(played.settings())
    assert sum(roll.records for roll in rolls) == sum(len(m) for m in recording.recorded.topics.values())
    assert dump(played.settings()) == []
    deaf = played.settings().model_copy(
        update={"kafka": played.settings().kafka.model_copy(update={"bootstrap_servers": "127.0.0.1:1"})}
    )
    report = replay(deaf, spark, Window())
    assert played.unequal() == {}
    hours = sorted({file.hour for file in report.found})
    again = replay(deaf, spark, Window(hours[0], hours[0] + 1))
    assert (again.covered, again.taken) == (len(again.found), [])
    for table in ("accounts", "transfers"):
        path = tmp_path / "lake" / "bank" / table
        assert errors_in(path) == []
        assert any(s.base_size > 5_000 for s in HudiTable.open(open_storage(str(path))).file_slices())


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.hdfs
def test_by_day_newest_first_beside_the_stream(
    spark: SparkSession, kafka_broker: Broker, hdfs_cluster: HdfsCluster, tmp_path: Path
) -> None:
    """Half of the files before the stream has written the tables and half after it; rows shuffled to writing tasks, and
    schemas from the schema change topic, which was not dumped."""
    recording = play(kafka_broker, "bank", "plain")
    path = "{database}.{table}/dt={date}/*.parquet"
    uri = f"{hdfs_cluster.uri}/dumps/by_day"
    sections = {
        "dump": {"uri": uri, "options": {}, "path": path, "roll_bytes": 400_000, "base_files_from_rows": 20},
        "batch": {"shuffle_above_bytes": 0},
    }
    played = Play(spark, kafka_broker, recording, tmp_path / "lake", sections)
    dump(played.settings())
    open_storage(uri).delete_tree("_ddl")
    with pytest.raises(ConfigError, match="begins after these hours"):
        replay_dumps(played.settings(), None, Window(0, 0), on_spark(spark))
    hidden = open_storage(uri)
    data = sorted(i.path for i in hidden.walk("") if i.path.startswith("bank."))
    late = data[: len(data) // 2]
    kept = {path: hidden.read(path) for path in late}
    for path in late:
        hidden.delete(path)
    first = replay(played.settings(), spark, Window())
    assert len(first.taken) == len(data) - len(late)
    played.run()
    for path, content in kept.items():
        hidden.write(path, content)
    second = replay(played.settings(), spark, Window())
    assert (len(second.taken), second.late) == (len(late), len(late))
    assert played.unequal() == {}
    assert replay(played.settings(), spark, Window()).taken == []


def start(conf: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "binlake.cli", "replay", str(conf), "--json", *arguments]
    with conf.with_suffix(".log").open("a") as log:
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=java_environment(), cwd=conf.parent
        )


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.kafka
def test_killed_and_run_again(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> None:
    """kill -9 within a portion, and again in a replay without Spark; then what is left is taken, and all of it once."""
    recording = play(kafka_broker, "bank", "plain")
    sections = {
        "dump": {"uri": str(tmp_path / "dumps"), "roll_bytes": 100_000, "commit_bytes": 300_000},
        "spark": {"driver_memory_mb": 512, "conf": {"spark.jars": ",".join(map(str, spark_packages()))}},
    }
    played = Play(spark, kafka_broker, recording, tmp_path / "lake", sections)
    conf = tmp_path / "bank.yaml"
    conf.write_text(json.dumps(played.document()))
    command = [sys.executable, "-m", "binlake.cli", "dump", str(conf), "--once"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert told.stdout.splitlines()[-1].startswith(f"{sum(map(len, recording.recorded.topics.values())):,} records in ")
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for arguments in ((), ("--in-process",)):
        process = start(conf, *arguments)
        assert process.stdout is not None
        deadline, wanted = time.monotonic() + _START_S, 1
        while wanted and process.poll() is None and time.monotonic() < deadline:
            wanted -= process.stdout.readline().startswith("{")
        time.sleep(chance.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        assert not wanted, conf.with_suffix(".log").read_text()[-3000:]
    out, _ = start(conf, "--in-process").communicate(timeout=180)
    verdict = json.loads(out.splitlines()[-1])
    assert verdict["covered"] + len(verdict["taken"]) == verdict["found"]
    assert verdict["covered"] > 0
    assert played.unequal() == {}
    assert replay(played.settings(), spark, Window()).taken == []
    for table in ("accounts", "transfers"):
        assert errors_in(tmp_path / "lake" / "bank" / table) == []
