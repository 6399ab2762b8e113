"""The broker that the other tests use: a container where Docker answers, which CI requires, and its jars elsewhere."""

from __future__ import annotations

import itertools
import socket
from pathlib import Path

import pytest
from docker.client import DockerClient
from docker.errors import NotFound
from kafka import KafkaConsumer, KafkaProducer

from tests.services.kafka import Broker, container_problem, start_broker

pytestmark = pytest.mark.kafka


def _round_trip(servers: str, topic: str) -> list[bytes]:
    sent = [b"%d" % number for number in range(1000)]
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    for value in sent:
        producer.send(topic, value)
    producer.flush()
    producer.close()
    consumer = KafkaConsumer(
        topic, bootstrap_servers=servers, auto_offset_reset="earliest", consumer_timeout_ms=20_000, group_id=topic
    )
    got = [message.value for message in itertools.islice(consumer, len(sent))]
    consumer.close(autocommit=False)
    assert got == sent
    return got


def test_the_shared_broker_keeps_what_it_is_given(kafka_broker: Broker) -> None:
    _round_trip(kafka_broker.bootstrap_servers, "shared-broker-round-trip")
    assert kafka_broker.kind == ("jars" if container_problem() else "container")


@pytest.mark.full
def test_a_broker_serves_a_round_trip_and_is_gone_after_its_block(tmp_path: Path) -> None:
    with start_broker(tmp_path) as broker:
        _round_trip(broker.bootstrap_servers, "own-broker-round-trip")
    host, _, port = broker.bootstrap_servers.partition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5).close()
    if broker.kind == "container":
        with pytest.raises(NotFound, match="No such container"):
            DockerClient.from_env().containers.get(broker.container_id)


def test_an_image_that_does_not_start_is_an_error_and_not_the_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINLAKE_REQUIRE_DOCKER", "1")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(RuntimeError, match="BINLAKE_REQUIRE_DOCKER"):
        container_problem()
