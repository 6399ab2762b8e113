"""What a column costs that is added to all rows of a wide table: ``python -m bench.backfill --rows 1000000``.

A table of 100 columns is loaded into base files. A column is backfilled into all of its rows from a Parquet file, first
alone, then another one while a writer commits 200 changed rows a second to the same table. "table" is the size of all
files of the table, metadata table and timeline included. Prints a line of JSON a run.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hudi import HudiTableBuilder

from binlake.decode.changes import META_FIELDS, ChangeBatch, Column, Op, SourceTable, TableSchema
from binlake.load.backfill.inputs import find_input
from binlake.load.backfill.request import BackfillRequest
from binlake.load.backfill.run import Backfill, BackfillReport
from binlake.rows.tasks.plan import TaskTableReport
from binlake.rows.upsert.prepare import TableFacts, prepare
from binlake.settings import Settings
from binlake.source.offsets import NO_RANGES
from binlake.tables.lake import Lake, locking
from binlake.tables.services.table_services import TableServices
from binlake.tables.table_commit import TableInput, write_and_commit
from hudilake.storage import open_storage

SOURCE = SourceTable("shop", "wide")
_WIDTH = 100
_CHANGED = 200


def settings(lake: Path) -> Settings:
    """Settings of a stream that has loaded the table."""
    document = {
        "name": "bench",
        "lake": {"uri": str(lake), "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": ["none"]},
        "tables": {"defaults": {"buckets": 8, "compaction": {"mode": "off"}}},
    }
    return Settings.parse(json.dumps(document))


def rows(ids: np.ndarray[tuple[int], np.dtype[np.int64]], seed: int) -> pa.Table:
    """Rows of 100 columns: the key, 40 whole numbers, 30 floats, 20 texts and 9 times."""
    random, count = np.random.default_rng(seed), len(ids)
    columns: dict[str, pa.Array] = {"id": pa.array(ids)}
    for n in range(_WIDTH - 1):
        if n < 40:
            columns[f"n{n}"] = pa.array(random.integers(0, 10 ** (1 + n % 9), count))
        elif n < 70:
            columns[f"f{n}"] = pa.array(random.random(count))
        elif n < 90:
            words = pa.array(random.integers(0, 1 << 40, count)).cast(pa.string())
            columns[f"t{n}"] = pc.binary_join_element_wise("text", words, "-")
        else:
            micros = pa.array(random.integers(1_600_000_000, 1_760_000_000, count) * 1_000_000)
            columns[f"m{n}"] = micros.cast(pa.timestamp("us", tz="UTC"))
    return pa.table(columns)


@dataclass
class Writer:
    """Commits change batches to the table, as a stream does."""

    config: Settings
    services: TableServices = field(
        default_factory=lambda: TableServices(lambda function, operations: [function(one) for one in operations])
    )

    def __post_init__(self) -> None:
        root = open_storage(self.config.lake.uri, self.config.lake.storage_options())
        self.lake = Lake(root, locking(self.config.locking, "stream bench"))
        self.pool = ThreadPoolExecutor(2)

    def write(self, values: pa.Table, order: int, *, first: bool = False) -> None:
        """One commit of upserts at an order."""
        schema = TableSchema(SOURCE, tuple(Column(f.name, "", f.type) for f in values.schema), ("id",))
        meta = {"__op": int(Op.UPSERT), "__order": order, "__place": order}
        for extra in META_FIELDS:
            same = pa.repeat(pa.scalar(meta.get(extra.name, 0), extra.type), values.num_rows)
            values = values.append_column(extra, same)
        rules = self.config.table_rules(SOURCE)
        accepted = prepare(ChangeBatch(schema, "", values, origin=SOURCE), rules, None, TableFacts()).accepted
        assert accepted is not None
        table = self.lake.get_or_create(rules, accepted.target, accepted.columns)
        table.base_from_rows = 1 if first else None
        table.refresh(self.config.name)
        report = TaskTableReport(accepted.schema, accepted.target, accepted.columns, counts=accepted.counts)
        table_input = TableInput(report, NO_RANGES, accepted.parcels)
        write_and_commit(table, table_input, self.config.name, order, self.pool, self.services)


def size_of(lake: Path) -> int:
    """The bytes of the table's files."""
    return sum(path.stat().st_size for path in (lake / "shop/wide").rglob("*") if path.is_file())


@contextmanager
def streaming(writer: Writer, count: int, *, busy: bool) -> Iterator[list[int]]:
    """Commits about once a second within, if ``busy``; yields the list of their bytes."""
    done, sizes = threading.Event(), list[int]()

    def stream() -> None:
        order = 1_000
        while not done.wait(1.0):
            ids = np.random.default_rng(order).choice(count, _CHANGED, replace=False).astype(np.int64)
            writer.write(rows(ids, order), order)
            sizes.append(order)
            order += 1

    thread = threading.Thread(target=stream)
    if busy:
        thread.start()
    try:
        yield sizes
    finally:
        done.set()
        if busy:
            thread.join()


def line(what: str, report: BackfillReport, table: int, grown: int, seconds: float, commits: int) -> str:
    """The figures of a run."""
    figures = {
        "run": what,
        "rows": report.rows,
        "portions": report.portions,
        "seconds": round(seconds, 1),
        "rows a second": round(report.rows / seconds),
        "table MB": round(table / 1e6, 1),
        "data written MB": round(report.bytes_written / 1e6, 2),
        "data written %": round(100 * report.bytes_written / table, 2),
        "table grown %": round(100 * grown / table, 2),
        "bytes a row": round(report.bytes_written / report.rows, 1),
        "commits of the stream": commits,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    return json.dumps(figures)


def check(lake: Path, column: str, values: pa.Table) -> None:
    """Raise AssertionError unless hudi-rs reads every row with its value."""
    batches = HudiTableBuilder.from_base_uri(str(lake / "shop/wide")).build().read()
    found = pa.concat_tables(pa.table(batch) for batch in batches).select(["id", column]).sort_by("id")
    assert found.column(column).to_pylist() == values.column(column).to_pylist()


def main() -> None:
    """Load, backfill, backfill beside a writer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--portion-rows", type=int, default=1_000_000)
    given = parser.parse_args()
    ids = np.arange(given.rows, dtype=np.int64)
    with tempfile.TemporaryDirectory(prefix="lake") as place:
        lake, config = Path(place) / "lake", settings(Path(place) / "lake")
        writer, began_s = Writer(config), time.monotonic()
        writer.write(rows(ids, 1), 1, first=True)
        print(json.dumps({"run": "load", "seconds": round(time.monotonic() - began_s, 1)}), flush=True)
        for what in ("alone", "beside a stream"):
            column = what.split()[0]
            values = pa.table({"id": ids, column: np.random.default_rng(7).random(given.rows)})
            pq.write_table(values, f"{place}/in.parquet", row_group_size=50_000)
            request = BackfillRequest((column,), portion_rows=given.portion_rows)
            before, began_s = size_of(lake), time.monotonic()
            with streaming(writer, given.rows, busy=what != "alone") as commits:
                report = Backfill(config, str(SOURCE), request).run(find_input(config, f"{place}/in.parquet"))
                seconds = time.monotonic() - began_s
            print(line(what, report, before, size_of(lake) - before, seconds, len(commits)), flush=True)
            check(lake, column, values)


if __name__ == "__main__":
    main()
