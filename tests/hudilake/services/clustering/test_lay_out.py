"""Rows laid out anew: readers see the same rows before, during and after, and everything that follows finds them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow.parquet as pq
import pytest

from hudilake.format.layout.order import places, sort_keys
from hudilake.policies import Curve, IndexType, TableType
from hudilake.read import TableReader
from tests.hudilake.lake import Change, deletes, upserts
from tests.hudilake.services.clustering.made import Made, begun, clustering, laid_out

KINDS: list[tuple[IndexType, TableType]] = [
    ("bloom", "merge_on_read"),
    ("simple", "copy_on_write"),
    ("record_index", "merge_on_read"),
    ("in_memory", "copy_on_write"),
    ("none", "merge_on_read"),
    ("none", "copy_on_write"),
]


def grown(made: Made) -> Made:
    """Some commits: several file groups a partition, changed and deleted rows."""
    made.commit([*upserts(range(0, 60, 3), 1), *upserts(range(1000, 1030, 3), 1, day="d2")], "a")
    made.commit([*upserts(range(1, 60, 3), 2), *upserts(range(1001, 1030, 3), 2, day="d2")], "b")
    if not made.table.config.kind.appends:
        made.commit(upserts(range(2, 60, 3), 3), "c")
        made.commit(upserts(range(0, 20, 2), 4, "x"), "c")
        made.commit(deletes([0, 4, 13], 5), "c")
    return made


@pytest.mark.first(2)
@pytest.mark.parametrize(("index", "table_type"), KINDS)
def test_readers_see_the_same_rows(tmp_path: Path, index: IndexType, table_type: TableType) -> None:
    made = grown(Made.at(tmp_path / "t", index, table_type))
    config = clustering("qty", "name")
    instant, units = begun(made.table, config)
    made.check()
    laid_out(made.table, instant, config, units)
    made.check()
    made.table.abort(instant)
    made.check()
    assert {unit.partition_path for unit in units} == {"day=d1", "day=d2"}
    done = made.cluster(config)
    made.check()
    slices = made.table.file_slices()
    assert {(s.partition_path, s.file_id) for s in slices} == {
        (r.partition_path, r.file_id) for one in done for r in one.results
    }
    assert all(not s.log_files for s in slices)
    for piece in slices:
        assert piece.base_file is not None
        rows = pq.ParquetFile(tmp_path / "t" / piece.base_file.path).read(["qty", "name"])
        assert rows == rows.sort_by([("qty", "ascending"), ("name", "ascending")], null_placement="at_start")
    if made.table.config.kind.appends:
        made.commit(upserts(range(5), 9))
    else:  # rows that were moved are changed where they are now, deleted ones come back
        made.commit([*upserts(range(10), 9, "late"), *deletes([20, 21], 9), Change(100, 9, "new")], "d")
    made.check()
    made.cluster(config)
    made.check()


@pytest.mark.parametrize("curve", ["z_order", "hilbert"])
@pytest.mark.parametrize("values", ["sampled", "direct"])
def test_rows_lie_along_the_curve(tmp_path: Path, curve: Curve, values: Literal["sampled", "direct"]) -> None:
    made = Made.at(tmp_path / "t", "none", partitioned=False)
    for commit in range(5):
        made.commit(upserts(range(commit, 500, 5), commit, "n" * (commit + 1)))
    config = clustering("id", "name", curve=curve, values=values)
    (done,) = made.cluster(config)
    made.check()
    (result,) = done.results
    rows = pq.ParquetFile(tmp_path / "t" / result.path).read()
    assert config.order is not None
    assert (done.unit.bounds is not None) == (values == "sampled")
    keys = sort_keys(config.order, rows, done.unit.bounds)
    assert np.array_equal(places([keys]), np.arange(500))
    assert TableReader.open(str(made.path)).count() == 500


@pytest.mark.parametrize(("index", "table_type"), [("simple", "merge_on_read"), ("record_index", "copy_on_write")])
def test_file_groups_without_rows_go(tmp_path: Path, index: IndexType, table_type: TableType) -> None:
    made = Made.at(tmp_path / "t", index, table_type)
    made.commit([*upserts(range(5), 1), *upserts(range(100, 105), 1, day="d2")])
    made.commit(deletes(range(100, 105), 2, day="d2"))
    done = made.cluster(clustering("name"))
    assert [(one.unit.partition_path, len(one.results)) for one in done] == [("day=d1", 1), ("day=d2", 0)]
    made.check()
    made.commit(deletes(range(5), 3))
    assert [one.results for one in made.cluster(clustering("name"))] == [()]
    made.check()
    assert made.table.file_slices() == []
    made.commit(upserts([1, 102], 4), "b")
    made.check()
