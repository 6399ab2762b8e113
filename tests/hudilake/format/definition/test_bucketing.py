"""The rows of a table by file group."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hudilake.format.definition.bucket import bucket_ids, file_id
from hudilake.format.definition.bucketing import (
    GroupNames,
    PartitionBuckets,
    SimpleBuckets,
    bucket_or_none,
    buckets_of,
    split_by_bucket,
)
from hudilake.format.definition.hashing_config import hashing_config, hashing_config_path
from hudilake.format.files.view import file_slices
from hudilake.format.timeline.timeline import Timeline
from hudilake.read.slice import read_file_slice
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.hudilake.golden_kinds import extracted

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


@given(rows=ROWS)
def test_counts_by_partition_place_rows_as_the_count_of_their_partition_does(rows: list[tuple[str, str]]) -> None:
    bucketing = PartitionBuckets(2, (("^d=1$", 5), ("d=", 3)))
    keys, paths = (pa.array([row[i] for row in rows], pa.string()) for i in (0, 1))
    found = bucketing.buckets(keys, ("a", "b"), paths.dictionary_encode()).tolist()
    counts = {"": 2, "d=1": 5, "d=2": 3}
    assert [bucketing.count(path) for path in counts] == list(counts.values())
    assert found == [int(bucket_ids(pa.array([key]), ("a", "b"), counts[path])[0]) for key, path in rows]


def test_hudis_file_of_counts_by_partition(tmp_path: Path) -> None:
    root = extracted("mor_partition_buckets", tmp_path)
    (file,) = (root / ".hoodie/.bucket_index/partition_bucket_index_meta/configs").iterdir()
    bucketing = PartitionBuckets(1, (("region=eu", 4), ("region=u.*", 2)))
    assert json.loads(hashing_config(bucketing, file.stem)) == json.loads(file.read_text())
    assert root / hashing_config_path(file.stem) == file
    storage = open_storage(root.as_uri())
    for piece in file_slices(storage, Timeline.load(storage)):
        bucket = bucketing.bucket_of(piece.partition_path, piece.file_id)
        assert bucket < bucketing.count(piece.partition_path)
        keys = read_file_slice(HudiTable.open(storage), piece, columns=["_hoodie_record_key"]).column(0)
        placed = buckets_of(bucketing, keys, ("id",), piece.partition_path)
        assert set(placed.tolist()) <= {bucket}


def test_a_file_group_of_another_index_has_no_bucket() -> None:
    assert bucket_or_none(SimpleBuckets(2), "p", "e4c844d2-96f3-1148117e6880-0") is None
    assert bucket_or_none(SimpleBuckets(2), "p", "00000012-96f3-1148117e6880-0") == 12
