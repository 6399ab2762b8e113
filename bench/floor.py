"""Writers without Kafka and Spark: a plain pyarrow program that hands the newest change of each key to a ``Sink``.

The floor is the least of them: the same work on one core, without transactions or a table. It parses, keeps the newest
change of each key, and writes one Parquet file per bucket. The difference to the floor is the cost of a table format
and a stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from bench.events import Shape
from bench.kafka_load import table_events
from bench.model import cents_of
from bench.spec import Recorder, Spec
from binlake.source.offsets import Offsets
from hudilake.clock import now_ms

#: Additional columns of a newest change: whether the key is deleted, and the number of the event.
DELETED, NUMBER = "_deleted", "_order"


class Sink(Protocol):
    """Where a plain program writes the newest changes."""

    version: str

    def write(self, shape: Shape, number: int, changes: pa.Table) -> None:
        """Write the changes of one batch of a table, one row per key; visible afterwards.

        ``number``: of the batch.
        """
        ...

    def contents(self, shape: Shape) -> pa.Table:
        """The rows of a table as a reader sees them."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class PlainRun:
    """A sink fed with the events of the topics."""

    def __init__(self, spec: Spec, sink: Sink) -> None:
        self._spec, self._sink = spec, sink
        self._recorder = Recorder(spec)
        self.version = sink.version

    def run(self) -> None:
        """Process batch after batch; the generation of the events counts neither as time nor as processor time."""
        work = self._spec.workload
        sources = {shape.table: (shape, table_events(work, shape)) for shape in work.shapes()}
        done, number = dict.fromkeys(sources, 0), 0
        while True:
            parts = {t: list(islice(events, work.batch // work.tables)) for t, (_, events) in sources.items()}
            if not any(parts.values()):
                return
            self._recorder.begin()
            started = now_ms()
            for table, records in parts.items():
                if records:
                    shape = sources[table][0]
                    values = [value for _, value in records]
                    self._sink.write(shape, number, newest_changes(shape, done[table], values))
                done[table] += len(records)
            self._recorder.note(number, Offsets.of_places((t, 0, n) for t, n in done.items()), started)
            number += 1

    def contents(self) -> dict[str, pa.Table]:
        """Table -> its rows."""
        return {shape.table: self._sink.contents(shape) for shape in self._spec.workload.shapes()}

    def close(self) -> None:
        """Release all resources."""
        self._sink.close()


def newest_changes(shape: Shape, first: int, values: list[bytes]) -> pa.Table:
    """One row per key: its columns in their own types, whether it is deleted, and the number of its last event.

    ``first``: the number of the first event.
    """
    row = pa.struct([(name, _raw(mysql)) for name, mysql in shape.types().items()])
    schema = pa.schema([("before", row), ("after", row), ("op", pa.string())])
    parsed = pa_json.read_json(
        pa.BufferReader(b"\n".join(values)),
        read_options=pa_json.ReadOptions(use_threads=False, block_size=4 << 20),
        parse_options=pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    ).combine_chunks()
    after, before = parsed.column("after").combine_chunks(), parsed.column("before").combine_chunks()
    rows = pa.Table.from_struct_array(pc.if_else(pc.is_valid(after), after, before))
    last = pa.table({"id": rows.column("id"), "n": np.arange(len(values))})
    chosen = np.sort(last.group_by("id", use_threads=False).aggregate([("n", "max")]).column("n_max").to_numpy())
    rows = rows.append_column(DELETED, pc.equal(parsed.column("op"), "d"))
    rows = rows.append_column(NUMBER, pa.array(np.arange(first, first + len(values)))).take(chosen)
    for name, mysql in shape.types().items():
        at = rows.column_names.index(name)
        rows = rows.set_column(at, name, _typed(rows.column(name), mysql))
    return rows


class Files:
    """The floor's Parquet files."""

    version = f"pyarrow {pa.__version__}"

    def __init__(self, spec: Spec) -> None:
        self._lake, self._buckets = spec.lake, spec.workload.buckets

    def write(self, shape: Shape, number: int, changes: pa.Table) -> None:
        """One file for each bucket (of each partition)."""
        buckets = changes.column("id").to_numpy() % self._buckets
        for path, part in _split(shape, changes, buckets):
            file = self._lake / shape.table / path / f"{number}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(part, file, compression="zstd", compression_level=1)

    def contents(self, shape: Shape) -> pa.Table:
        """The newest row of each key that is not deleted."""
        files = sorted((self._lake / shape.table).rglob("*.parquet"))
        table = pa.concat_tables([pq.ParquetFile(f).read() for f in files])
        last = table.group_by("id").aggregate([(NUMBER, "max")]).column(f"{NUMBER}_max")
        table = table.filter(pc.is_in(table.column(NUMBER), value_set=last.combine_chunks()))
        return table.filter(pc.invert(table.column(DELETED)))

    def close(self) -> None:
        """No effect: nothing is open."""


def _split(shape: Shape, rows: pa.Table, buckets: np.ndarray) -> Iterator[tuple[Path, pa.Table]]:
    values = rows.column("country").to_numpy(zero_copy_only=False) if shape.partitions else np.zeros(len(buckets))
    for value in np.unique(values):
        for bucket in np.unique(buckets[values == value]):
            part = rows.take(np.flatnonzero((values == value) & (buckets == bucket)))
            yield Path(f"{value}-{bucket}"), part


def _raw(mysql: str) -> pa.DataType:
    kind = mysql.split("(")[0]
    whole = {"bigint": pa.int64(), "int": pa.int32(), "tinyint": pa.int32(), "double": pa.float64()}
    return pa.int64() if kind == "datetime" else whole.get(kind, pa.string())


def _typed(column: pa.ChunkedArray, mysql: str) -> pa.ChunkedArray:
    kind = mysql.split("(")[0]
    if kind == "decimal":
        return cents_of(column)
    if kind == "datetime":
        return column.cast(pa.timestamp("us"))
    return column.cast(pa.timestamp("us", tz="UTC")) if kind == "timestamp" else column
