"""The broker that the other tests use, and the container path itself, which CI may not go round."""

from __future__ import annotations

import itertools

import pytest
from kafka import KafkaConsumer, KafkaProducer

from tests.services.kafka import Broker, container_problem, docker_required
from tests.services.kafka_container import KafkaContainer, daemon_problem

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


@pytest.mark.skipif(
    daemon_problem() is not None and not docker_required(), reason="no Docker daemon answers; CI requires one"
)
def test_a_container_serves_a_round_trip_and_is_removed() -> None:
    problem = container_problem()
    assert problem is None, problem
    with KafkaContainer() as container:
        _round_trip(container.bootstrap_servers, "container-round-trip")
        identity = container.get_wrapped_container().id
        client = container.get_docker_client().client
    with pytest.raises(Exception, match="No such container"):
        client.containers.get(identity)


def test_an_image_that_does_not_start_is_an_error_and_not_the_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINLAKE_REQUIRE_DOCKER", "1")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(RuntimeError, match="BINLAKE_REQUIRE_DOCKER"):
        container_problem()
