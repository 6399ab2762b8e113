"""Which file group takes new rows."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.rows.tagging.filling import InsertDistribution, SmallFile
from hudilake.policies import FileSizePolicy
from tests.binlake.rows.tagging.test_placing import PATHS, key_events

SIZES = FileSizePolicy(target_bytes=1000, small_bytes=800)
SMALL = st.lists(st.integers(0, 799), max_size=4).map(
    lambda sizes: [SmallFile(f"f{n}", s) for n, s in enumerate(sizes)]
)


@given(st.integers(0, 60), SMALL, SMALL, st.floats(1, 500))
def test_each_row_goes_to_one_file_group(
    rows: int, first: list[SmallFile], second: list[SmallFile], row_bytes: float
) -> None:
    inserts = key_events([(n % 2, n, 0, 0) for n in range(rows)])
    small = {PATHS[0]: first, PATHS[1]: second}
    chunks = InsertDistribution("t", "1", SIZES, row_bytes).chunks(inserts, small)
    assert sorted(n for chunk in chunks for n in chunk.rows.tolist()) == list(range(rows))
    paths = inserts.paths.to_pylist()
    keys = inserts.keys.to_pylist()
    last: dict[str, str] = {}
    for chunk in chunks:
        held = [paths[n] for n in chunk.rows.tolist()]
        assert set(held) == {chunk.partition_path}
        size = next((f.size for f in small[chunk.partition_path] if f.file_id == chunk.file_id), 0)
        assert size + (len(chunk.rows) - 1) * row_bytes <= SIZES.target_bytes
        mine = sorted(keys[n] for n in chunk.rows.tolist())
        if sum(c.partition_path == chunk.partition_path for c in chunks) > 1:
            assert last.get(chunk.partition_path, "") <= mine[0]  # key ranges do not overlap
            last[chunk.partition_path] = mine[-1]
    assert max(Counter((chunk.partition_path, chunk.file_id) for chunk in chunks).values(), default=1) == 1


@pytest.mark.parametrize(("rewritten", "taken"), [(False, "small"), (True, "touched")])
def test_files_that_are_rewritten_anyway_are_filled_first(rewritten: bool, taken: str) -> None:
    small = {PATHS[0]: [SmallFile("small", 10), SmallFile("touched", 700, rewritten)]}
    chunks = InsertDistribution("t", "1", SIZES, 10.0).chunks(key_events([(0, 1, 0, 0)]), small)
    assert [chunk.file_id for chunk in chunks] == [taken]


def test_names_of_new_file_groups_follow_from_the_commit() -> None:
    inserts = key_events([(0, n, 0, 0) for n in range(30)])
    first, again = (InsertDistribution("t", "1", SIZES, 100.0).chunks(inserts, {}) for _ in range(2))
    later = InsertDistribution("t", "2", SIZES, 100.0).chunks(inserts, {})
    assert [c.file_id for c in first] == [c.file_id for c in again]
    assert {c.file_id for c in first}.isdisjoint(c.file_id for c in later)
    assert [len(c.rows) for c in first] == [10, 10, 10]
