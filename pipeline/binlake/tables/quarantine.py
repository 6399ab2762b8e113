"""The quarantine table: every record that cannot be applied, raw, with its coordinates and the reason.

It is a Hudi table like the others. Its record key is (topic, partition, offset), so a record that is quarantined twice
is stored once. A record that was replayed stays there, with the time and the commit of its table.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
import pyarrow as pa

from binlake.decode.changes import META_FIELDS, Op, QuarantinedRecord, SourceTable, TableSchema
from binlake.position.commit_record import NO_NOTES, CommitNotes
from binlake.rows.tasks.plan import TaskTableReport
from binlake.rows.upsert.parcel import pack
from binlake.rows.upsert.route import KEY, ORDER_COLUMNS, Counts
from binlake.rows.upsert.target import Target
from binlake.settings import CompactionSettings, RetentionSettings, Settings, TableRules
from binlake.source.offsets import NO_RANGES, Ranges
from binlake.tables.lake import Lake
from binlake.tables.seal import Seal
from binlake.tables.services.table_services import TableServices
from binlake.tables.table_commit import TableInput, write_and_commit
from hudilake.clock import now_ms
from hudilake.format.definition.bucketing import SimpleBuckets
from hudilake.read.filters.expressions import IsNull
from hudilake.read.query import Snapshot
from hudilake.read.table_reader import TableReader
from hudilake.storage import Storage
from hudilake.table.table import HudiTable

_STAMP = pa.timestamp("us", tz="UTC")
#: The columns that say of a record where it was and why it is here, in words that commits have, too.
ABOUT_RECORDS = frozenset({"topic", "reason", "source_table", "replayed_to"})
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
        ("replayed_at", _STAMP),
        ("replayed_to", pa.string()),
    ]
)
_SOURCE = SourceTable("_binlake", "quarantine")
_KEY = ("topic", "partition", "offset")


class QuarantineTable:
    """Writes a stream's quarantined records; the table is created with the first record."""

    def __init__(self, settings: Settings, lake: Lake, services: TableServices) -> None:
        self._stream = settings.name
        self._lake = lake
        self._services = services
        self._rules = quarantine_rules(settings)
        self._seal = Seal(settings.quarantine.secret())

    def write(
        self,
        records: Sequence[QuarantinedRecord],
        ranges: Ranges,
        batch: int,
        pool: Executor,
        notes: CommitNotes = NO_NOTES,
    ) -> None:
        """Commit the records with the offsets of their batch; does nothing if there are no records.

        ``notes``: the optional entries of the commit record.
        """
        if not records:
            return
        topics = {q.topic for q in records}
        covered = ranges.of_topics(topics)
        stamp_us = now_ms() * 1000
        rows = [_row(q, stamp_us) for q in records]
        self._commit(self._rules, rows, covered, self._stream, batch, pool, notes)

    def restate(self, rows: Sequence[Mapping[str, Any]], stream: str, pool: Executor) -> None:
        """Replace the rows of stored records, in a commit of another stream that covers no offsets. Table services are
        left to the stream that quarantines.

        ``rows``: whole rows, by the names of ``COLUMNS``.
        """
        rules = dataclasses.replace(self._rules, compaction=None, retention=None)
        self._commit(rules, rows, NO_RANGES, stream, 0, pool, NO_NOTES)

    def _commit(
        self,
        rules: TableRules,
        rows: Sequence[Mapping[str, Any]],
        covered: Ranges,
        stream: str,
        batch: int,
        pool: Executor,
        notes: CommitNotes,
    ) -> None:
        target, topics = (
            Target.new(_SOURCE, rules.path, _KEY, SimpleBuckets(rules.buckets)),
            {row["topic"] for row in rows},
        )
        report = TaskTableReport(TableSchema(_SOURCE, (), _KEY), target, COLUMNS, topics, Counts(read=len(rows)))
        parcels = list(pack(rules.path, "", 0, _table([_sealed(row, self._seal) for row in rows])))
        table_input = TableInput(report, covered, parcels, notes=notes)
        table = self._lake.get_or_create(rules, target, COLUMNS)
        table.refresh(stream)
        write_and_commit(table, table_input, stream, batch, pool, self._services)


def quarantine_rules(settings: Settings) -> TableRules:
    """The rules of a stream's quarantine table."""
    return TableRules(
        path=settings.quarantine_path,
        buckets=1,
        key=_KEY,
        partition=None,
        compression="zstd",
        compression_level=1,
        immutable_partition=True,
        hive_style=True,
        compaction=CompactionSettings(),
        retention=RetentionSettings(),
    )


def waiting_records(settings: Settings, lake: Storage) -> Counter[str]:
    """The number of records that were not replayed, by ``database.table``; "" for records of no table.

    Raises CorruptDataError, StorageError, UnsupportedError.
    """
    place = lake.sub(settings.quarantine_path)
    if not HudiTable.exists(place):
        return Counter()
    reader = TableReader(HudiTable.open(place))
    waiting = reader.plan(Snapshot(), IsNull("replayed_at"), ["source_table"])
    counts = Counter[str]()
    for batch in reader.batches(waiting):
        for one in batch.column(0).fill_null("").value_counts().to_pylist():
            counts[one["values"]] += one["counts"]
    return counts


def _sealed(row: Mapping[str, Any], seal: Seal) -> dict[str, Any]:
    texts = {"key": seal.seal(row["key"]), "value": seal.seal(row["value"]), "detail": seal.seal_text(row["detail"])}
    return {**row, **texts}


def _row(record: QuarantinedRecord, stamp_us: int) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "kafka_time": record.timestamp_ms * 1000,
        "key": record.key,
        "value": record.value,
        "reason": record.reason,
        "detail": record.detail,
        "source_table": str(record.source) if record.source else None,
        "quarantined_at": stamp_us,
        "replayed_at": None,
        "replayed_to": None,
    }


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The rows in the form of a parcel: the record key, the columns, the ordering values."""
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in COLUMNS.names}
    columns |= {
        KEY: [f"topic:{row['topic']},partition:{row['partition']},offset:{row['offset']}" for row in rows],
        "__op": np.full(len(rows), int(Op.UPSERT), dtype=np.int8),
        "__order": columns["offset"],
        "__row": np.zeros(len(rows), dtype=np.int32),
        "__offset": columns["offset"],
        "__partition": columns["partition"],
    }
    ordering = [field for field in META_FIELDS if field.name in ORDER_COLUMNS]
    return pa.table(columns, schema=pa.schema([(KEY, pa.string()), *COLUMNS, *ordering]))
