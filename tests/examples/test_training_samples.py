"""The example ``training_samples``: facts through the stream into a trainer, seconds later, each once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from bench.kafka_load import create_topic, delete_topics
from bench.local_stream import follow
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.lake import Lake
from examples.training_samples.produce import BIAS, FEATURES_TOPIC, LABELS_TOPIC, WEIGHTS, Fact, facts, send
from examples.training_samples.train import FEATURES, train
from hudilake.clock import now_ms
from hudilake.query.samples import Samples
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, services
from tests.paths import ROOT
from tests.services.kafka import Broker

CONF = ROOT / "examples" / "training_samples" / "settings.yaml"
TOPICS = (FEATURES_TOPIC, LABELS_TOPIC)
IMPRESSIONS = 2_400


@dataclass
class Example:
    """The stream at work: how it gets facts, and where its table is."""

    put: Callable[[Iterable[Fact]], None]
    table: Path


def settings(place: Path, broker: str) -> Settings:
    environ = {"BINLAKE_EXAMPLE_DIR": str(place), "BINLAKE_EXAMPLE_BROKER": broker}
    return Settings.parse(CONF.read_text(), environ=environ)


@pytest.fixture
def example(tmp_path: Path) -> Example:
    """Each put is a batch, of records in memory."""
    conf = settings(tmp_path, "127.0.0.1:1")
    log = TopicLog()
    ledger = Ledger(conf.name, positions={topic: {0: 0} for topic in TOPICS})
    lake = Lake(open_storage(conf.lake.uri, {"fsync": "false"}))
    runner = BatchRunner(conf, lake, open_storage(conf.state_uri), ledger, SchemaRegistry(conf), services(), None)

    def put(given: Iterable[Fact]) -> None:
        for fact in given:
            log.records.setdefault((fact.topic, 0), []).append((fact.key.encode(), fact.value))
        event = runner.run(runner.ledger.batch + 1, log.end(), now_ms(), LocalEngine(log))
        assert [t.error or t.warning for t in event.tables] == [None]

    return Example(put, tmp_path / "lake" / "features" / "impressions")


@pytest.fixture
def kafka_example(kafka_broker: Broker, tmp_path: Path) -> Iterator[Example]:
    """A stream that follows its topics."""
    servers = kafka_broker.bootstrap_servers
    for topic in TOPICS:
        create_topic(servers, topic, 2)
    stop = threading.Event()
    stream = threading.Thread(target=follow, args=(settings(tmp_path, servers), stop))
    stream.start()
    table = tmp_path / "lake" / "features" / "impressions"

    def put(given: Iterable[Fact]) -> None:
        send(servers, iter(given))
        for _ in range(600):
            if (table / ".hoodie" / "hoodie.properties").exists():
                return
            stop.wait(0.1)
        raise AssertionError("the stream made no table")

    yield Example(put, table)
    stop.set()
    stream.join()
    delete_topics(servers, TOPICS)


def test_the_trainer_sees_each_labelled_impression_once(example: Example, tmp_path: Path) -> None:
    check(example, tmp_path / "model.json")


@pytest.mark.kafka
def test_the_trainer_follows_the_topics(kafka_example: Example, tmp_path: Path) -> None:
    check(kafka_example, tmp_path / "model.json")


def check(example: Example, checkpoint: Path) -> None:
    """Two trainings, the second from the kept position on, while the stream goes on."""
    parts = [list(facts(IMPRESSIONS, delay=100, first=first)) for first in (0, IMPRESSIONS)]
    labels = [sum(fact.topic == LABELS_TOPIC for fact in part) for part in parts]
    example.put(parts[0])
    assert train(str(example.table), checkpoint, samples=labels[0]).seen == labels[0]
    example.put(parts[1])
    model = train(str(example.table), checkpoint, samples=sum(labels))
    assert model.seen == sum(labels)
    assert np.abs(model.weights - [*(WEIGHTS[name] for name in FEATURES), BIAS]).max() < 0.4
    assert sum(batch.num_rows for batch in Samples(str(example.table), complete=["features"])) == 2 * IMPRESSIONS
    assert list(Samples(str(example.table), columns=FEATURES, since=model.position)) == []
