"""A lake that a stream feeds, and backfills of its table ``shop.a`` from Python."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from binlake.load.backfill import run as backfill_run
from binlake.load.backfill.inputs import find_input
from binlake.load.backfill.request import BackfillRequest
from binlake.load.backfill.run import Backfill, BackfillReport
from binlake.load.backfill.workers import PortionWorkers
from hudilake.services.fsck import fsck
from tests.binlake.cli.fed_lake import FedLake
from tests.judges import hudi_rs

#: After so many batches ``shop.a`` holds the keys 0, 2, 3 and 4; key 1 was deleted.
BATCHES = 5
LIVE = (0, 2, 3, 4)


def fed(path: Path, tables: dict[str, Any] | None = None) -> FedLake:
    """The lake after its first batches."""
    lake = FedLake(path, tables)
    lake.feed(BATCHES, ("a",))
    return lake


def scores(count: int = 8, factor: float = 1.5) -> pa.Table:
    """The input that most tests use: ``id`` from 0, ``score`` and ``label``."""
    ids = list(range(count))
    return pa.table({"id": ids, "score": [n * factor for n in ids], "label": [f"l{n}" for n in ids]})


def written(path: Path, rows: pa.Table, row_group_size: int = 3) -> str:
    """A Parquet file of rows; its path."""
    pq.write_table(rows, path, row_group_size=row_group_size)
    return str(path)


def backfilled(lake: FedLake, source: str, columns: tuple[str, ...] = ("score",), **more: Any) -> BackfillReport:  # noqa: ANN401
    """A backfill of ``shop.a`` in this process."""
    request = BackfillRequest(columns, **{"portion_rows": 3, **more})
    return Backfill(lake.settings, "shop.a", request).run(find_input(lake.settings, source))


def rows_of(lake: FedLake, *columns: str) -> dict[int, tuple[Any, ...]]:
    """The columns of the table's rows by id, as hudi-rs reads them; fsck must find no error."""
    uri = f"{lake.path}/shop/a"
    found = fsck(lake.table().storage, grace_ms=0).findings
    assert [finding for finding in found if finding.severity == "error"] == []
    return {row["id"]: tuple(row.get(name) for name in columns) for row in hudi_rs.snapshot(uri).to_pylist()}


def with_scores(count: int = 8, factor: float = 1.5) -> dict[int, tuple[float]]:
    """What ``rows_of(lake, "score")`` gives after a backfill of ``scores``."""
    return {n: (n * factor,) for n in LIVE if n < count}


def filled_by(lake: FedLake, source: str, workers: PortionWorkers) -> BackfillReport:
    """A backfill of ``score`` by these workers."""
    request = BackfillRequest(("score",), portion_rows=3)
    job = Backfill(lake.settings, "shop.a", request, lambda: contextlib.nullcontext(workers))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backfill_run, "SPARK_FROM_ROWS", 0)
        return job.run(find_input(lake.settings, source))
