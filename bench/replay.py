"""A first load from dumps: events per second, and how long the tables take to read with base files and without.

``python -m bench.replay [--events N] [--spark]``. The events of ``bench.events`` in a file for each of eight hours,
replayed twice into a fresh lake: with base files for new file groups, and with log files alone.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from hudi import HudiTableBuilder

from bench.events import COLUMNS, DATABASE, TABLE, events
from binlake.load.replay.engine import LocalEngine, SparkEngine
from binlake.load.replay.replay_dumps import OpenWorkers, ReplayWorkers, replay_dumps
from binlake.settings import Settings
from binlake.source.dump_layout import DumpLayout, Window
from binlake.source.dump_records import line_of
from binlake.stream.spark.session import spark_session
from binlake.stream.spark.tasks import map_in_tasks
from hudilake.clock import monotonic_s
from hudilake.read import TableReader

HOURS, FIRST_HOUR, TOPIC = 8, 488_888, f"bench.{DATABASE}.{TABLE}"
_READS = 3


def settings(root: Path, lake: str, base_from: int | None) -> Settings:
    """The settings of a stream of the bench's table into a lake of that name."""
    document = {
        "name": "bench",
        "lake": {"uri": str(root / lake)},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [TOPIC]},
        "source": {"schemas": {f"{DATABASE}.{TABLE}": {"columns": COLUMNS, "key": ["id"]}}},
        "dump": {"uri": str(root / "dumps"), "base_files_from_rows": base_from},
        "spark": {"conf": {"spark.ui.enabled": "false", "spark.jars.packages": ""}},
    }
    return Settings.parse(json.dumps(document))


def write(root: Path, count: int) -> None:
    """Write the dump: the events of one hour in each file."""
    layout, each = DumpLayout.of(settings(root, "lake", None).dump), -(-count // HOURS)
    lines: list[bytes] = []
    for at, (key, value) in enumerate(events(count)):
        lines.append(line_of(TOPIC, 0, at, FIRST_HOUR * 3_600_000, key, value))
        if len(lines) == each or at == count - 1:
            place = root / "dumps" / layout.directory(TOPIC, FIRST_HOUR + at // each)
            place.mkdir(parents=True)
            (place / "events.jsonl.gz").write_bytes(gzip.compress(b"".join(lines), 3))
            lines = []


def here() -> OpenWorkers:
    """Workers in this process."""

    @contextlib.contextmanager
    def opened() -> Iterator[ReplayWorkers]:
        yield ReplayWorkers(LocalEngine, lambda function, operations: [function(operation) for operation in operations])

    return opened


def on_spark(rules: Settings) -> OpenWorkers:
    """Workers on local Spark."""

    @contextlib.contextmanager
    def opened() -> Iterator[ReplayWorkers]:
        context = spark_session(rules).sparkContext
        context.parallelize(range(2), 2).map(lambda n: n).collect()  # the start of its workers is not measured
        yield ReplayWorkers(partial(SparkEngine, context), partial(map_in_tasks, context, slots=2))

    return opened


def best(work: Callable[[], int]) -> tuple[float, int]:
    """The shortest of several times, and the result of the work."""
    times, found = [], 0
    for _ in range(_READS):
        began = monotonic_s()
        found = work()
        times.append(monotonic_s() - began)
    return min(times), found


def ours(path: Path, columns: list[str] | None) -> int:
    """The number of rows that our reader returns."""
    reader = TableReader.open(str(path))
    return sum(batch.num_rows for batch in reader.batches(reader.plan(columns=columns)))


def theirs(path: Path) -> int:
    """The number of rows that hudi-rs returns."""
    return sum(batch.num_rows for batch in HudiTableBuilder.from_base_uri(str(path)).build().read())


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--spark", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="binlake-bench-") as place:
        root = Path(place)
        write(root, args.events)
        for name, base_from in (("log files", None), ("base files", 1)):
            rules = settings(root, name.replace(" ", "_"), base_from)
            report = replay_dumps(rules, None, Window(), on_spark(rules) if args.spark else here())
            spent = sum(event.latency_ms for event in report.events) / 1000
            path = root / name.replace(" ", "_") / DATABASE / TABLE
            read = {
                "all columns": best(partial(ours, path, None)),
                "two columns": best(partial(ours, path, ["id", "amount"])),
                "hudi-rs": best(partial(theirs, path)),
            }
            told = ", ".join(f"{what} {seconds:.3f} s" for what, (seconds, _) in read.items())
            rows = read["hudi-rs"][1]
            print(f"{name}: {args.events / spent:,.0f} events/s, {rows:,} rows; to read: {told}")


if __name__ == "__main__":
    main()
