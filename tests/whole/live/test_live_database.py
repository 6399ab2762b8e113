"""A live MariaDB through Debezium and Kafka into Hudi: transfers, DDL, Connect killed once; every cell is equal."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.spark.java import java_environment
from binlake.tables.audit import audit
from demo.readback import read_table
from demo.stream_process import StreamProcess
from demo.verdict import TableVerdict, judge
from embedded.connect import EmbeddedConnect, database_connector, history_in_kafka
from embedded.jars import spark_packages
from embedded.mariadb import EmbeddedMariaDB
from hudilake.services.fsck import fsck
from hudilake.storage import open_storage
from tests.services.kafka import Broker
from tests.whole.live.workload import PASSWORD, TOTAL, USER, Workload, prepare, truth

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.database]

PREFIX = "live_bank"
TABLES = ("accounts", "transfers")
ADD = "ALTER TABLE bank.accounts ADD COLUMN remark VARCHAR(30), ADD COLUMN tier VARCHAR(8) NOT NULL DEFAULT 'basic'"
WIDEN = "ALTER TABLE bank.accounts MODIFY owner VARCHAR(90) NOT NULL, MODIFY moves BIGINT NOT NULL DEFAULT 0"


def connector(database: EmbeddedMariaDB, broker: str) -> dict[str, str]:
    made = database_connector(database, USER, PASSWORD, prefix=PREFIX, server_id=9200, include="bank", partitions=3)
    return made | history_in_kafka(PREFIX, broker)


def settings(place: Path, broker: str) -> Path:
    document = {
        "name": "live",
        "lake": {"uri": str(place / "lake")},
        "kafka": {
            "bootstrap_servers": broker,
            "topics": [f"{PREFIX}.bank.{table}" for table in TABLES],
            "ddl_topics": [PREFIX],
        },
        "tables": {"defaults": {"buckets": 2, "compaction": {"after_commits": 8}}},
        "batch": {"trigger_interval_ms": 250},
        "spark": {"driver_memory_mb": 768, "conf": {"spark.jars": ",".join(map(str, spark_packages()))}},
    }
    conf = place / "conf.yaml"
    conf.write_text(json.dumps(document))
    return conf


def verdict(database: EmbeddedMariaDB, place: Path, table: str) -> TableVerdict:
    return judge(truth(database, table), read_table(place / "lake" / "bank" / table))


def wait_until_equal(
    database: EmbeddedMariaDB, place: Path, stream: StreamProcess, timeout_s: float
) -> list[TableVerdict]:
    """The verdicts once all are equal; those there are when the time is over."""
    deadline = time.monotonic() + timeout_s
    while True:
        stream.check()
        verdicts = [verdict(database, place, table) for table in TABLES]
        if all(v.equal for v in verdicts) or time.monotonic() > deadline:
            return verdicts
        time.sleep(0.5)


def balances(place: Path) -> pa.Scalar:
    return pc.sum(read_table(place / "lake" / "bank" / "accounts").column("balance"))


def wait_for_offsets(connect: EmbeddedConnect, since: float, timeout_s: float) -> None:
    """Until Connect has written its offsets down: killed before, it would take its snapshot again."""
    deadline = time.monotonic() + timeout_s
    while not (connect.offsets_file.exists() and connect.offsets_file.stat().st_mtime > since):
        assert time.monotonic() < deadline, "Connect never wrote its offsets down"
        time.sleep(0.1)


def test_a_live_database_ends_equal_in_the_lake(
    kafka_broker: Broker, database: EmbeddedMariaDB, tmp_path: Path
) -> None:
    servers = kafka_broker.bootstrap_servers
    prepare(database)
    events: list[ProgressEvent] = []
    with EmbeddedConnect(tmp_path / "connect", servers, {"bank": connector(database, servers)}) as connect:
        workload = Workload(database)
        workload.start()
        wait_for_offsets(connect, 0.0, 240)
        environment = {**os.environ, **java_environment()}
        log = tmp_path / "stream.log"
        stream = StreamProcess(settings(tmp_path, servers), environment, log, on_progress=events.append)
        try:
            stream.wait_for_first_batch(120)
            database.execute(ADD)
            workload.extra = "remark"
            time.sleep(1.5)
            database.execute(WIDEN)
            workload.long_names = True
            wait_for_offsets(connect, connect.offsets_file.stat().st_mtime, 240)
            connect.kill()
            before = workload.done
            connect.start()
            while workload.done < before + 300:
                assert workload.error is None, workload.error
                time.sleep(0.1)
            workload.finish()
            verdicts = wait_until_equal(database, tmp_path, stream, 90)
            connect.check()
            assert [repr(v) for v in verdicts if not v.equal] == []
        finally:
            code = stream.stop()
    assert code == 0, (tmp_path / "stream.log").read_text()[-2_000:]
    assert balances(tmp_path).as_py() == TOTAL
    assert all(v.lake_rows == v.truth_rows > 0 for v in verdicts)
    assert len([e for e in events if e.events_read]) > 3, "all came in a batch or two: nothing was live"
    assert not (tmp_path / "lake" / "_quarantine").exists()
    for table in TABLES:
        storage = open_storage(str(tmp_path / "lake" / "bank" / table))
        assert audit(storage).errors == []
        assert [f for f in fsck(storage, grace_ms=0).findings if f.severity == "error"] == []
    database.execute("UPDATE bank.accounts SET balance = balance + 0.01 LIMIT 1")  # the control: a cell tells
    assert not verdict(database, tmp_path, "accounts").equal
