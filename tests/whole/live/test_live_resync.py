"""A table is fetched anew by a signal to a real Debezium: rows that differ behind the connector's back become equal.

The batches run in this process, without Spark.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.decode.changes import SourceTable
from binlake.position.held_tables import ResyncStep
from binlake.position.ledger import Ledger
from binlake.rows.tasks.decode_and_route import fetch_and_decode
from binlake.rows.tasks.plan import BatchPlan, Item
from binlake.rows.tasks.write_parcels import write_parcels
from binlake.settings import Settings
from binlake.source.log_tail import partitions_of
from binlake.source.offsets import OffsetRange, Offsets
from binlake.source.positions import end_offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.tables.resync import SignalledConnector
from binlake.tables.audit import audit
from binlake.tables.lake import Lake
from demo.produce import create_topics
from demo.readback import read_table
from demo.verdict import TableVerdict, judge
from embedded.connect import EmbeddedConnect
from embedded.mariadb import EmbeddedMariaDB
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import services
from tests.services.kafka import Broker
from tests.whole.live.test_live_database import connector
from tests.whole.live.workload import Workload, prepare, truth

pytestmark = [pytest.mark.kafka, pytest.mark.database, pytest.mark.full]

PREFIX = "resync_bank"
ACCOUNTS = SourceTable("bank", "accounts")
TABLES = ("accounts", "transfers")
#: Accounts that the workload does not know.
QUIET = "INSERT INTO bank.accounts (id, owner, balance) VALUES " + ", ".join(
    f"({n}, 'quiet {n}', 1)" for n in range(1001, 1041)
)
#: Changes that the binlog does not have: rows that are extra in the lake, missing or wrong, and a row that was moved.
SILENTLY = """
SET sql_log_bin = 0;
DELETE FROM bank.accounts WHERE id IN (1003, 1004);
INSERT INTO bank.accounts (id, owner, balance) VALUES (900, 'behind', 0), (2000, 'its back', 0);
UPDATE bank.accounts SET owner = 'changed', rate = 0.1, photo = x'00' WHERE id IN (1005, 1006, 1007);
UPDATE bank.accounts SET id = 950 WHERE id = 1008;
SET sql_log_bin = 1;
"""


class HereEngine:
    """Runs the one task of a plan in this process, over a real Kafka."""

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        items = fetch_and_decode(plan, ranges)
        return list(write_parcels(plan, items) if shuffle else items)


def signalled(database: EmbeddedMariaDB, servers: str, how: dict[str, str]) -> dict[str, str]:
    """The connector's settings, with signals and notifications by Kafka."""
    return connector(database, servers) | {
        "topic.prefix": PREFIX,
        "schema.history.internal.kafka.topic": f"{PREFIX}_history",
        "signal.enabled.channels": "kafka",
        "signal.kafka.topic": f"{PREFIX}_signals",
        "signal.kafka.bootstrap.servers": servers,
        "signal.poll.interval.ms": "200",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": f"{PREFIX}_notify",
        "incremental.snapshot.chunk.size": "16",
        **how,
    }


def conf(place: Path, servers: str) -> Path:
    document = {
        "name": "resync",
        "lake": {"uri": str(place / "lake"), "options": {"fsync": "false"}},
        "kafka": {
            "bootstrap_servers": servers,
            "topics": [f"{PREFIX}.bank.{table}" for table in TABLES],
            "ddl_topics": [PREFIX],
        },
        "source": {"debezium": {"signal_topic": f"{PREFIX}_signals", "notification_topic": f"{PREFIX}_notify"}},
        "tables": {"defaults": {"buckets": 2}},
    }
    file = place / "conf.yaml"
    file.write_text(json.dumps(document))
    return file


