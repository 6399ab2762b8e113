"""binlake's stitched table, by the code that the driver runs for one table of a batch; no Spark and no Kafka."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.stitching.peers import BUCKETS
from bench.stitching.streams import KEY, STREAMS, Stream
from binlake.decode.changes import META_FIELDS, Op, SourceTable, TableSchema
from binlake.rows.tasks.plan import TaskTableReport
from binlake.rows.upsert.parcel import Parcel, pack
from binlake.rows.upsert.route import GROUP, Counts
from binlake.rows.upsert.route import KEY as RECORD_KEY
from binlake.rows.upsert.target import Target
from binlake.settings import MetadataSettings, TableRules
from binlake.source.offsets import NO_RANGES
from binlake.tables.lake import Lake
from binlake.tables.services.table_services import TableServices
from binlake.tables.table_commit import TableInput, write_and_commit
from demo.readback import read_table
from hudilake.format.definition.bucket import bucket_ids
from hudilake.format.definition.bucketing import SimpleBuckets
from hudilake.format.definition.merging import ColumnGroup, Merging
from hudilake.services.compaction import CompactionConfig, run
from hudilake.storage import open_storage

_T = TypeVar("_T")
_R = TypeVar("_R")
_PATH, _SOURCE = "stitched", SourceTable("bench", "stitched")
_MERGING = Merging("stitched", tuple(ColumnGroup(s.name, tuple(s.schema.names)) for s in STREAMS))


class Ours:
    """Every event of a batch as a row of a parcel; one commit a batch."""

    def __init__(self, place: Path, inputs: Path) -> None:
        self._place, self._inputs, self._pool = place, inputs, ThreadPoolExecutor(2)
        metadata = MetadataSettings()
        self._rules = TableRules(_PATH, BUCKETS, None, None, "zstd", 1, False, True, metadata=metadata)
        self._target = Target.new(_SOURCE, _PATH, (KEY,), SimpleBuckets(BUCKETS), merging=_MERGING)
        self._lake = Lake(open_storage((place / "lake").as_uri(), {"fsync": "false"}))
        self._services = TableServices(self._on_two_cores)

    def create(self) -> None:
        """The first batch creates the table."""

    def write(self, number: int) -> None:
        """See ``Writer``."""
        rows = pa.concat_tables(
            [_events(group, stream, stream.file(self._inputs, number)) for group, stream in enumerate(STREAMS)],
            promote_options="default",
        )
        columns = pa.schema([pa.field(KEY, pa.int64()), *(field for stream in STREAMS for field in stream.schema)])
        report = TaskTableReport(
            TableSchema(_SOURCE, (), (KEY,)), self._target, columns, counts=Counts(read=rows.num_rows)
        )
        table = self._lake.get_or_create(self._rules, self._target, columns)
        work = TableInput(report, NO_RANGES, _parcels(rows))
        write_and_commit(table, work, "bench", number + 1, self._pool, self._services)

    def compact(self) -> None:
        """See ``Writer``."""
        table = self._lake.get(self._rules)
        if table is None or not run(table.hudi, CompactionConfig(after_commits=1), self._on_two_cores):
            raise RuntimeError("nothing was compacted")

    def rows(self) -> pa.Table:
        """The rows by hudi-rs."""
        return read_table(self._place / "lake" / _PATH)

    def close(self) -> None:
        """Stop the threads."""
        self._pool.shutdown()

    def _on_two_cores(self, function: Callable[[_T], _R], items: Sequence[_T], /) -> list[_R]:
        return list(self._pool.map(function, items))


def _events(group: int, stream: Stream, file: Path) -> pa.Table:
    """The events of one stream as the rows of parcels."""
    events = pq.read_table(file)
    count = events.num_rows
    kinds = {field.name: field.type for field in META_FIELDS}
    numbers = {
        "__op": np.full(count, int(Op.UPSERT)),
        "__row": np.zeros(count, dtype=np.int64),
        "__offset": np.arange(count),
        "__partition": np.full(count, group),
    }
    rows = events.rename_columns([name if name != stream.order else "__order" for name in events.column_names])
    for name, values in numbers.items():
        rows = rows.append_column(pa.field(name, kinds[name]), pa.array(values).cast(kinds[name]))
    rows = rows.append_column(RECORD_KEY, pc.cast(rows.column(KEY), pa.string()))
    return rows.append_column(GROUP, pa.array(np.full(count, group), pa.int8()))


def _parcels(rows: pa.Table) -> list[Parcel]:
    ids = bucket_ids(rows.column(RECORD_KEY), (KEY,), BUCKETS)
    found: list[Parcel] = []
    for bucket in np.unique(ids).tolist():
        found += pack(_PATH, "", bucket, rows.take(pa.array(np.flatnonzero(ids == bucket))))
    return found
