"""What a history table costs: the time of a batch with and without one, the size of a version, the rows at a place; and
what the change feed of the table of the rows costs, read after each batch.

``python -m bench.history [--events 20000] [--batches 12] [--kind scd2]``: two streams in one process over the same
records, held in memory, each with tables of its own. They take turns, batch by batch; the ratio of each pair counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from bench.events import COLUMNS, DATABASE, TABLE, Shape, Skew, events
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
from hudilake import open_table
from hudilake.clock import monotonic_s, now_ms
from hudilake.query.changes.position import ChangePosition
from hudilake.storage import open_storage

TOPIC = f"s.{DATABASE}.{TABLE}"
HISTORY = "orders_history"


@dataclass(frozen=True)
class Held:
    """An engine whose one task reads records from memory."""

    keys: list[bytes | None]
    values: list[bytes | None]

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """See binlake.stream.engine.Engine."""
        return list(decode_records(plan, self._read(ranges)))

    def _read(self, ranges: Sequence[OffsetRange]) -> Iterator[RawRecords]:
        for r in ranges:
            at, times = np.arange(r.start, r.end, dtype=np.int64), np.full(r.end - r.start, now_ms())
            yield RawRecords(r.topic, r.partition, at, times, self.keys[r.start : r.end], self.values[r.start : r.end])


class Stream:
    """A stream over the records. ``tables``: the settings of its tables."""

    def __init__(self, place: Path, engine: Held, tables: Mapping[str, Any]) -> None:
        self.place, self.engine, self.batches = place, engine, 0
        document = {
            "name": "bench",
            "lake": {"uri": str(place)},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [TOPIC]},
            "source": {"schemas": {f"{DATABASE}.{TABLE}": {"columns": COLUMNS, "key": ["id"]}}},
            "tables": tables,
            "batch": {"shuffle_above_bytes": 1 << 40},
        }
        settings, root = Settings.parse(json.dumps(document)), open_storage(str(place))
        services = TableServices(lambda function, operations: [function(one) for one in operations])
        ledger = Ledger("bench", positions=Offsets({TOPIC: {0: 0}}))
        state = root.sub(".binlake/bench")
        self.runner = BatchRunner(settings, Lake(root), state, ledger, SchemaRegistry(settings), services)

    def batch(self, end: int) -> float:
        """Apply the records up to an offset. Returns milliseconds."""
        self.batches += 1
        started = monotonic_s()
        event = self.runner.run(self.batches, Offsets({TOPIC: {0: end}}), now_ms(), self.engine)
        if errors := [table.error for table in event.tables if table.error]:
            raise RuntimeError(f"batch {self.batches}: {errors}")
        return (monotonic_s() - started) * 1000

    def feed(self, since: ChangePosition | str) -> tuple[float, int, ChangePosition]:
        """Read the changes of the rows since a place of the feed. Returns milliseconds, changes, and the next place."""
        table = open_table(f"{self.place}/{DATABASE}/{TABLE}")
        started = monotonic_s()
        feed = table.changes(since)
        count = sum(len(batch) for batch in feed)
        return (monotonic_s() - started) * 1000, count, feed.position

    def rows(self, table: str) -> int:
        """The number of rows of a table that is compacted."""
        opened = open_table(f"{self.place}/{DATABASE}/{table}")
        opened.compact()
        return int(opened.scan(columns=["id"]).to_arrow().num_rows)

    def size(self, table: str) -> int:
        """Bytes of the newest base files."""
        newest = {
            file.name.partition("_")[0]: file for file in sorted((self.place / DATABASE / table).glob("*.parquet"))
        }
        return sum(file.stat().st_size for file in newest.values())


def timed(call: Callable[[], object]) -> float:
    """Milliseconds, the median of five calls."""
    times = []
    for _ in range(5):
        started = monotonic_s()
        call()
        times.append((monotonic_s() - started) * 1000)
    return statistics.median(times)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.history", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=20_000, help="of a batch")
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--skew", choices=get_args(Skew), default="80/20", help="how often the keys come")
    parser.add_argument(
        "--kind", choices=["scd2", "bitemporal", "changes"], default="scd2", help="of the history table"
    )
    given = parser.parse_args()
    made = events(given.events * given.batches, shape=Shape(skew=given.skew))
    keys, values = zip(*made, strict=True)
    with tempfile.TemporaryDirectory() as folder:
        engine = Held(list(keys), list(values))
        history = {"table": f"{DATABASE}.{TABLE}", "to": f"{DATABASE}.{HISTORY}", "kind": given.kind}
        rules = {"defaults": {"compaction": {"mode": "off"}}}
        plain = Stream(Path(folder, "plain"), engine, rules)
        both = Stream(Path(folder, "both"), engine, {**rules, "history": [history]})
        pairs, feeds = list[tuple[float, float]](), list[tuple[float, int]]()
        since: ChangePosition | str = ""
        for number in range(1, given.batches + 1):
            turn = [plain, both] if number % 2 else [both, plain]
            times = {id(side): side.batch(number * given.events) for side in turn}
            pairs.append((times[id(plain)], times[id(both)]))
            took, count, since = plain.feed(since)
            feeds.append((took, count))
        ratios = [with_it / without for without, with_it in pairs[1:]]
        print(f"batch of {given.events} events: {statistics.median(p for p, _ in pairs[1:]):.0f} ms, with a history")
        print(f"  {statistics.median(b for _, b in pairs[1:]):.0f} ms: {statistics.median(ratios):.2f} times", end=" ")
        print(f"({min(ratios):.2f} to {max(ratios):.2f}), the last {ratios[-1]:.2f}")
        rows, versions = both.rows(TABLE), both.rows(HISTORY)
        print(f"{rows} rows of {both.size(TABLE) / rows:.1f} bytes, {versions} versions", end=" ")
        print(f"of {both.size(HISTORY) / versions:.1f} bytes, compacted")
        took, count = (statistics.median(part) for part in zip(*feeds[1:], strict=True))
        print(f"change feed of a batch: {count:.0f} changes in {took:.0f} ms, the last {feeds[-1][0]:.0f}")
        table = open_table(f"{both.place}/{DATABASE}/{HISTORY}")
        middle = int(np.median(table.scan(columns=["start_at"]).to_arrow().column("start_at").to_numpy()))
        if given.kind == "changes":
            return
        at = f"start_at <= {middle} and (is_current or end_at > {middle})"
        took = timed(lambda: table.scan(filter=at).to_arrow())
        print(f"rows at a place of the source, out of the versions: {took:.0f} ms")


if __name__ == "__main__":
    main()
