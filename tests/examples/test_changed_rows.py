"""The example ``changed_rows``: what it says of a table with inserts, deletes and changes since a moment."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from examples.changed_rows.changes import changes
from tests.hudilake.query.join.lakes import make_table, rows_from, upsert

pytestmark = pytest.mark.spark


def test_rows_that_differ(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", {"id": pa.int64(), "status": pa.string(), "note": pa.string()}, buckets=2)
    first = upsert(table, rows_from(table, [(1, "new", "a"), (2, None, "b"), (3, "new", "c"), (4, "new", "d")], 1))
    upsert(
        table,
        rows_from(table, [(2, "paid", "b"), (3, "new", "other"), (5, None, "e")], 2),
        rows_from(table, [(4, "new", "d")], 2),
    )
    found = changes(spark, str(tmp_path / "t"), first, ["status"])
    assert found.columns == ["id", "change", "status_before", "status_now"]
    assert sorted(map(tuple, found.collect())) == [
        (2, "changed", None, "paid"),
        (4, "deleted", "new", None),
        (5, "inserted", None, None),
    ]
