"""Through Debezium and Kafka, too, the lake at random transactions is what a replica of the source is behind them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from binlake.proof.history.moments import StreamLake
from tests.programs.moments.kafka import KafkaStory
from tests.programs.moments.replica import ReplicaServer, SourceReplica
from tests.programs.moments.story import Compared, compare
from tests.programs.moments.test_moments import Ended, check, chosen
from tests.programs.oracle.binlog.run import start_server
from tests.services.kafka import Broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.database]
#: The columns that statements add under load: through Kafka nothing tells at which transaction they came.
_ADDED = ("more", "flag")


@contextmanager
def ended(broker: Broker, place: Path, seed: int, seconds: float) -> Iterator[Ended]:
    with (
        start_server() as server,
        tempfile.TemporaryDirectory(prefix="rp") as other,
        ReplicaServer(Path(other)) as beside,
    ):
        story = KafkaStory(
            server, place, seed, seconds, pause_s=0.05, broker=broker.bootstrap_servers, prefix=f"moments_{seed}"
        )
        try:
            story.run()
        finally:
            story.connect.kill()
        with closing(SourceReplica(beside, server)) as replica:
            yield Ended(story, StreamLake(story.settings), replica)


@pytest.mark.full
def test_random_transactions_through_kafka_are_what_the_source_was(kafka_broker: Broker, tmp_path: Path) -> None:
    with ended(kafka_broker, tmp_path, 1, 20.0) as one:
        cuts = one.named()
        some = [*chosen(cuts[:-1], 6, 1), cuts[-1]]
        assert len(some) == 7
        check(compare(one.lake, one.replica, some, _ADDED), 7)
        assert one.story.kills >= 1
        assert one.story.transactions > 100
        before = Compared(unplaced=_ADDED)  # the control: another moment is noticed
        before.take(one.lake, some[-2].transaction or "", one.replica.tables())
        assert before.wrong


@pytest.mark.full
@pytest.mark.parametrize("seed", [2, 3])
def test_fifty_random_transactions_through_kafka(kafka_broker: Broker, tmp_path: Path, seed: int) -> None:
    with ended(kafka_broker, tmp_path, seed, 45.0) as one:
        some = chosen(one.named(), 50, seed)
        assert len(some) == 50
        check(compare(one.lake, one.replica, some, _ADDED), 50)
        assert one.story.kills >= 2
