"""Whole rows against partial rows: bytes and times of a log file, of reading its slice and of compacting it, by width.

``python -m bench.partial_rows``: one file group with a base file, and one log file that changes some columns of a share
of its rows. Medians of five runs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from hudilake.format.definition.bucket import file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.merging import WRITER_ORDER
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, WriteResult, write_file_group
from hudilake.format.files.first_write import write_new_file_group
from hudilake.read.slice import read_table
from hudilake.services.compaction import CompactedFile, CompactionConfig, CompactionOperation, run
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable

ORDER = "_binlake_order"
T = TypeVar("T")
ROUNDS = 5
_ALWAYS = CompactionConfig(after_commits=1, tombstone_retention_hours=0)


@dataclass(frozen=True)
class Case:
    """``rows`` of ``columns`` value columns in the base file, ``changed`` rows with ``written`` columns in the log."""

    rows: int
    columns: int
    changed: int
    written: int


@dataclass(frozen=True)
class Measured:
    """Bytes of the log file; seconds of writing it, of reading the table, of compacting it."""

    size: float
    write: float
    read: float
    compact: float


def values(count: int, columns: int, rng: np.random.Generator) -> dict[str, pa.Array]:
    """Columns of features: half of them doubles, a quarter whole numbers, a quarter short texts."""
    made: dict[str, pa.Array] = {}
    for number in range(columns):
        if number % 4 < 2:
            made[f"f{number}"] = pa.array(rng.normal(size=count))
        elif number % 4 == 2:
            made[f"f{number}"] = pa.array(rng.integers(0, 100_000, count))
        else:
            made[f"f{number}"] = pa.array(rng.integers(0, 5_000, count)).cast(pa.string())
    return made


def rows_of(keys: np.ndarray, columns: dict[str, pa.Array], *, whole: bool) -> pa.Table:
    """Rows in key order, as a task writes them."""
    texts = pa.array([f"{key:09d}" for key in keys.tolist()])
    ids = {"id": texts} if whole else {}
    return pa.table({RECORD_KEY_FIELD: texts, **ids, **columns, ORDER: pa.array(np.full(len(keys), WRITER_ORDER))})


def measure(case: Case, *, partial: bool, root: Path) -> Measured:
    """One run on a new table."""
    rng = np.random.default_rng(1)
    base = values(case.rows, case.columns, rng)
    schema = pa.schema([("id", pa.string()), *((n, column.type) for n, column in base.items()), (ORDER, pa.int64())])
    table = HudiTable.create(LocalStorage(root, fsync=False), TableConfig("t", ("id",), ORDER, 1), schema)
    place = FileGroupWrite("", file_id("t", "", 0))
    _commit(table, replace(place, upserts=rows_of(np.arange(case.rows), base, whole=True)))
    keys = np.sort(rng.choice(case.rows, case.changed, replace=False))
    changes = values(case.changed, case.written if partial else case.columns, rng)
    rows = rows_of(keys, changes, whole=not partial)
    group = replace(place, partials=(rows,)) if partial else replace(place, upserts=rows)
    (written,), write = _timed(lambda: _commit(table, group))
    _, read = _timed(lambda: [part.num_rows for part in read_table(table.storage)])
    _, compact = _timed(lambda: run(table, _ALWAYS, _serially))
    return Measured(written.size_bytes, write, read, compact)


def _serially(
    task: Callable[[CompactionOperation], CompactedFile], operations: Sequence[CompactionOperation]
) -> list[CompactedFile]:
    return [task(operation) for operation in operations]


def _commit(table: HudiTable, group: FileGroupWrite) -> list[WriteResult]:
    instant = table.begin()
    context = table.write_context(instant)
    if group.partials or table.timeline.last_completed() is not None:
        results = [write_file_group(table.storage, context, group)]
    else:
        results = write_new_file_group(table.storage, replace(context, base_from_rows=1), group)
    table.commit(instant, results)
    return results


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def main() -> None:
    """Print a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--changed", type=int, default=5_000)
    given = parser.parse_args()
    print("| columns | written | log file | bytes | write ms | read ms | compact ms |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for columns, writtens in ((10, (1, 5)), (100, (1, 10, 50)), (1000, (1, 10, 100, 500))):
        for written in (None, *writtens):
            case = Case(given.rows, columns, given.changed, written or columns)
            print(_line(case, _medians(case, partial=written is not None), partial=written is not None), flush=True)


def _medians(case: Case, *, partial: bool) -> Measured:
    runs = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="binlake-partial-") as root:
            runs.append(measure(case, partial=partial, root=Path(root)))
    return Measured(*(statistics.median(getattr(r, n) for r in runs) for n in ("size", "write", "read", "compact")))


def _line(case: Case, found: Measured, *, partial: bool) -> str:
    times = " | ".join(f"{1000 * seconds:,.0f}" for seconds in (found.write, found.read, found.compact))
    kind = "partial rows" if partial else "whole rows"
    return f"| {case.columns} | {case.written} | {kind} | {found.size:,.0f} | {times} |"


if __name__ == "__main__":
    main()
