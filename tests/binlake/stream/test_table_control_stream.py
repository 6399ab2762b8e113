"""Requests about tables while a real stream runs, on Spark and Kafka, also while no record comes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from bench.kafka_load import create_topic, produce
from binlake.decode.changes import SourceTable
from binlake.position.ledger import Ledger
from binlake.position.table_requests import change_request, paused, resumed
from binlake.settings import Settings
from binlake.stream.monitoring.held import held_tables
from binlake.stream.monitoring.status import stream_status
from binlake.stream.run import Stream
from hudilake.clock import new_uuid
from hudilake.errors import TableStoppedError
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import COLUMNS, event
from tests.judges import hudi_rs
from tests.services.kafka import Broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

A, B = SourceTable("shop", "a"), SourceTable("shop", "b")


def wait(until: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 240
    while not until():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


class Shop:
    """Two tables in Kafka, and their stream."""

    def __init__(self, place: Path, broker: Broker) -> None:
        self.place, self.servers, self.prefix, self.pos = place, broker.bootstrap_servers, f"p{new_uuid()[:8]}", 0
        for table in "ab":
            create_topic(self.servers, self.topic(table), 1)
        self.state = open_storage(str(place / ".binlake" / "shop"))

    def topic(self, table: str) -> str:
        return f"{self.prefix}.shop.{table}"

    def put(self, table: str, key: int, owner: str) -> None:
        self.pos += 40
        row = {"id": key, "owner": owner, "balance": "AfQ=", "region": "eu"}
        message = json.dumps(event(table, "u", self.pos, row)).encode()
        produce(self.servers, self.topic(table), [(json.dumps({"id": key}).encode(), message)])

    def settings(self) -> Settings:
        document = {
            "name": "shop",
            "lake": {"uri": str(self.place), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": self.servers, "topics": [self.topic(table) for table in "ab"]},
            "source": {"schemas": {f"shop.{t}": {"columns": COLUMNS, "key": ["id"]} for t in "ab"}},
            "batch": {"trigger_interval_ms": 100},
        }
        return Settings.parse(json.dumps(document))

    def lake(self, table: str) -> dict[int, str]:
        if not (self.place / "shop" / table / ".hoodie" / "hoodie.properties").exists():
            return {}
        return {row["id"]: row["owner"] for row in hudi_rs.snapshot(f"{self.place}/shop/{table}").to_pylist()}

    def ledger(self) -> Ledger:
        found = Ledger.load(self.state, "shop")
        assert found is not None
        return found


@pytest.mark.full
def test_pause_and_resume_while_the_stream_runs(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> None:
    shop, stop, errors = Shop(tmp_path, kafka_broker), threading.Event(), list[BaseException]()
    for table in "ab":
        shop.put(table, 1, "first")

    def run() -> None:
        try:
            Stream(shop.settings(), spark, lambda told: None, stop).run(once=False)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        wait(lambda: shop.lake("a") == shop.lake("b") == {1: "first"}, "the first rows")
        change_request(shop.state, A, paused)
        wait(lambda: A in shop.ledger().paused, "the stream sees the request while no record comes")
        for table in "ab":
            shop.put(table, 1, "second")
        wait(lambda: shop.lake("b") == {1: "second"}, "the other table goes on")
        assert shop.lake("a") == {1: "first"}
        change_request(shop.state, A, resumed)
        wait(lambda: shop.lake("a") == {1: "second"}, "the table goes on while no record comes")
        wait(lambda: not shop.ledger().behind, "it has caught up")
    finally:
        stop.set()
        thread.join(60)
    assert errors == []


@pytest.mark.full
def test_once_ends_with_the_code_of_a_stopped_table(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> None:
    shop = Shop(tmp_path, kafka_broker)
    for table in "ab":
        shop.put(table, 1, "first")

    def once() -> None:
        Stream(shop.settings(), spark, lambda told: None, threading.Event()).run(once=True)

    once()
    properties = tmp_path / "shop" / "b" / ".hoodie" / "hoodie.properties"
    kept = properties.read_text()
    properties.write_text(kept.replace("hoodie.table.recordkey.fields=id", "hoodie.table.recordkey.fields=owner"))
    for table in "ab":
        shop.put(table, 2, "second")
    with pytest.raises(TableStoppedError, match="cannot go on without a person"):
        once()
    assert shop.lake("a") == {1: "first", 2: "second"}
    assert shop.ledger().stopped[B].kind == "UnsupportedError"
    properties.write_text(kept)
    once()
    assert shop.lake("b") == {1: "first", 2: "second"}
    assert shop.ledger().behind == {}


@pytest.mark.full
def test_records_that_kafka_deletes_during_a_pause_stop_that_table_alone(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path
) -> None:
    shop = Shop(tmp_path, kafka_broker)

    def once() -> None:
        Stream(shop.settings(), spark, lambda told: None, threading.Event()).run(once=True)

    for table in "ab":
        shop.put(table, 1, "first")
    once()
    change_request(shop.state, A, paused)
    for table in "ab":
        shop.put(table, 2, "second")
    once()
    admin = AdminClient({"bootstrap.servers": shop.servers})
    for answer in admin.delete_records([TopicPartition(shop.topic("a"), 0, 2)]).values():
        answer.result()
    shop.put("b", 3, "third")
    once()
    assert (len(shop.lake("a")), len(shop.lake("b"))) == (1, 3)
    told = stream_status(shop.settings(), 10.0)
    assert told.ledger is not None
    (held,) = held_tables(told.ledger, told.requests, told.facts, "shop.yaml")
    assert (held.state, held.waiting, held.deleted) == ("paused", 1, 1)
    assert held.command == "table resync shop.yaml shop.a"
    change_request(shop.state, A, resumed)
    with pytest.raises(TableStoppedError, match=r"shop\.a"):
        once()
    assert shop.ledger().stopped[A].kind == "BadInputError"
