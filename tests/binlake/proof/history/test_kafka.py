"""Both commands against a real broker: what it still has, and what it has deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from typer.testing import CliRunner

from binlake.cli.app import app
from hudilake.clock import new_uuid
from hudilake.errors import BadInputError
from tests.binlake.proof.history.bank import Bank, Change, account, gtid
from tests.binlake.stream.kafka_bank import admin_of, make_topic
from tests.services.kafka import Broker

pytestmark = pytest.mark.kafka


@pytest.fixture
def bank(kafka_broker: Broker, tmp_path: Path) -> Bank:
    """Accounts and two transfers, in the lake and in the broker's topic."""
    servers, prefix = kafka_broker.bootstrap_servers, f"t{new_uuid()[:8]}"
    made = Bank(tmp_path, ("a",), servers=servers, prefix=prefix)
    made.transact(1, [Change("a", None, account(k, 100)) for k in range(5)])
    made.transfer(2, 1, 2, 10)
    made.transfer(3, 3, 4, 5)
    made.run_stream()
    topic = f"{prefix}.shop.a"
    make_topic(servers, topic, 1)
    producer = Producer({"bootstrap.servers": servers})
    for key, value in made.log.records[topic, 0]:
        producer.produce(topic, value, key, 0)
    producer.flush()
    return made


@pytest.mark.full
def test_what_the_broker_has_and_has_not(bank: Bank) -> None:
    words = [str(bank.conf), "shop.a", "1", "--kafka", "--json"]
    done = CliRunner().invoke(app, ["why", *words])
    assert done.exit_code == 0, (done.output, done.exception)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["kind"], line.get("gtid")) for line in lines][:2] == [("superseded", gtid(1)), ("version", gtid(2))]
    reverted = CliRunner().invoke(app, ["revert", str(bank.conf), "--transaction", gtid(2), "--yes"])
    assert reverted.exit_code == 0, (reverted.output, reverted.exception)
    assert bank.lake_rows()[1] == account(1, 100)
    topic = f"{bank.prefix}.shop.a"
    admin = admin_of(bank.settings.kafka.bootstrap_servers)
    for deleted in admin.delete_records([TopicPartition(topic, 0, 6)]).values():
        deleted.result()
    gone = CliRunner().invoke(app, ["revert", str(bank.conf), "--transaction", gtid(2), "--yes"])
    assert isinstance(gone.exception, BadInputError)
    assert "a part of the selection may be missing" in gone.exception.what
    done = CliRunner().invoke(app, ["why", *words])
    assert "Kafka no longer has 6 of the offsets" in done.stdout
