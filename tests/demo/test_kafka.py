import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import Message as KafkaMessage

from demo.live import LiveSource
from demo.messages import Message
from demo.produce import Sender, create_topics, end_offsets
from demo.recordings import RECORDINGS, read_recording
from demo.scenario import RECORDED, load_recorded
from tests.services.kafka import Broker

pytestmark = pytest.mark.kafka


def received(m: KafkaMessage) -> Message:
    partition = m.partition()
    assert m.error() is None
    assert partition is not None
    headers = tuple((str(h[0]), h[1] if isinstance(h[1], bytes) else None) for h in m.headers() or ())
    return Message(m.topic() or "", partition, m.timestamp()[1], m.key(), m.value(), headers)


def consumed(servers: str, topic: str, ends: dict[tuple[str, int], int]) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "t", "enable.auto.commit": False})
    consumer.assign([TopicPartition(t, p, 0) for t, p in ends if t == topic])
    found: list[Message] = []
    while len(found) < sum(end for (t, _), end in ends.items() if t == topic):
        found += [received(m) for m in consumer.consume(1000, 1.0)]
    consumer.close()
    return found


def by_partition(messages: list[Message]) -> dict[int, list[Message]]:
    return {p: [m for m in messages if m.partition == p] for p in {m.partition for m in messages}}


@pytest.mark.kafka
def test_recordings_arrive_as_they_were(kafka_broker: Broker) -> None:
    topic = "shop_schema.shop.customers"
    sent = list(read_recording(RECORDINGS / "shop" / "schema" / f"{topic}.jsonl.gz"))
    create_topics(kafka_broker.bootstrap_servers, {topic: 3})
    sender = Sender(kafka_broker.bootstrap_servers)
    sender.send(sent)
    sender.flush()
    ends = end_offsets(kafka_broker.bootstrap_servers, {topic: 3})
    assert sum(ends.values()) == len(sent) == sender.sent
    found = consumed(kafka_broker.bootstrap_servers, topic, ends)
    assert by_partition(found) == by_partition(sent)
    assert any(m.value is None for m in found)
    assert any(m.key is None or m.headers for m in found)


@pytest.mark.kafka
def test_live_changes_arrive_as_they_were(kafka_broker: Broker) -> None:
    source = LiveSource(1, lambda: 1_795_242_000_123_456)
    sent = source.snapshot(20) + [m for _ in range(200) for m in source.transaction()]
    topics = {t.topic: 3 for t in source.tables}
    create_topics(kafka_broker.bootstrap_servers, topics)
    sender = Sender(kafka_broker.bootstrap_servers)
    sender.send(sent)
    sender.flush()
    ends = end_offsets(kafka_broker.bootstrap_servers, topics)
    for topic in topics:
        mine = [m for m in sent if m.topic == topic]
        assert by_partition(consumed(kafka_broker.bootstrap_servers, topic, ends)) == by_partition(mine)


@pytest.mark.kafka
def test_what_the_broker_refuses_is_an_error(kafka_broker: Broker) -> None:
    sender = Sender(kafka_broker.bootstrap_servers)
    create_topics(kafka_broker.bootstrap_servers, {"one.partition.only": 1})
    sender.send([Message("one.partition.only", 7, 0, None, b"x")])
    with pytest.raises(RuntimeError, match="did not take"):
        sender.flush()


@pytest.mark.full
def test_the_demo_has_its_recordings() -> None:
    for database, variant in RECORDED:
        recorded = load_recorded(database, variant)
        assert {str(t) for t in recorded.tables} <= {t.split(".", 1)[1] for t in recorded.topics if "." in t}
        assert recorded.topics[f"{database}_{variant}"]