class Here:
    """The stream over the live topics, batch by batch."""

    def __init__(self, settings: Settings) -> None:
        self._config = settings.kafka.client_properties()
        self._topics = settings.kafka.topics
        root = open_storage(settings.lake.uri, settings.lake.storage_options())
        self.ledger = Ledger(settings.name)
        self.runner = BatchRunner(
            settings, Lake(root), open_storage(settings.state_uri, settings.state_options()), self.ledger,
            SchemaRegistry(settings), services(), None, SignalledConnector.of(settings),
        )  # fmt: skip

    def step(self) -> None:
        """One batch, and what is done between two."""
        places = Offsets.of_places((t, p, 0) for t in self._topics for p in partitions_of(self._config, t))
        end = end_offsets(self._config, places, 10.0)
        told = self.runner.run(self.ledger.batch, end, 0, HereEngine())
        assert [t.error for t in told.tables if t.error] == []
        self.runner.tend()


def verdict(database: EmbeddedMariaDB, place: Path, table: str) -> TableVerdict:
    return judge(truth(database, table), read_table(place / "lake" / "bank" / table))


def ids(place: Path) -> set[int]:
    """The keys of the lake's accounts."""
    return set(read_table(place / "lake" / "bank" / "accounts").column("id").to_pylist())


def test_a_table_is_fetched_anew_while_it_changes(
    kafka_broker: Broker, database: EmbeddedMariaDB, tmp_path: Path
) -> None:
    servers = kafka_broker.bootstrap_servers
    prepare(database)
    topics = {f"{PREFIX}.bank.{table}": 3 for table in TABLES}
    create_topics(servers, {**topics, PREFIX: 1, f"{PREFIX}_signals": 1, f"{PREFIX}_notify": 1})
    file = conf(tmp_path, servers)
    properties = signalled(database, servers, {"read.only": "true"})
    workload = Workload(database)
    with EmbeddedConnect(tmp_path / "connect", servers, {"bank": properties}) as connect:
        database.execute(QUIET)
        workload.start()
        stream = Here(Settings.load(file))
        deadline = time.monotonic() + 240
        while ACCOUNTS not in stream.ledger.tables or workload.done < 60 or 1040 not in ids(tmp_path):
            assert time.monotonic() < deadline
            stream.step()
        database.execute(SILENTLY)
        before = workload.done
        while workload.done < before + 16:
            stream.step()
        assert {1003, 1008} <= ids(tmp_path)
        assert not {900, 950, 2000} & ids(tmp_path)
        done = CliRunner().invoke(app, ["table", "resync", str(file), "bank.accounts"])
        assert done.exit_code == 0, done.output
        while stream.ledger.resyncs.get(ACCOUNTS) is None or stream.ledger.resyncs[ACCOUNTS].active:
            assert time.monotonic() < deadline, (stream.ledger.resyncs, connect.log_file.read_text()[-3000:])
            stream.step()
        assert stream.ledger.resyncs[ACCOUNTS].step is ResyncStep.DONE
        workload.finish()
        verdicts = [verdict(database, tmp_path, table) for table in TABLES]
        while not all(v.equal for v in verdicts) and time.monotonic() < deadline:
            stream.step()
            verdicts = [verdict(database, tmp_path, table) for table in TABLES]
        connect.check()
    assert [repr(v) for v in verdicts if not v.equal] == []
    assert audit(open_storage(str(tmp_path / "lake" / "bank" / "accounts"))).errors == []
    assert CliRunner().invoke(app, ["table", "pause", str(file), "bank.accounts"]).exit_code == 0
    stream.step()
    keep(servers, f"{PREFIX}.bank.accounts", 7 * 24 * 3_600_000)
    (held,) = held_tables_of(file)
    assert (held["state"], held["waiting"], held["deleted"], held["kept_ms"]) == ("paused", 0, 0, 7 * 24 * 3_600_000)


def keep(servers: str, topic: str, retention_ms: int) -> None:
    """Set the retention of a topic; the test broker's is unlimited."""
    entry = ConfigEntry("retention.ms", str(retention_ms), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": servers})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result()


def held_tables_of(file: Path) -> list[dict[str, Any]]:
    """What ``status`` says of the tables that are held back."""
    told = CliRunner().invoke(app, ["status", str(file), "--json"])
    found: list[dict[str, Any]] = json.loads(told.stdout.splitlines()[0])["held"]
    return found
