"""A new stream waits for topics that the connector has yet to make, and says which."""

from __future__ import annotations

import logging
import threading

import pytest

from binlake.position import topics
from binlake.position.topics import await_topics
from binlake.settings import KafkaSettings
from demo.produce import create_topics
from hudilake.clock import new_uuid
from tests.services.kafka import Broker

pytestmark = pytest.mark.kafka


def waiting(thread: threading.Thread, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says, once the thread has looked or is through."""
    while thread.is_alive() and not caplog.messages:
        thread.join(0.1)
    return list(caplog.messages)


@pytest.mark.first(1)
@pytest.mark.parametrize("named", [True, False], ids=["topics", "pattern"])
def test_the_wait_ends_when_the_connector_has_made_the_topics(
    kafka_broker: Broker, caplog: pytest.LogCaptureFixture, named: bool
) -> None:
    prefix = f"w{new_uuid()[:8]}"
    kafka = KafkaSettings(
        bootstrap_servers=kafka_broker.bootstrap_servers,
        topics=(f"{prefix}.shop.a",) if named else (),
        topic_pattern=None if named else f"{prefix}\\.shop\\..+",
        ddl_topics=(prefix,),
    )
    stop = threading.Event()
    thread = threading.Thread(target=await_topics, args=(kafka, stop), daemon=True)
    with caplog.at_level(logging.INFO, "binlake.position.topics"):
        thread.start()
        said = waiting(thread, caplog)
        assert len(said) == 1
        assert said[0].startswith(f"waiting up to 300 s for topics: there is no {prefix}")
        create_topics(kafka.bootstrap_servers, {prefix: 1, f"{prefix}.shop.a": 1})
        thread.join(600)
    assert not thread.is_alive()


def test_the_wait_ends_after_its_time_and_on_a_stop(
    kafka_broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = KafkaSettings(bootstrap_servers=kafka_broker.bootstrap_servers, topics=("no.such.topic",))
    with caplog.at_level(logging.INFO, "binlake.position.topics"):
        await_topics(kafka.model_copy(update={"wait_seconds": 0.0}), threading.Event())
        assert caplog.messages == []
        stop = threading.Event()
        stop.set()
        await_topics(kafka, stop)
        times = iter([0.0, 0.005, 0.02])  # a busy machine may need longer than that to look
        monkeypatch.setattr(topics, "monotonic_s", lambda: next(times))
        await_topics(kafka.model_copy(update={"wait_seconds": 0.01}), threading.Event())
    assert caplog.messages == [
        "waiting up to 300 s for topics: there is no no.such.topic",
        "waiting up to 0 s for topics: there is no no.such.topic",
    ]
