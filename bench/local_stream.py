"""The stream's own batches over Kafka in a process without Spark; ``python -m bench.local_stream CONF`` runs one."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from bench.kafka_load import topic_ends
from binlake.position.ledger import Ledger
from binlake.rows.tasks.decode_and_route import fetch_and_decode
from binlake.rows.tasks.plan import BatchPlan, Item
from binlake.settings import Settings
from binlake.source.offsets import OffsetRange, Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.lake import Lake, locking
from binlake.tables.services.table_services import TableServices
from hudilake.clock import now_ms
from hudilake.storage import open_storage

_PAUSE_S = 0.3


@dataclass
class Here:
    """An engine that runs its one task in this process."""

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """See binlake.stream.engine.Engine."""
        return list(fetch_and_decode(plan, ranges))


def follow(settings: Settings, stop: threading.Event) -> None:
    """Apply what the settings' topics bring, until stopped."""
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    state = open_storage(settings.state_uri, settings.state_options())
    topics = settings.kafka.topics
    services = TableServices(lambda function, operations: [function(operation) for operation in operations])
    lake = Lake(root, locking(settings.locking, f"stream {settings.name}"))
    partitions = topic_ends(settings.kafka.bootstrap_servers, topics)
    start = Offsets.of_places((topic, partition, 0) for topic, partition, _ in partitions.places())
    ledger = Ledger.load(state, settings.name) or Ledger(settings.name, positions=start)
    registry = SchemaRegistry(settings)
    runner = BatchRunner(settings, lake, state, ledger, registry, services, None)
    while not stop.wait(_PAUSE_S):
        registry.refresh()
        ends = topic_ends(settings.kafka.bootstrap_servers, topics)
        if ends != runner.ledger.positions:
            event = runner.run(runner.ledger.batch + 1, ends, now_ms(), Here())
            if errors := [t.error for t in event.tables if t.error]:
                raise RuntimeError(f"batch {event.batch_id}: {errors}")
    runner.close()


def main() -> None:
    """Follow until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    follow(Settings.load(sys.argv[1]), stop)


if __name__ == "__main__":
    main()
