"""Changes to a large table, beside the peers, with each index and by copy-on-write: ``python -m bench.indexes``.

The table has 5,000,000 rows in 50 files, which every writer loads in its own way before it is measured. All writers
read the same topics, in turns, and every table is checked in every cell. Results: ``bench/results/indexes.md``.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.__main__ import facts
from bench.loaded import Loaded
from bench.suite import Plan, Suite, read_runs
from bench.workloads import COPY_ON_WRITE, INDEXED, on_large_table
from embedded.kafka import EmbeddedKafka

_RESULTS = Path(__file__).parent / "results" / "indexes"
_WRITERS = {**dict.fromkeys(INDEXED, ("binlake", "hudi")), COPY_ON_WRITE: ("binlake", "hudi", "delta-copy", "delta")}
_COLUMNS = {
    "events/s": "events_per_s",
    "batch ms": "batch_ms",
    "tagging ms": "stage_tag_ms",
    "peak MB": "peak_pss_mb",
    "bytes per byte": "bytes_per_byte",
}


def main() -> None:
    """Measure what is missing, and write the report of all results."""
    cache = Path(os.environ.get("BINLAKE_CACHE") or Path.home() / ".cache" / "binlake") / "bench"
    parser = argparse.ArgumentParser(prog="python -m bench.indexes", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default=",".join(_WRITERS), help="workloads, with commas")
    parser.add_argument("--writers", default="", help="with commas; all that a workload has")
    parser.add_argument("--rows", type=int, default=5_000_000, help="of the table")
    parser.add_argument("--files", type=int, default=50)
    parser.add_argument("--batch", type=int, default=50_000, help="events of a batch")
    parser.add_argument("--batches", type=int, default=5, help="measured ones, after two that warm up")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--load", action="store_true", help="only load the tables, and print how many files they have")
    parser.add_argument("--results", type=Path, default=_RESULTS)
    parser.add_argument("--work", type=Path, default=cache)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that broker and writer end with this program
    names = given.only.split(",")
    kafka = EmbeddedKafka(given.work.absolute() / "kafka", heap_mb=512, properties={"delete.topic.enable": "true"})
    place, scale = given.work.absolute(), given.rows / 5_000_000
    works = []
    for name in names:
        writers = [w for w in _WRITERS[name] if not given.writers or w in given.writers.split(",")]
        work = on_large_table(name, rows=given.rows, files=given.files, batch=given.batch, batches=given.batches)
        works.append((work, writers))
    with kafka:
        if given.load:
            loaded = Loaded(place, kafka.bootstrap_servers)
            loaded.load(loaded.spec(work, writer) for work, writers in works for writer in writers)
            return
        for work, writers in works:
            plan = Plan((), writers, given.rounds, scale, given.results, place)
            Suite(plan, kafka.bootstrap_servers, facts()).ingest(work)
    print(write_page(given.results))


def write_page(results: Path) -> str:
    """Write the tables of all runs beside them, and return the text."""
    runs = read_runs(results / "runs.jsonl")
    lines = ["# Changes to a large table", ""]
    for scale in sorted({run["scale"] for run in runs}, reverse=True):
        of_scale = [run for run in runs if run["scale"] == scale]
        lines += [f"## {round(5_000_000 * scale):,} rows", "", *_table(of_scale), ""]
    lines += [
        "Median, with the least and the greatest of the rounds. A run counts if its table is right in every cell."
    ]
    failed = [f"- {run['workload']}, {run['writer']}: {run['error']}" for run in runs if run["error"]]
    text = "\n".join([*lines, *(["", "Failed:", *failed] if failed else [])]) + "\n"
    (results / "indexes.md").write_text(text)
    return text


def _table(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        f"| workload | writer | rounds | {' | '.join(_COLUMNS)} | binlake is |",
        "| --- | --- | --- | " + "--- | " * (len(_COLUMNS) + 1),
    ]
    for workload in dict.fromkeys(run["workload"] for run in runs):
        found = {writer: _of(runs, workload, writer) for writer in _WRITERS.get(workload, ())}
        ours = statistics.median(found["binlake"]["events_per_s"]) if found.get("binlake") else None
        for writer, metrics in found.items():
            if metrics:
                rate = statistics.median(metrics["events_per_s"])
                ratio = "" if ours is None or writer == "binlake" else f"{ours / rate:.1f}x"
                cells = [_spread(metrics.get(name, [])) for name in _COLUMNS.values()]
                lines.append(
                    f"| {workload} | {writer} | {len(metrics['events_per_s'])} | {' | '.join(cells)} | {ratio} |"
                )
    return lines


def _of(runs: Sequence[Mapping[str, Any]], workload: str, writer: str) -> dict[str, list[float]]:
    """The numbers of all rounds, by name."""
    found: dict[str, list[float]] = {}
    for run in runs:
        if (run["workload"], run["writer"], run["error"]) == (workload, writer, None):
            for name, value in run["metrics"].items():
                found.setdefault(name, []).append(value)
    return found


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    digits = 2 if max(values) < 100 else 0
    median, least, most = (f"{v:,.{digits}f}" for v in (statistics.median(values), min(values), max(values)))
    return f"{median} ({least}-{most})"


if __name__ == "__main__":
    main()
