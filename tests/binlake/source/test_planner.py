"""Batches of a stream are planned by asking Kafka, for the lines of Spark that have no Kafka source of their own."""

from __future__ import annotations

import pickle

import pytest
from confluent_kafka import Producer

from binlake.source.offsets import NO_OFFSETS, Offsets
from binlake.source.planner import OffsetPlanner, PlannedTopics
from demo.produce import create_topics
from hudilake.clock import new_uuid
from hudilake.errors import BadInputError, ConfigError
from tests.services.kafka import Broker

pytestmark = pytest.mark.kafka


class Log:
    """A topic of its own in the broker."""

    def __init__(self, broker: Broker, partitions: int = 2) -> None:
        self.topic = f"planned_{new_uuid()[:8]}"
        self.config = {"bootstrap.servers": broker.bootstrap_servers}
        create_topics(broker.bootstrap_servers, {self.topic: partitions})

    def append(self, partition: int, records: int) -> None:
        producer = Producer(self.config)
        for _ in range(records):
            producer.produce(self.topic, b"x", partition=partition)
        assert producer.flush(30) == 0

    def planned(self, *, most: int, pattern: str | None = None, until: Offsets | None = None) -> PlannedTopics:
        names = () if pattern else (self.topic,)
        return PlannedTopics(self.config, names, pattern, Offsets({self.topic: {0: 0, 1: 0}}), most, until)


def test_batches_are_bounded_and_none_is_planned_twice(kafka_broker: Broker) -> None:
    log = Log(kafka_broker)
    log.append(0, 30)
    log.append(1, 10)
    planner = OffsetPlanner(log.planned(most=20))
    ends = [planner.next_end()[log.topic] for _ in range(4)]
    assert ends[0] == {0: 15, 1: 5}
    assert [sum(end.values()) for end in ends] == [20, 40, 40, 40]
    log.append(1, 1)
    assert planner.next_end()[log.topic] == {0: 30, 1: 11}


def test_what_spark_knows_is_not_planned_again(kafka_broker: Broker) -> None:
    log = Log(kafka_broker)
    log.append(0, 30)
    planner = OffsetPlanner(log.planned(most=10))
    planner.passed({log.topic: {0: 25}})
    assert planner.next_end()[log.topic] == {0: 30, 1: 0}


def test_planning_stops_at_the_given_end(kafka_broker: Broker) -> None:
    log = Log(kafka_broker)
    log.append(0, 30)
    planner = OffsetPlanner(log.planned(most=20, until=Offsets({log.topic: {0: 25, 1: 0}})))
    assert [planner.next_end().at(log.topic, 0) for _ in range(3)] == [20, 25, 25]


def test_a_new_topic_of_the_pattern_is_planned_from_its_beginning(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("binlake.source.planner._LOOK_EVERY_S", 0.0)
    log = Log(kafka_broker)
    planner = OffsetPlanner(log.planned(most=20, pattern=f"{log.topic}.*"))
    assert planner.next_end().total == 0
    create_topics(kafka_broker.bootstrap_servers, {f"{log.topic}_later": 1})
    producer = Producer(log.config)
    producer.produce(f"{log.topic}_later", b"x", partition=0)
    assert producer.flush(30) == 0
    assert planner.next_end().at(f"{log.topic}_later", 0) == 1


def test_a_topic_that_is_shorter_than_what_was_read_is_refused(kafka_broker: Broker) -> None:
    log = Log(kafka_broker)
    log.append(0, 3)
    planner = OffsetPlanner(log.planned(most=20))
    planner.passed({log.topic: {0: 4}})
    with pytest.raises(BadInputError, match="created again"):
        planner.next_end()


def test_a_topic_that_is_gone_is_named(kafka_broker: Broker) -> None:
    planned = PlannedTopics({"bootstrap.servers": kafka_broker.bootstrap_servers}, ("none",), None, NO_OFFSETS, 1)
    with pytest.raises(ConfigError, match="topic"):
        OffsetPlanner(planned).next_end()


def test_the_value_survives_the_way_to_another_process(kafka_broker: Broker) -> None:
    log = Log(kafka_broker)
    planned = log.planned(most=20, until=Offsets({log.topic: {0: 1}}))
    assert PlannedTopics.from_text(planned.to_text()) == pickle.loads(pickle.dumps(planned)) != log.planned(most=20)
