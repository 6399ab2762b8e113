"""What the metadata table costs a commit, and whether that grows with the table's age. ``python -m bench.metadata``.

Two tables take the same commits in turn, one with a metadata table and one without: 2,000 events over 8 file groups and
20 columns by default, written as the stream's driver writes them, without Spark and Kafka. On local disk, every write
synced. Both are compacted, cleaned and archived now and then, as the stream does; that is not timed, the metadata
table's own upkeep is. Prints medians of the first and the last commits and the slope over all.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from hudilake.clock import monotonic_s
from hudilake.format.definition.bucket import bucket_ids, file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.metadata.config import MetadataConfig
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.compaction import CompactionConfig, run
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

BUCKETS, KEYS, ORDER = 8, 200_000, "_binlake_order"
KEPT_COMMITS = 100
RETENTION = CleaningConfig(commits=KEPT_COMMITS)
#: The number of commits in the medians at both ends.
END = 100


def columns(count: int, rows: int, random: np.random.Generator) -> dict[str, pa.Array]:
    """``count`` columns of mixed types."""
    made: dict[str, pa.Array] = {}
    for number in range(count):
        values = random.integers(0, 1 << 40, rows)
        kind = number % 5
        if kind == 0:
            column = pa.array(values)
        elif kind == 1:
            column = pa.array(values).cast(pa.string())
        elif kind == 2:
            column = pa.array(values / 7.0)
        elif kind == 3:
            column = pa.array(values, pa.timestamp("us", tz="UTC"))
        else:
            column = pa.array(values).cast(pa.decimal128(19, 0))
        made[f"c{number}"] = column
    return made


def batch(number: int, events: int, wide: int) -> pa.Table:
    """The rows of one commit, each key at most once; the same for both tables."""
    random = np.random.default_rng(number)
    keys = pa.array(np.unique(random.integers(0, KEYS, events)))
    order = pa.array(np.full(len(keys), number, dtype=np.int64))
    rest = columns(wide - 2, len(keys), random)
    rows = pa.table({RECORD_KEY_FIELD: keys.cast(pa.string()), "id": keys, **rest, ORDER: order})
    return rows.sort_by(RECORD_KEY_FIELD)


@dataclass
class Measured:
    """A table and the milliseconds of its commits, from the rows to the end of the maintenance."""

    table: HudiTable
    pool: ThreadPoolExecutor
    spent_ms: list[float] = field(default_factory=list)

    def commit(self, rows: pa.Table) -> None:
        """Write and publish one batch."""
        table, started = self.table, monotonic_s()
        buckets = bucket_ids(rows.column(RECORD_KEY_FIELD), ("id",), BUCKETS)
        instant = table.begin()
        context = table.write_context(instant)
        groups = [
            FileGroupWrite("", file_id("bench", "", b), upserts=rows.take(np.flatnonzero(buckets == b)))
            for b in range(BUCKETS)
        ]
        table.commit(instant, list(self.pool.map(lambda g: write_file_group(table.storage, context, g), groups)))
        if (trouble := table.maintain()) is not None:
            raise RuntimeError(trouble)
        self.spent_ms.append((monotonic_s() - started) * 1000)

    def tidy(self) -> None:
        """Compact, clean and archive the table."""
        config = CompactionConfig(tombstone_retention_hours=0)
        run(self.table, config, lambda function, items: list(map(function, items)), now=True)
        clean(self.table, RETENTION)
        archive(self.table, ArchivalConfig(KEPT_COMMITS + 20, KEPT_COMMITS + 70), RETENTION)


def slope(spent: Sequence[float]) -> float:
    """Growth of a commit's milliseconds over 1,000 commits: the Theil-Sen median of slopes, over means of 20."""
    means = [statistics.fmean(spent[at : at + 20]) for at in range(0, len(spent) - 19, 20)]
    pairs = [(b - a) / (j - i) for i, a in enumerate(means) for j, b in enumerate(means) if j > i]
    return statistics.median(pairs) / 20 * 1000 if pairs else 0.0


def measure(place: Path, commits: int, events: int, wide: int, fsync: str, every: int) -> dict[str, list[float]]:
    """Milliseconds of every commit, by table."""
    schema = pa.schema([f for f in batch(0, 8, wide).schema if f.name != RECORD_KEY_FIELD])
    with ThreadPoolExecutor(BUCKETS) as pool:
        tables = {}
        for name, kept in {"without": None, "with": MetadataConfig()}.items():
            root = open_storage((place / name).as_uri(), {"fsync": fsync})
            config = TableConfig("bench", ("id",), ORDER, BUCKETS)
            tables[name] = Measured(HudiTable.create(root, config, schema, kept), pool)
        for number in range(commits):
            rows = batch(number, events, wide)
            for one in tables.values() if number % 2 else reversed(tables.values()):
                one.commit(rows)
            if number % every == every - 1:
                for one in tables.values():
                    one.tidy()
    return {name: one.spent_ms for name, one in tables.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=2_000)
    parser.add_argument("--events", type=int, default=2_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--compact-every", type=int, default=100, help="commits")
    parser.add_argument("--fsync", choices=("true", "false"), default="true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="binlake-bench-") as place:
        spent = measure(Path(place), given.commits, given.events, given.columns, given.fsync, given.compact_every)
    added = [w - o for w, o in zip(spent["with"], spent["without"], strict=True)]
    end = min(END, max(1, given.commits // 2))
    print("| | median ms | p95 ms | median of the first | of the last | ms a commit per 1,000 commits |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, values in {**spent, "added": added}.items():
        p95 = statistics.quantiles(values, n=20)[-1]
        first, last = statistics.median(values[:end]), statistics.median(values[-end:])
        cells = [f"{number:.1f}" for number in (statistics.median(values), p95, first, last)]
        print(f"| {name} | {' | '.join(cells)} | {slope(values):+.2f} |")


if __name__ == "__main__":
    main()
