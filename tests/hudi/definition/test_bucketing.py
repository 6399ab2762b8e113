"""The rows of a table by file group."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline.hudi.definition.bucket import bucket_ids, file_id
from pipeline.hudi.definition.bucketing import GroupNames, SimpleBuckets, buckets_of, split_by_bucket

ROWS = st.lists(st.tuples(st.text("ab1:,", max_size=3), st.sampled_from(["", "d=1", "d=2"])), max_size=20)


@given(rows=ROWS, count=st.integers(1, 5))
def test_rows_go_to_the_group_of_their_key_and_keep_their_order(rows: list[tuple[str, str]], count: int) -> None:
    keys, paths = (pa.array([row[i] for row in rows], pa.string()) for i in (0, 1))
    found = split_by_bucket(SimpleBuckets(count), keys, ("a", "b"), paths)
    seen: dict[int, tuple[str, int]] = {}
    for path, bucket, where in found:
        numbers = found.order[where].tolist()
        assert numbers == sorted(numbers)
        seen |= dict.fromkeys(numbers, (path, bucket))
    expected = bucket_ids(keys, ("a", "b"), count).tolist()
    assert seen == {n: (rows[n][1], expected[n]) for n in range(len(rows))}
    assert len(set(found.groups)) == len(found.groups)


def test_keys_of_one_partition_have_the_buckets_of_the_table() -> None:
    keys = pa.array(["1", "2", "3"])
    assert buckets_of(SimpleBuckets(7), keys, ("id",), "d=1").tolist() == bucket_ids(keys, ("id",), 7).tolist()


def test_a_known_file_group_keeps_its_name() -> None:
    names = GroupNames("t", SimpleBuckets(2), {("p", 1): "theirs"})
    assert (names.of("p", 1), names.of("p", 0)) == ("theirs", file_id("t", "p", 0))
