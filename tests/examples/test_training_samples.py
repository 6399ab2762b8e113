"""The example ``training_samples``: facts through Kafka and the stream into a trainer, seconds later, each once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench.kafka_load import create_topic, delete_topics
from bench.local_stream import follow
from examples.training_samples.produce import BIAS, FEATURES_TOPIC, LABELS_TOPIC, WEIGHTS, facts, send
from examples.training_samples.train import FEATURES, train
from pipeline.samples import Samples
from pipeline.settings import Settings
from tests.paths import ROOT
from tests.services.kafka import Broker

pytestmark = pytest.mark.kafka

CONF = ROOT / "examples" / "training_samples" / "settings.yaml"
IMPRESSIONS = 3_000


@pytest.fixture
def table(kafka_broker: Broker, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The table that the example's stream writes to, and its broker."""
    servers = kafka_broker.bootstrap_servers
    for topic in (FEATURES_TOPIC, LABELS_TOPIC):
        create_topic(servers, topic, 2)
    environ = {"BINLAKE_EXAMPLE_DIR": str(tmp_path), "BINLAKE_EXAMPLE_BROKER": servers}
    settings = Settings.parse(CONF.read_text(), environ=environ)
    send(servers, facts(IMPRESSIONS, delay=100))
    stop = threading.Event()
    stream = threading.Thread(target=follow, args=(settings, stop))
    stream.start()
    yield f"{tmp_path}/lake/features/impressions", servers
    stop.set()
    stream.join()
    delete_topics(servers, [FEATURES_TOPIC, LABELS_TOPIC])


def test_the_trainer_sees_each_labelled_impression_once(table: tuple[str, str], tmp_path: Path) -> None:
    path, servers = table
    labelled = [sum(f.topic == LABELS_TOPIC for f in facts(IMPRESSIONS, first=n)) for n in (0, IMPRESSIONS)]
    _wait_for(path)
    first = train(path, tmp_path / "model.json", samples=labelled[0])
    assert first.seen == labelled[0]
    send(servers, facts(IMPRESSIONS, delay=100, first=IMPRESSIONS))
    model = train(path, tmp_path / "model.json", samples=sum(labelled))
    assert model.seen == sum(labelled)
    assert np.abs(model.weights - [*(WEIGHTS[name] for name in FEATURES), BIAS]).max() < 0.35
    assert sum(batch.num_rows for batch in Samples(path, complete=["features"])) == 2 * IMPRESSIONS
    assert list(Samples(path, columns=FEATURES, since=model.position)) == []


def _wait_for(path: str) -> None:
    deadline = threading.Event()
    for _ in range(600):
        if (Path(path) / ".hoodie" / "hoodie.properties").exists():
            return
        deadline.wait(0.1)
    raise AssertionError("the stream made no table")
