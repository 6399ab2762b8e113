"""Which rows of a log need rows of the base file that fail the condition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.log_merge import LogWinners, MergedLog
from hudilake.format.files.log_rows import LogRows
from hudilake.read import Eq, TableReader
from hudilake.read.filters.bounds import ColumnBounds
from hudilake.read.inside.contested import contested
from hudilake.read.inside.tally import ReadTally
from tests.hudilake.read.inside.paged import compactions_write_pages
from tests.hudilake.read.lakes import ids, new_table, row

#: Keys a, b, c: rows with n = 1, 5, 5 and ordering values 10, 20, 30; key d is deleted.
ROWS = pa.table({RECORD_KEY_FIELD: ["a", "b", "c"], "n": [1, 5, 5], "o": [10, 20, 30]})
WINNERS = LogWinners(
    pa.array(["c", "d", "b", "a"]),
    np.array([30, 40, 20, 10]),
    np.zeros(4, dtype=np.bool_),
    np.array([2, -1, 1, 0]),
    np.zeros(4, dtype=np.int64),
)


def _bounds(low: list[object], high: list[object], kind: pa.DataType) -> ColumnBounds:
    some = np.ones(len(low), dtype=np.bool_)
    return ColumnBounds(kind, pa.array(low, kind), pa.array(high, kind), some, some)


def test_rows_that_pass_are_kept_back_by_newer_rows_of_their_key_alone() -> None:
    found = contested(MergedLog(WINNERS, LogRows(ROWS)), Eq("n", 5), "o")
    assert found is not None
    assert (found.keys.to_pylist(), found.ordering.tolist()) == (["b", "c"], [20, 30])
    keys = _bounds(["a", "b", "b", "c", "d", None], ["a", "c", "c", "c", "z", None], pa.string())
    newest = _bounds([0] * 6, [99, 20, 21, 30, 99, None], pa.int64())
    needed = found.may_be_in({RECORD_KEY_FIELD: keys, "o": newest}, 6)
    assert needed.tolist() == [False, False, True, False, False, True]


def test_without_an_ordering_column_no_row_is_kept_back() -> None:
    found = contested(MergedLog(WINNERS, LogRows(ROWS)), Eq("n", 5), "")
    assert found is not None
    assert len(found.keys) == 0


def test_with_partial_rows_nothing_is_skipped() -> None:
    given = {"n": np.array([True, False, True])}
    assert contested(MergedLog(WINNERS, LogRows(ROWS, given)), Eq("n", 5), "o") is None


def test_late_rows_make_a_read_take_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newer rows in the log need nothing of the base file; an older one that passes needs the page of its key."""
    compactions_write_pages(monkeypatch, 1)
    table = new_table(tmp_path, buckets=1, part=None)
    table.write([row(key, 5, n=key) for key in range(40)])
    table.compact()

    def read(n: int) -> tuple[list[int], int]:
        reader, tally = TableReader.open(table.storage, use_index=False), ReadTally()
        plan = reader.plan(condition=Eq("n", n), columns=["id"])
        assert ids(reader, plan) == sorted(r for b in reader.batches(plan, tally) for r in b.column("id").to_pylist())
        return ids(reader, plan), tally.row_groups

    assert read(700) == ([], 0)
    table.write([row(3, 6, n=700)])
    assert read(700) == ([3], 0)
    table.write([row(7, 4, n=700), row(99, 4, n=700)])
    found, groups = read(700)
    assert (found, groups > 0) == ([3, 99], True)
