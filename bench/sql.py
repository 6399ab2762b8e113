"""SQL over two tables, bucket by bucket and at once: time and peak memory. ``python -m bench.sql``.

Two tables with one key: ``--rows`` orders in 16 buckets and two thirds as many payments in 8, base files and a log file
for each bucket with a tenth of the rows changed. Each query runs in a process of its own, in turns; the time is that of
the query without the start of the process, the memory is the peak of the process above what it had after its imports.
Both ways must give the same number of rows and the same sum.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.clock import monotonic_s
from hudilake.format.definition.bucketing import split_by_bucket
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.query.sql import Limits, plan_sql, run_sql
from hudilake.query.sql.limits import memory_of
from hudilake.read import TableReader
from hudilake.services.compaction import CompactionConfig, run
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable

ORDER = "_binlake_order"
#: Name -> (buckets, share of the rows).
TABLES = {"orders": (16, 1.0), "payments": (8, 2 / 3)}
_SAID = ("seconds", "{:.2f} s"), ("cpu", "{:.2f} s of a processor"), ("peak_mb", "{:.0f} MB"), ("rows", "{:.0f} rows")
QUERIES = {
    "join": "SELECT o.id, o.total, p.amount, o.note, p.note AS paid FROM orders o JOIN payments p ON p.id = o.id",
    "full": "SELECT o.id, p.id AS other, o.note, p.note AS paid FROM orders o FULL JOIN payments p ON p.id = o.id",
    "anti": "SELECT o.id, o.note FROM orders o ANTI JOIN payments p ON p.id = o.id",
    "group": "SELECT o.id, count(*) AS n, sum(p.amount) AS paid, max(o.note) AS note FROM orders o "
    "LEFT JOIN payments p ON p.id = o.id GROUP BY o.id",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="2GB,250MB", help="limits that the queries run with")
    parser.add_argument("--only", default=",".join(QUERIES))
    parser.add_argument("--place", help="where the tables are kept; a directory for this run if not given")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.child:
        print(json.dumps(one_query(*given.child)))
        return
    with tempfile.TemporaryDirectory() as directory:
        place = given.place or directory
        for name, (buckets, share) in TABLES.items():
            if not (Path(place) / name).exists():
                build(Path(place) / name, buckets, int(given.rows * share))
        for memory in given.memory.split(","):
            for query in given.only.split(","):
                compare(place, query, memory, given.rounds)


def compare(place: str, query: str, memory: str, rounds: int) -> None:
    """Print the medians of both ways."""
    found: dict[str, list[dict[str, float]]] = {"buckets": [], "at once": []}
    for _ in range(rounds):
        for way, results in found.items():
            command = [sys.executable, "-m", "bench.sql", "--child", place, query, memory, way]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{query}, {memory}, {way}: {done.stderr.strip().splitlines()[-1][:160]}", flush=True)
                break
            results.append(json.loads(done.stdout))
    answers = {(one["rows"], one["sum"]) for results in found.values() for one in results}
    if len(answers) > 1:
        raise RuntimeError(f"{query}: the ways do not agree: {answers}")
    for way, results in found.items():
        if results:
            text = ", ".join(form.format(statistics.median(one[name] for one in results)) for name, form in _SAID)
            print(f"{query}, {memory}, {way}: {text}", flush=True)


def one_query(place: str, query: str, memory: str, way: str) -> dict[str, float]:
    """Run a query in this process."""
    before = _peak_mb()
    tables = {name: TableReader.open(str(Path(place) / name)) for name in TABLES}
    started, worked = monotonic_s(), time.process_time()
    planned = plan_sql(QUERIES[query], tables, buckets=way == "buckets")
    if bool(planned.split.parts) != (way == "buckets"):
        raise RuntimeError(f"{query}: {planned.split.why_not}")
    rows, total = 0, 0
    with run_sql(planned, Limits(memory_of(memory))) as result:
        for batch in result:
            rows += batch.num_rows
            total += pc.sum(batch.column(0)).as_py() or 0
    seconds = monotonic_s() - started
    cpu = time.process_time() - worked
    return {"seconds": seconds, "cpu": cpu, "peak_mb": _peak_mb() - before, "rows": rows, "sum": total}


def _peak_mb() -> float:
    """The most memory that this process has had; that of its parent does not count."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def build(path: Path, buckets: int, rows: int) -> None:
    """A table with base files and a log file for each of its buckets."""
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("total", pa.int64()),
            ("amount", pa.float64()),
            ("note", pa.string()),
            (ORDER, pa.int64()),
        ]
    )
    config = TableConfig(path.name, ("id",), ORDER, buckets)
    table = HudiTable.create(LocalStorage(path, fsync=False), config, schema)
    ids = np.arange(rows, dtype=np.int64) * 3 if buckets == 16 else np.arange(rows, dtype=np.int64) * 2
    _write(table, ids, 1)
    run(table, CompactionConfig(after_commits=1), lambda function, items: list(map(function, items)))
    _write(table, ids[::10], 2)


def _write(table: HudiTable, ids: np.ndarray[tuple[int], np.dtype[np.int64]], order: int) -> None:
    chance = np.random.default_rng(order)
    keys = pa.array(ids).cast(pa.string())
    notes = pc.binary_join_element_wise(keys, pa.array(chance.integers(0, 1 << 60, len(ids))).cast(pa.string()), "-")
    rows = pa.table(
        {
            RECORD_KEY_FIELD: keys,
            "id": ids,
            "total": chance.integers(0, 10_000, len(ids)),
            "amount": chance.random(len(ids)),
            "note": notes,
            ORDER: np.full(len(ids), order),
        }
    )
    instant = table.begin()
    context, results = table.write_context(instant), []
    fields, bucketing = table.config.record_key_fields, table.config.bucketing
    split = split_by_bucket(bucketing, keys, fields, pa.array([""] * len(ids)))
    for path, bucket, place in split:
        chosen = rows.take(pa.array(split.order[place])).sort_by(RECORD_KEY_FIELD)
        write = FileGroupWrite(path, bucketing.file_id(table.config.name, path, bucket), chosen, None)
        results.append(write_file_group(table.storage, context, write))
    table.commit(instant, results)


if __name__ == "__main__":
    main()
