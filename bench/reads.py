"""Filtered reads of one table, ours against Hudi Spark's and hudi-rs's. ``python -m bench.others reads`` runs it.

A table of 50 partitions with 2 buckets each, with a metadata table, base files and a log file for each of them. There
are three questions: one partition; a range of a column whose values follow the partition, which the question does not
name (so the metadata table's ranges select the files); one key. Each reader opens the table again for every
question, as a new query does, and must find the same rows. The first round warms up and is not counted.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hudi import HudiReadOptions, HudiTableBuilder
from pyspark.sql import SparkSession

from bench.compaction import Sizes, session_of, with_threads
from bench.metadata import columns
from bench.summary import Metrics
from hudilake.clock import monotonic_s
from hudilake.format.definition.bucket import bucket_ids, file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.metadata.config import MetadataConfig
from hudilake.read import TableReader
from hudilake.services.compaction import CompactionConfig, run
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

NAME, ORDER, PARTITIONS, BUCKETS, COLUMNS = "bench", "_binlake_order", 50, 2, 12
_REPEATS = 5


@dataclass(frozen=True)
class Question:
    """A condition in SQL, as filters of hudi-rs, and as a mask over all rows."""

    condition: str
    filters: list[tuple[str, str, str]]
    holds: Callable[[pa.Table], pa.ChunkedArray]


def questions(rows: int) -> dict[str, Question]:
    """The three questions over a table with this number of rows."""
    each = rows // PARTITIONS
    low, high, key = 7 * each + each // 4, 7 * each + each // 2, 11 * each + 5
    return {
        "partition": Question("part = 'p07'", [("part", "=", "p07")], lambda t: pc.equal(t["part"], "p07")),
        "range": Question(
            f"placed >= {low} AND placed < {high}",
            [("placed", ">=", str(low)), ("placed", "<", str(high))],
            lambda t: pc.and_(pc.greater_equal(t["placed"], low), pc.less(t["placed"], high)),
        ),
        "key": Question(f"id = {key}", [("id", "=", str(key))], lambda t: pc.equal(t["id"], key)),
    }


def rows_of(ids: np.ndarray[tuple[int], np.dtype[np.int64]], rows: int, order: int) -> pa.Table:
    """Rows of distinct ids in key order; ``placed`` ascends with the id, and so with the partition."""
    each = rows // PARTITIONS
    part = pa.array([f"p{number:02d}" for number in range(PARTITIONS)]).take(pa.array(ids // each))
    made = columns(COLUMNS - 4, len(ids), np.random.default_rng(order))
    keys = pa.array(ids)
    table = pa.table(
        {
            RECORD_KEY_FIELD: keys.cast(pa.string()),
            "id": keys,
            "placed": keys,
            "part": part,
            **made,
            ORDER: np.full(len(ids), order),
        }
    )
    return table.sort_by(RECORD_KEY_FIELD)


def build(path: Path, rows: int) -> pa.Table:
    """Create base files by a compaction of a first commit, and a commit over them; returns the final rows."""
    first, second = np.arange(rows), np.arange(0, rows, 10)
    base, update = rows_of(first, rows, 0), rows_of(second, rows, 1)
    schema = pa.schema([f for f in base.schema if f.name != RECORD_KEY_FIELD])
    config = TableConfig(NAME, ("id",), ORDER, BUCKETS, partition_fields=("part",))
    table = HudiTable.create(open_storage(path.as_uri(), {"fsync": "false"}), config, schema, MetadataConfig())
    _commit(table, base)
    run(table, CompactionConfig(after_commits=1, tombstone_retention_hours=0), with_threads)
    _commit(table, update)
    kept = base.filter(pc.invert(pc.is_in(base["id"], value_set=pa.array(second))))
    return pa.concat_tables([kept, update])


def _commit(table: HudiTable, rows: pa.Table) -> None:
    buckets = bucket_ids(rows.column(RECORD_KEY_FIELD), ("id",), BUCKETS)
    parts = rows.column("part").to_numpy(zero_copy_only=False)
    instant = table.begin()
    context = table.write_context(instant)
    results = []
    for part in np.unique(parts):
        path = f"part={part}"
        for bucket in range(BUCKETS):
            chosen = rows.take(np.flatnonzero((parts == part) & (buckets == bucket)))
            group = FileGroupWrite(path, file_id(NAME, path, bucket), upserts=chosen)
            results.append(write_file_group(table.storage, context, group))
    table.commit(instant, results)


def ours(path: Path, question: Question) -> pa.Table:
    """A query by our reader, on one core."""
    reader = TableReader.open(path.as_uri())
    plan = reader.plan(condition=question.condition, columns=["id", "c0", "placed"])
    return pa.Table.from_batches(list(reader.batches(plan)))


def hudi_rs(path: Path, question: Question) -> pa.Table:
    """A query by hudi-rs; its filters select files, and Arrow applies the rest of the condition."""
    options = HudiReadOptions(filters=question.filters, projection=["id", "c0", "placed", "part"])
    batches = HudiTableBuilder.from_base_uri(path.as_uri()).build().read(options)
    table = pa.Table.from_batches([pa.record_batch(b) for b in batches])
    return table.filter(question.holds(table))


def hudis(session: SparkSession, path: Path, question: Question) -> pa.Table:
    """A query by Hudi's Spark reader with data skipping, on two cores."""
    frame = session.read.format("hudi").options(**_SKIPPING).load(path.as_uri())
    rows = frame.where(question.condition).select("id", "c0", "placed").collect()
    return pa.table({name: pa.array([row[name] for row in rows], pa.int64()) for name in ("id", "c0", "placed")})


_SKIPPING = {
    "hoodie.metadata.enable": "true",
    "hoodie.enable.data.skipping": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
}


def mark(table: pa.Table) -> tuple[int, int, int]:
    """The values in which two answers to one question must agree."""
    ids, values = (pc.bit_wise_and(table[name].cast(pa.int64()), 0xFFFFFF) for name in ("id", "c0"))
    return table.num_rows, pc.sum(ids).as_py() or 0, pc.sum(values).as_py() or 0


def measure(place: Path, rounds: int, scale: float) -> dict[str, list[Metrics]]:
    """Side -> milliseconds of each question, for each round the median of several runs."""
    rows = max(5_000, round(2_000_000 * scale)) // PARTITIONS * PARTITIONS
    path = place / "table"
    whole = build(path, rows)
    session = session_of(place, Sizes(rows, 0, COLUMNS, metadata=True), heap_mb=2048)
    readers: Mapping[str, Callable[[Path, Question], pa.Table]] = {
        "binlake": ours,
        "hudi": lambda at, question: hudis(session, at, question),
        "hudi-rs": hudi_rs,
    }
    found: dict[str, list[Metrics]] = {side: [] for side in readers}
    for number in range(rounds + 1):
        for side in sorted(readers, reverse=bool(number % 2)):
            found[side].append({f"{n}_ms": _ask(readers[side], path, q, whole) for n, q in questions(rows).items()})
    session.stop()
    return {side: values[1:] for side, values in found.items()}


def _ask(read: Callable[[Path, Question], pa.Table], path: Path, question: Question, whole: pa.Table) -> float:
    expected, spent = mark(whole.filter(question.holds(whole))), []
    for _ in range(_REPEATS):
        started = monotonic_s()
        answer = read(path, question)
        spent.append((monotonic_s() - started) * 1000)
        if mark(answer) != expected:
            raise RuntimeError(f"{question.condition}: found {mark(answer)}, wanted {expected}")
    return statistics.median(spent)
