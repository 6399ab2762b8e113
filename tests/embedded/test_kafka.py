"""The broker from jars: it serves, keeps its data over restarts and kills, and says why it did not start."""

from __future__ import annotations

import itertools
import os
import socket
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer

from embedded.kafka import EmbeddedKafka
from hudilake.errors import ConfigError, TransientError

pytestmark = pytest.mark.kafka


def _produce(servers: str, *values: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    for value in values:
        producer.send("events", value)
    producer.flush()
    producer.close()


def _consume(servers: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        "events",
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
        group_id="readers",
    )
    values = [message.value for message in itertools.islice(consumer, count)]
    consumer.close(autocommit=False)
    return values


@pytest.mark.full
def test_data_and_address_outlive_an_orderly_and_a_hard_end(tmp_path: Path) -> None:
    kafka = EmbeddedKafka(tmp_path)
    with kafka:
        first = kafka.bootstrap_servers
        assert first.startswith("127.0.0.1:")
        _produce(first, b"1", b"2")
        pid = kafka.pid
        assert pid is not None
        kafka.stop()
        assert kafka.pid is None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        kafka.start()
        assert kafka.bootstrap_servers == first
        _produce(first, b"3")
        kafka.kill()
    with EmbeddedKafka(tmp_path) as again:
        assert again.bootstrap_servers == first
        assert _consume(first, 3) == [b"1", b"2", b"3"]


@pytest.mark.full
def test_a_taken_port_is_changed(tmp_path: Path) -> None:
    kafka = EmbeddedKafka(tmp_path)
    kafka.start()
    kafka.stop()
    host, port = kafka.bootstrap_servers.split(":")
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, int(port)))
        taken.listen()
        with kafka:
            assert kafka.bootstrap_servers != f"{host}:{port}"
            _produce(kafka.bootstrap_servers, b"1")


def test_a_broker_that_does_not_start_says_why(tmp_path: Path) -> None:
    kafka = EmbeddedKafka(tmp_path, properties={"log.retention.hours": "many"})
    with pytest.raises(TransientError, match=r"log\.retention\.hours"):
        kafka.start()
    assert kafka.pid is None


@pytest.mark.full
def test_no_address_before_the_first_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        _ = EmbeddedKafka(tmp_path).bootstrap_servers
