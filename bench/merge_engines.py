"""What rows that the writer merges cost beside plain ones: ``python -m bench.merge_engines [--events 60000]``.

Streams in one process over records in memory, each with one table of 4 buckets: decode, merge and commit, without Kafka
and Spark. The sides of a pair get the same events and take turns, batch by batch, so that they meet the same load of
the machine; the first two batches warm up. Prints a line of JSON for each pair: events for a second of processor time,
and the ratio of each pair of batches, that of the merging table to that of the plain one. The rows are counted: those
of both sides must be as many.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.events import COLUMNS, DATABASE, TABLE, Shape, events
from bench.history import Held, Stream

_WARM_UP = 2
_SOURCE = f"{DATABASE}.{TABLE}"
_PLAIN: Mapping[str, Any] = {"buckets": 4, "compaction": {"mode": "off"}}
_STITCHED = {"table": _SOURCE, "key": ["id"], "sources": [{"name": "main", "match": _SOURCE}]}


@dataclass(frozen=True)
class Pair:
    """A table that the writer merges: its rules, beside a plain table. ``key``: of both; ``inserts``: every event is a
    fact of its own."""

    rules: Mapping[str, Any]
    key: str = "id"
    inserts: bool = False
    stitched: bool = False

    def tables(self, *, merged: bool) -> dict[str, Any]:
        """The settings of the tables of one side."""
        key = {"key": [self.key]} if self.key != "id" else {}
        rules: dict[str, Any] = {"defaults": {**_PLAIN, **key, **(self.rules if merged else {})}}
        return rules | ({"stitched": [_STITCHED]} if merged and self.stitched else {})


PAIRS: Mapping[str, Pair] = {
    "partial_update": Pair({"merge": {"engine": "partial_update"}}),
    "first_row": Pair({"merge": {"engine": "first_row"}}),
    "aggregate": Pair(
        {"merge": {"engine": "aggregate", "columns": {"amount": "sum", "id": "count", "quantity": "sum"}}},
        key="customer_id",
        inserts=True,
    ),
    "stitched": Pair({}, stitched=True),
}


def compare(pair: Pair, count: int, batches: int, keys: int) -> dict[str, Any]:
    """The figures of a pair."""
    made = events(count * batches, keys, shape=Shape(inserts=pair.inserts, skew="uniform"))
    messages, values = zip(*made, strict=True)
    engine = Held(list(messages), list(values))
    with tempfile.TemporaryDirectory(prefix="engines-") as folder:
        sides = {
            name: Stream(Path(folder, name), engine, pair.tables(merged=name == "merged"))
            for name in ("plain", "merged")
        }
        spent: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(1, batches + 1):
            for name in sorted(sides, reverse=number % 2 == 1):
                began = time.process_time()
                sides[name].batch(number * count)
                spent[name].append(time.process_time() - began)
        rows = {name: side.rows(TABLE) for name, side in sides.items()}
    counted = {name: times[_WARM_UP:] for name, times in spent.items()}
    ratios = sorted(a / b for a, b in zip(counted["plain"], counted["merged"], strict=True))
    return {
        **{f"{name}_events_a_cpu_s": round(count / statistics.median(times)) for name, times in counted.items()},
        "ratio": [round(one, 2) for one in (statistics.median(ratios), ratios[0], ratios[-1])],
        "rows": rows,
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.merge_engines", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--events", type=int, default=60_000, help="of a batch")
    parser.add_argument("--batches", type=int, default=9)
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--only", default=",".join(PAIRS), help="names with commas between them")
    given = parser.parse_args()
    for name in given.only.split(","):
        figures = compare(PAIRS[name], given.events, given.batches, given.keys)
        print(json.dumps({"engine": name, "columns": len(COLUMNS), **figures}), flush=True)


if __name__ == "__main__":
    main()
