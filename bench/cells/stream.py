"""A stream without Kafka and Spark over WAL entries in memory, into a large table of cells and a wide table."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from bench.cells.table import FIRST_MS, Shape, load
from binlake.decode.changes import RawRecords
from binlake.hbase.derive.cell_store import CellStore
from binlake.hbase.derive.derivation import Deriver, derive_stream
from binlake.hbase.derive.pairs import DerivedPair, derived_pairs
from binlake.hbase.derive.run import DerivationResult
from binlake.hbase.derive.touched import newest_moment
from binlake.position.commit_record import CommitNotes
from binlake.position.derived_position import DerivedPosition
from binlake.position.ledger import Ledger
from binlake.rows.tasks.decode_and_route import decode_records
from binlake.rows.tasks.plan import BatchPlan, Item
from binlake.rows.upsert.route import Counts
from binlake.settings import Settings
from binlake.source.offsets import NO_RANGES, OffsetRange, Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.lake import Lake
from binlake.tables.quarantine import QuarantineTable
from binlake.tables.services.table_services import TableServices
from binlake.tables.table_commit import TableInput, commit_without_rows
from hudilake.storage import open_storage

TOPIC: Final = "hbase.shop.orders"
CELLS_A_ROW: Final = 2
_COLUMNS: Final = {
    "order_id": ":key",
    "user_id": "d:user_id#b long",
    "amount": "d:amount#b long",
    "created": "d:created#b long",
    "status": "d:status utf8",
    "city": "d:city utf8",
    "attributes": "m: utf8",
}
_CHANGED: Final = (("amount", b"\0\0\0\0\0\0\0\7"), ("status", b"shipped by a carrier"))


def settings(place: Path, buckets: int, *, wide: bool) -> Settings:
    """The stream's settings. ``wide``: with the wide table; without it, batches commit cells alone."""
    entry: dict[str, object] = {"source": "shop.orders"}
    if wide:
        entry["wide"] = {"columns": _COLUMNS}
    rules = {"buckets": buckets, "compaction": {"mode": "off"}}
    document = {
        "name": "shop",
        "lake": {"uri": str(place / "lake"), "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [TOPIC]},
        "source": {"format": "hbase_wal"},
        "tables": {"defaults": rules, "cells": [entry]},
        "locking": {"lock": "process"},
    }
    return Settings.parse(json.dumps(document))


@dataclass
class Entries:
    """The topic: messages, of which one task decodes the asked ones."""

    values: list[bytes] = field(default_factory=list)

    def put(self, rows: pa.Array) -> None:
        """A WAL entry for each row: a put to two columns."""
        texts: list[str] = rows.to_pylist()
        cells = [(f'"family":"ZA==","qualifier":"{_b64(q)}"', _b64(value)) for q, value in _CHANGED]
        for text in texts:
            at = FIRST_MS + 90_000_000 + len(self.values)
            made = ",".join(
                f'{{"row":"{_b64(text)}",{name},"timeStamp":{at},"type":"Put","value":"{value}"}}'
                for name, value in cells
            )
            key = f'{{"writeTime":{at},"sequenceId":{2_000_000_000 + len(self.values)},"tablename":"shop:orders"}}'
            self.values.append(f'{{"key":{key},"edit":{{"cells":[{made}]}}}}'.encode())

    @property
    def end(self) -> Offsets:
        """The next offset."""
        return Offsets.of_places([(TOPIC, 0, len(self.values))])

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """See ``binlake.stream.engine.Engine``."""
        return list(decode_records(plan, self._records(ranges)))

    def _records(self, ranges: Sequence[OffsetRange]) -> Iterator[RawRecords]:
        for one in ranges:
            for start in range(one.start, one.end, 20_000):
                held = self.values[start : min(start + 20_000, one.end)]
                offsets = np.arange(start, start + len(held), dtype=np.int64)
                times = np.full(len(held), FIRST_MS, dtype=np.int64)
                yield RawRecords(TOPIC, 0, offsets, times, [None] * len(held), list(held))


class Stream:
    """The stream, its large table of cells, and one deriver with a store and one that reads file slices.

    Args:
        place: an empty directory.
        shape: of the table of cells.
    """

    def __init__(self, place: Path, shape: Shape) -> None:
        alone = settings(place, shape.buckets, wide=False)
        root = open_storage(alone.lake.uri, {"fsync": "false"})
        services = TableServices(lambda function, operations: [function(one) for one in operations])
        self.entries, self.batches, self.pool = Entries(), 0, ThreadPoolExecutor(8)
        lake = Lake(root)
        state = root.sub(".binlake/shop")
        self._runner = BatchRunner(alone, lake, state, Ledger("shop"), SchemaRegistry(alone), services)
        self.entries.put(pa.array(["first"]))
        self.commit()
        both = settings(place, shape.buckets, wide=True)
        (self.pair,) = derived_pairs(both)
        quarantine = QuarantineTable(both, lake, services)
        self.store = CellStore(place / "cells")
        known = (both.name, lake, services, quarantine, self.pool)
        self.derivers = {"store": Deriver(*known, self.store), "slices": Deriver(*known)}
        self.derive("slices")
        load(lake.get(self.pair.cells_rules), shape)
        _take_as_derived(lake, self.pair, derive_stream(both.name))

    def commit(self) -> None:
        """Decode the entries that are new, and commit their cells."""
        self.batches += 1
        event = self._runner.run(self.batches, self.entries.end, 0, self.entries)
        if errors := [table.error for table in event.tables if table.error]:
            raise RuntimeError(f"batch {self.batches}: {errors}")

    def derive(self, how: str) -> DerivationResult:
        """Derive the wide rows of what is new."""
        return self.derivers[how].derive(self.pair)


def _take_as_derived(lake: Lake, pair: DerivedPair, stream: str) -> None:
    """Note that all cells are derived, so that what follows derives changed rows alone."""
    cells, wide = lake.get(pair.cells_rules), lake.get(pair.wide_rules)
    assert cells is not None
    assert wide is not None
    cells.hudi.refresh()
    before, until = wide.recorded.derived, newest_moment(cells.hudi)
    assert before is not None
    assert until is not None
    note = DerivedPosition(until, pair.fingerprint, int(until.completed), before.derived_ms + 1, before.derived_ms)
    table_input = TableInput(wide.report(pair.wide), NO_RANGES, notes=CommitNotes(derived=note))
    commit_without_rows(wide, table_input, Counts(), stream, 0)


def _b64(value: str | bytes) -> str:
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()
