"""The quarantine table: every record that cannot be applied, raw, with its coordinates and the reason.

It is a Hudi table like the others. Its key is (topic, partition, offset): a record quarantined twice is there once.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
import pyarrow as pa

from pipeline.clock import now_ms
from pipeline.decode.changes import Op, Quarantined, SourceTable, TableSchema
from pipeline.settings import CompactionRule, RetentionRule, Settings, TableRules
from pipeline.source.ranges import OffsetRange
from pipeline.stream.lake import Lake
from pipeline.stream.plan import TableReport
from pipeline.stream.tablewrite import TableWork, write_and_commit
from pipeline.stream.upkeep import Upkeep
from pipeline.upsert.parcel import pack
from pipeline.upsert.route import KEY, Counts
from pipeline.upsert.target import Target

_STAMP = pa.timestamp("us", tz="UTC")
COLUMNS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("kafka_time", _STAMP),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("source_table", pa.string()),
        ("quarantined_at", _STAMP),
    ]
)
_SOURCE = SourceTable("_binlake", "quarantine")
_KEY = ("topic", "partition", "offset")


class QuarantineTable:
    """Writes a stream's quarantined records; the table is made when the first one comes."""

    def __init__(self, settings: Settings, lake: Lake, upkeep: Upkeep) -> None:
        self._stream = settings.name
        self._lake = lake
        self._upkeep = upkeep
        self._rules = TableRules(
            path=settings.quarantine_path,
            buckets=1,
            key=_KEY,
            partition=None,
            compression="zstd",
            compression_level=1,
            immutable_partition=True,
            hive_style=True,
            compaction=CompactionRule(),
            retention=RetentionRule(),
        )

    def write(self, records: Sequence[Quarantined], ranges: Sequence[OffsetRange], batch: int, pool: Executor) -> None:
        """Commit the records with the offsets of their batch; nothing happens where there are none."""
        if not records:
            return
        target = Target(_SOURCE, self._rules.path, _KEY, None, self._rules.buckets)
        topics = {q.topic for q in records}
        report = TableReport(TableSchema(_SOURCE, (), _KEY), target, COLUMNS, topics, Counts(read=len(records)))
        covered = [r for r in ranges if r.topic in topics]
        work = TableWork(report, covered, list(pack(self._rules.path, "", 0, _rows(records))))
        table = self._lake.get_or_create(self._rules, target, COLUMNS)
        table.refresh(self._stream)
        write_and_commit(table, work, self._stream, batch, pool, self._upkeep)


def _rows(records: Sequence[Quarantined]) -> pa.Table:
    stamp_us = now_ms() * 1000
    columns = {
        KEY: [f"topic:{q.topic},partition:{q.partition},offset:{q.offset}" for q in records],
        "topic": [q.topic for q in records],
        "partition": [q.partition for q in records],
        "offset": [q.offset for q in records],
        "kafka_time": [q.timestamp_ms * 1000 for q in records],
        "key": [q.key for q in records],
        "value": [q.value for q in records],
        "reason": [q.reason for q in records],
        "detail": [q.detail for q in records],
        "source_table": [str(q.source) if q.source else None for q in records],
        "quarantined_at": [stamp_us] * len(records),
        "__op": np.full(len(records), int(Op.UPSERT), dtype=np.int8),
        "__order": [q.offset for q in records],
        "__row": np.zeros(len(records), dtype=np.int32),
        "__offset": [q.offset for q in records],
    }
    ordering = [("__op", pa.int8()), ("__order", pa.int64()), ("__row", pa.int32()), ("__offset", pa.int64())]
    return pa.table(columns, schema=pa.schema([(KEY, pa.string()), *COLUMNS, *ordering]))
