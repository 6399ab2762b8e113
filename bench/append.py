"""Rows that are added and never change: append tables beside tables with a key, Hudi and Paimon.

``python -m bench.append``. Writers take turns over the same topics and are checked as in ``python -m bench``. Prints
events a second, the median of the rounds with the least and the greatest, and writes ``append.md``.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.__main__ import facts
from bench.ours import OURS
from bench.peers import ADDING
from bench.suite import Plan, Suite, read_runs
from bench.workloads import APPEND
from embedded.kafka import EmbeddedKafka

WRITERS = (*OURS, *ADDING)
_RATE = "events_per_s"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what is missing, and write the table."""
    cache = Path(os.environ.get("BINLAKE_CACHE") or Path.home() / ".cache" / "binlake") / "bench"
    parser = argparse.ArgumentParser(prog="python -m bench.append", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="0.05 for a trial")
    parser.add_argument("--writers", default=",".join(WRITERS), help=", ".join(WRITERS))
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results" / "append")
    parser.add_argument("--work", type=Path, default=cache)
    given = parser.parse_args(argv)
    place = given.work.absolute()
    plan = Plan([APPEND.name], given.writers.split(","), given.rounds, given.scale, given.results, place)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that broker and writer end with this program
    with EmbeddedKafka(place / "kafka", heap_mb=512, properties={"delete.topic.enable": "true"}) as kafka:
        Suite(plan, kafka.bootstrap_servers, facts()).ingest(APPEND.scaled(given.scale))
    text = table(read_runs(plan.log), given.scale)
    (given.results / "append.md").write_text(text)
    print(text)


def table(runs: Sequence[dict[str, Any]], scale: float) -> str:
    """The rates of all runs of a scale, as Markdown."""
    rates: dict[str, list[float]] = {}
    for run in runs:
        if run["workload"] == APPEND.name and run["scale"] == scale and not run["error"]:
            rates.setdefault(run["writer"], []).append(run["metrics"][_RATE])
    ours = statistics.median(rates.get("binlake-append", [0.0]))
    lines = ["| writer | events/s | least to greatest | append is so many times as fast |", "| --- | --- | --- | --- |"]
    for writer, mine in rates.items():
        middle = statistics.median(mine)
        lines.append(f"| {writer} | {middle:,.0f} | {min(mine):,.0f} to {max(mine):,.0f} | {ours / middle:.2f} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
