"""Deriving wide rows from a large table of cells. ``python -m bench.cells``.

A table of 5,000,000 rows and 35 million cells in base files of 16 buckets, uncompacted commits of the batches over it;
no Kafka, no Spark, one process. A batch holds WAL entries of two cells each, of rows that are drawn from all rows
(``uniform``), or nine in ten from the newest hundredth (``recent``). Each batch is decoded, committed to the table of
cells and derived into the wide table. Sides, in turns on the same tables: ``store`` looks rows up in what is kept on
local disk, ``slices`` reads the file slices that the batch touched whole. Wall time is what it is on a shared machine;
CPU time is that of all threads. Prints JSON lines and a markdown table.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bench.cells.stream import CELLS_A_ROW, Stream
from bench.cells.table import Shape, touched
from hudilake.clock import monotonic_s

#: Cells of a batch, and how often each side takes one of each kind.
SIZES = ((20_000, 3), (200_000, 1), (1_000_000, 1))
#: Batches from this size on are too slow for ``slices``: it reads the table once a portion of 50,000 rows.
_WITHOUT_SLICES = 1_000_000


@dataclass(frozen=True)
class Taken:
    """One batch: cells, distinct rows, the seconds of its commit and of its derivation, on the clock and of CPU."""

    side: str
    rows: str
    cells: int
    derived: int
    commit_s: float
    derive_s: float
    commit_cpu_s: float
    derive_cpu_s: float

    @property
    def cells_per_s(self) -> float:
        """End to end, on the clock."""
        return self.cells / (self.commit_s + self.derive_s)

    @property
    def cells_per_cpu_s(self) -> float:
        """End to end, a second of one core."""
        return self.cells / (self.commit_cpu_s + self.derive_cpu_s)


def take(stream: Stream, side: str, rows: str, cells: int) -> Taken:
    """Commit and derive the waiting entries."""
    marks = [(monotonic_s(), time.process_time())]
    stream.commit()
    marks.append((monotonic_s(), time.process_time()))
    done = stream.derive(side)
    marks.append((monotonic_s(), time.process_time()))
    (commit_s, commit_cpu), (derive_s, derive_cpu) = ((b[0] - a[0], b[1] - a[1]) for a, b in zip(marks, marks[1:]))  # noqa: B905, RUF007
    return Taken(side, rows, cells, done.rows, commit_s, derive_s, commit_cpu, derive_cpu)


def measure(stream: Stream, shape: Shape, sizes: tuple[tuple[int, int], ...]) -> Iterator[Taken]:
    """All batches. The first one of all, which fills the store, is ``cold``."""
    random = np.random.default_rng(0)
    stream.entries.put(next(touched(shape, 1_000, False, random)))
    yield take(stream, "store", "cold", CELLS_A_ROW * 1_000)
    for cells, rounds in sizes:
        for rows in ("uniform", "recent"):
            drawn = touched(shape, cells // CELLS_A_ROW, rows == "recent", random)
            for _ in range(rounds):
                for side in ("store", "slices")[: 1 if cells >= _WITHOUT_SLICES else 2]:
                    stream.entries.put(next(drawn))
                    yield take(stream, side, rows, cells)


def table(taken: list[Taken]) -> str:
    """Medians, with least and greatest, as a markdown table."""
    lines = ["| cells a batch | rows | side | batches | cells/s of CPU | cells/s | commit CPU s | derive CPU s |"]
    lines.append("| --- " * 8 + "|")
    for kind in dict.fromkeys((one.cells, one.rows, one.side) for one in taken):
        some = [one for one in taken if (one.cells, one.rows, one.side) == kind]
        per_cpu = [one.cells_per_cpu_s for one in some]
        spread = f"{statistics.median(per_cpu):,.0f} ({min(per_cpu):,.0f}-{max(per_cpu):,.0f})"
        on_clock = statistics.median(one.cells_per_s for one in some)
        commit, derive = (statistics.median(getattr(one, name) for one in some) for name in _CPU)
        cells, rows, side = kind
        lines.append(
            f"| {cells:,} | {rows} | {side} | {len(some)} | {spread} | {on_clock:,.0f} | {commit:.2f} | {derive:.2f} |"
        )
    return "\n".join(lines)


_CPU = ("commit_cpu_s", "derive_cpu_s")


def main() -> None:
    """Build the tables, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--buckets", type=int, default=16)
    parser.add_argument("--largest", type=int, default=1_000_000, help="the most cells of a batch")
    parser.add_argument("--work", type=Path, default=None, help="an empty directory; a temporary one without it")
    given = parser.parse_args()
    shape = Shape(given.rows, given.buckets)
    place = given.work or Path(tempfile.mkdtemp(prefix="binlake-bench-cells-"))
    try:
        stream = Stream(place, shape)
        taken = []
        for one in measure(stream, shape, tuple(size for size in SIZES if size[0] <= given.largest)):
            taken.append(one)
            print(json.dumps({**asdict(one), "cells_per_s": one.cells_per_s}), flush=True)
        print(f"\n{table(taken)}\n\nlocal files: {stream.store.disk_bytes:,} bytes", flush=True)
    finally:
        if given.work is None:
            shutil.rmtree(place)


if __name__ == "__main__":
    main()
