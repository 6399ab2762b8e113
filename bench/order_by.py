"""What an order of the rows costs a compaction, and what it saves a reader. ``python -m bench.order_by``.

The table of ``bench.compaction``: one bucket, a base file, and 10 delta commits over it, nine in ten of their rows
updates. Each round compacts a copy of it in key order and in every other order, in turns. Then row groups are counted
whose statistics admit ranges of 1 % of the values of two columns, each alone and both together. On local disk, without
Spark. Prints CPU seconds (medians), their ratio to key order, the size of the base file, and the share of its rows in
those row groups.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

from bench.compaction import CONFIG, Sizes, build
from hudilake.policies import OrderPolicy
from hudilake.services.compaction import CompactedFile, CompactionConfig, CompactionOperation, run
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

#: Random whole numbers, and random whole numbers as text.
COLUMNS: Final = ("c0", "c1")
QUERIES = 50


def orders() -> dict[str, OrderPolicy | None]:
    """The orders by name."""
    return {
        "key order": None,
        "linear": OrderPolicy(columns=COLUMNS, curve="linear"),
        "z-order, sampled": OrderPolicy(columns=COLUMNS, curve="z_order"),
        "z-order, direct": OrderPolicy(columns=COLUMNS, curve="z_order", values="direct"),
        "Hilbert, sampled": OrderPolicy(columns=COLUMNS, curve="hilbert"),
    }


def serially(task: object, operations: Sequence[CompactionOperation]) -> list[CompactedFile]:
    """One task after the other."""
    assert callable(task)
    return [task(operation) for operation in operations]


def compacted(path: Path, config: CompactionConfig) -> float:
    """Compact; the CPU seconds of it."""
    table = HudiTable.open(open_storage(path.as_uri()))
    started = time.process_time()
    if not run(table, config, serially):
        raise RuntimeError("nothing was compacted")
    return time.process_time() - started


def base_file(path: Path) -> Path:
    """The only base file of now."""
    (piece,) = HudiTable.open(open_storage(path.as_uri())).file_slices()
    if piece.base_file is None:
        raise RuntimeError("there is no base file")
    return path / piece.base_file.path


def admitted(file: Path, columns: Sequence[str]) -> float:
    """The share of the rows in row groups that a range of 1 % of the values of each column admits, on average."""
    metadata, chance = pq.read_metadata(file), np.random.default_rng(1)
    values = {name: np.sort(pq.read_table(file, columns=[name])[0].to_numpy(zero_copy_only=False)) for name in columns}
    shares = []
    for _ in range(QUERIES):
        starts = {name: int(chance.integers(0, len(held) * 99 // 100)) for name, held in values.items()}
        wanted = {name: (values[name][at], values[name][at + len(values[name]) // 100]) for name, at in starts.items()}
        shares.append(sum(_admits(metadata, n, wanted) for n in range(metadata.num_row_groups)) / metadata.num_rows)
    return float(np.mean(shares))


def _admits(metadata: pq.FileMetaData, number: int, wanted: dict[str, tuple[Any, Any]]) -> int:
    """The rows of a row group if its statistics admit all ranges, otherwise 0."""
    group = metadata.row_group(number)
    columns = [group.column(place) for place in range(metadata.num_columns)]
    spans = [
        (column.statistics, *wanted[column.path_in_schema]) for column in columns if column.path_in_schema in wanted
    ]
    known = [
        (span.min <= high and span.max >= low) for span, low, high in spans if span is not None and span.has_min_max
    ]
    return int(group.num_rows) if all(known) else 0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--log-rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    spent: dict[str, list[float]] = {name: [] for name in orders()}
    told: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="binlake-bench-") as place:
        template, copy = Path(place, "template"), Path(place, "copy")
        build(template, Sizes(given.rows, given.log_rows, given.columns, metadata=False))
        for number in range(given.rounds + 1):
            for name in sorted(spent, reverse=bool(number % 2)):
                shutil.copytree(template, copy)
                spent[name].append(compacted(copy, CONFIG.model_copy(update={"order_by": orders()[name]})))
                if number == given.rounds:
                    file = base_file(copy)
                    shares = [admitted(file, which) for which in (COLUMNS[:1], COLUMNS[1:], COLUMNS)]
                    told[name] = [f"{file.stat().st_size / 1e6:.1f}", *(f"{share:.1%}" for share in shares)]
                shutil.rmtree(copy)
    usual = statistics.median(spent["key order"][1:])
    print("| | CPU s | of key order | MB | first column | second column | both |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, values in spent.items():
        median = statistics.median(values[1:])
        print(f"| {name} | {median:.2f} | {median / usual:.2f} | {' | '.join(told[name])} |")


if __name__ == "__main__":
    main()
