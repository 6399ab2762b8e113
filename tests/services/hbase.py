"""A real HBase for the tests, whose changes go to the tests' broker; started at most once by each process of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from binlake.decode.changes import RawRecords
from binlake.source.fetch import consumer_for, fetch
from binlake.source.offsets import OffsetRange
from embedded.hbase import EmbeddedHBase
from embedded.hbase_source import HBaseSource
from tests.services.kafka import Broker

PREFIX = "hbase"
#: Each so-many-th batch of the replication comes again.
FAIL_EVERY = 9
#: A compaction leaves delete markers in place, so that a put that comes later and is older stays masked. Without this a
#: replay cannot know what a put meets: no event tells of a compaction.
_SETTINGS = {"hbase.hstore.time.to.purge.deletes": str(10**13)}
_PARTITIONS = 3


@dataclass(frozen=True)
class LiveHBase:
    """A running HBase, its client, and the broker that its changes are sent to. Tests keep apart by their tables."""

    service: EmbeddedHBase
    source: HBaseSource
    bootstrap_servers: str

    def make_topics(self, table: str) -> None:
        """Make the topics of a table before its first change, with several partitions."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        wanted = [NewTopic(topic_of(table, form), _PARTITIONS, 1) for form in ("wal", "events")]
        for made in admin.create_topics(wanted).values():
            made.result()

    def records(self, table: str, form: str = "wal") -> list[RawRecords]:
        """All records of a table's topic; each value has those of one partition."""
        config = {"bootstrap.servers": self.bootstrap_servers}
        ranges = []
        for partition in range(_PARTITIONS):
            place = TopicPartition(topic_of(table, form), partition)
            low, high = consumer_for(config).get_watermark_offsets(place, timeout=10)
            ranges.append(OffsetRange(place.topic, partition, low, high))
        return list(fetch(config, [one for one in ranges if len(one)], timeout_s=30, chunk_records=10_000))


def topic_of(table: str, form: str = "wal") -> str:
    """The topic of a table's changes: ``form`` is ``wal`` or ``events``."""
    return f"{PREFIX}.{table.replace(':', '.')}.{form}"


@pytest.fixture(scope="session")
def hbase(kafka_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHBase]:
    """HBase with an endpoint that sends all changes, in both forms, and some of them twice."""
    with EmbeddedHBase(tmp_path_factory.mktemp("hbase"), settings=_SETTINGS) as service, HBaseSource(service) as source:
        source.replicate_to_kafka(kafka_broker.bootstrap_servers, prefix=PREFIX, fail_every=FAIL_EVERY)
        yield LiveHBase(service, source, kafka_broker.bootstrap_servers)
