"""binlake's commits: the stream's own batches over events in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bench.events import COLUMNS, DATABASE, TABLE
from bench.requests.store import Store
from binlake.decode.changes import RawRecords
from binlake.position.ledger import Ledger
from binlake.rows.tasks.decode_and_route import decode_records
from binlake.rows.tasks.plan import BatchPlan, Item
from binlake.settings import Settings
from binlake.source.offsets import OffsetRange, Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.lake import Lake
from binlake.tables.services.table_services import TableServices
from hudilake.storage import open_storage

TOPIC = f"s.{DATABASE}.{TABLE}"
Event = tuple[bytes, bytes]


@dataclass
class EventsInMemory:
    """An engine whose one task runs here, over the events so far."""

    events: list[Event] = field(default_factory=list)

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """See binlake.stream.engine.Engine."""
        return list(decode_records(plan, map(self._records, ranges)))

    def _records(self, wanted: OffsetRange) -> RawRecords:
        events = self.events[wanted.start : wanted.end]
        offsets = np.arange(wanted.start, wanted.end, dtype=np.int64)
        times = np.full(len(events), 1_760_000_000_000)
        return RawRecords(TOPIC, 0, offsets, times, [key for key, _ in events], [value for _, value in events])


class OurWriter:
    """A stream of the benchmark's table, its state in the store too."""

    def __init__(self, store: Store, buckets: int) -> None:
        options: Mapping[str, str] = store.options
        document = {
            "name": "requests",
            "lake": {"uri": store.uri("binlake"), "options": options},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [TOPIC]},
            "source": {"schemas": {f"{DATABASE}.{TABLE}": {"columns": COLUMNS, "key": ["id"]}}},
            "tables": {"defaults": {"buckets": buckets, "compaction": {"mode": "off"}}},
        }
        settings = Settings.parse(json.dumps(document))
        root = open_storage(settings.lake.uri, settings.lake.storage_options())
        state = open_storage(settings.state_uri, settings.state_options())
        services = TableServices(lambda function, operations: [function(one) for one in operations])
        ledger, registry = Ledger(settings.name), SchemaRegistry(settings)
        self._runner = BatchRunner(settings, Lake(root), state, ledger, registry, services)
        self._engine, self._batch = EventsInMemory(), 0
        self.version = "this checkout"

    def write(self, events: Sequence[Event]) -> None:
        """Commit one batch. Raises RuntimeError if a record of it is not applied."""
        self._engine.events += events
        end = Offsets.of_places([(TOPIC, 0, len(self._engine.events))])
        told = self._runner.run(self._batch, end, 0, self._engine)
        if wrong := [(t.error, t.warning, t.quarantined) for t in told.tables if t.error or t.warning or t.quarantined]:
            raise RuntimeError(f"batch {self._batch}: {wrong}")
        self._batch += 1

    def close(self) -> None:
        """Release all resources."""
        self._runner.close()
