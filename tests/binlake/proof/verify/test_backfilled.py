"""A table with a backfilled column is compared by the orders of the stream's events, and repaired; the column stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.planted import DATABASE, SOURCE, fill_lake, fill_source, plant, settings
from binlake.load.backfill.inputs import find_input
from binlake.load.backfill.request import BackfillRequest
from binlake.load.backfill.run import Backfill
from embedded.mariadb import EmbeddedMariaDB
from tests.binlake.proof.verify.source import verified
from tests.judges import hudi_rs

pytestmark = pytest.mark.database

ROWS, PLANTED = 100, 4
NAME = str(SOURCE)


@pytest.fixture
def source(server: EmbeddedMariaDB) -> Iterator[EmbeddedMariaDB]:
    fill_source(server, ROWS, user=False)
    yield server
    server.execute(f"DROP DATABASE {DATABASE}")


@pytest.mark.full
def test_differences_are_found_and_repaired(source: EmbeddedMariaDB, tmp_path: Path) -> None:
    config = settings(str(tmp_path / "lake"), source, tables={"defaults": {"buckets": 2}})
    fill_lake(config, ROWS, source)
    pq.write_table(pa.table({"id": list(range(ROWS)), "score": [n / 2 for n in range(ROWS)]}), tmp_path / "in.parquet")
    report = Backfill(config, NAME, BackfillRequest(("score",))).run(find_input(config, str(tmp_path / "in.parquet")))
    assert report.counts.changed == ROWS
    equal = verified(config)[NAME]
    assert (equal.total, equal.source_rows) == (0, ROWS)
    planted = plant(source, PLANTED, ROWS)
    assert verified(config)[NAME].total == len(planted)
    repaired = verified(config, repair=True)[NAME]
    assert not repaired.different
    assert not verified(config)[NAME].total
    table = hudi_rs.snapshot(f"{tmp_path}/lake/{config.table_rules(SOURCE).path}")
    scores = dict(zip(table["id"].to_pylist(), table["score"].to_pylist(), strict=True))
    assert {key: value for key, value in scores.items() if value is not None and value != key / 2} == {}
    assert sum(value is not None for value in scores.values()) >= ROWS - PLANTED
